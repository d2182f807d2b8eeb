//! File descriptors: how many the process may have, and who gets them.
//!
//! Each connection takes one. If they run out nothing more can be accepted, by management neither;
//! so hosts and management get no more than there are, less what the array itself needs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::http;
use crate::serve::ConnectionLimits;

/// What the array itself may need at the same time besides its threads and portals: the pool, the
/// history, certificates, the rings of background work, notifications that are being sent, and
/// connections that were just accepted and are refused.
const OWN: u64 = 64;
/// What a front-end thread needs: its poller, its waker, its ring, and one to spare.
const OF_A_THREAD: u64 = 4;

/// How many connections there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Of hosts.
    pub hosts: ConnectionLimits,
    /// Of management.
    pub management: usize,
}

impl Shares {
    /// With so many descriptors in all: a quarter of what the array does not need itself is
    /// management's, as far as it takes so many, and hosts have the rest.
    pub fn of(limit: u64, threads: usize, portals: usize) -> Self {
        let free = limit.saturating_sub(own(threads, portals));
        let management = (free / 4).clamp(1, http::CONNECTIONS_MAX as u64);
        let hosts = ConnectionLimits::within(free.saturating_sub(management));
        Self { hosts, management: management as usize }
    }
}

/// What the array itself needs.
fn own(threads: usize, portals: usize) -> u64 {
    // One more portal: management's.
    OWN + OF_A_THREAD * threads as u64 + portals as u64 + 1
}

/// How many descriptors it takes for all connections that there may ever be.
fn needed(threads: usize, portals: usize) -> u64 {
    own(threads, portals) + u64::from(ConnectionLimits::MOST.all) + http::CONNECTIONS_MAX as u64
}

/// Raises the limit of descriptors as far as the process may (what a shell gives is 1,024, for the
/// sake of programs that use `select`), and shares them. Says so if they are not enough.
pub fn take(threads: usize, portals: usize) -> Shares {
    let limit = raise();
    let (shares, needed) = (Shares::of(limit, threads, portals), needed(threads, portals));
    if limit < needed {
        let Shares { hosts, management } = shares;
        tracing::warn!(
            "this process may have {limit} open files, not {needed}: hosts get at most {} \
             connections, {} from an address, and management {management}; raise LimitNOFILE of \
             the service, or ulimit -Hn",
            hosts.all,
            hosts.per_address
        );
    }
    shares
}

/// Raises the soft limit to the hard one; what it is then.
fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tracing::warn!("the limit of open files stays as it is: {error}");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shares_together_are_never_more_than_there_is() {
        for (threads, portals) in [(1, 1), (8, 2), (64, 256)] {
            let own = own(threads, portals);
            for limit in (own + 2..own + 6000).step_by(7) {
                let Shares { hosts, management } = Shares::of(limit, threads, portals);
                let all = own + u64::from(hosts.all) + management as u64;
                assert!(all <= limit, "{limit}: {hosts:?}, {management}");
                assert!(hosts.all >= 1 && management >= 1 && hosts.per_address <= hosts.all);
                // What is not given away is what nobody may have.
                let is_most = hosts == ConnectionLimits::MOST;
                assert!(all == limit || is_most && management == http::CONNECTIONS_MAX);
            }
            for limit in [needed(threads, portals), 1 << 20, u64::MAX] {
                let most = Shares { hosts: ConnectionLimits::MOST, management: 256 };
                assert_eq!(Shares::of(limit, threads, portals), most);
            }
            assert_ne!(
                Shares::of(needed(threads, portals) - 1, threads, portals).hosts,
                ConnectionLimits::MOST
            );
        }
        let small = Shares::of(256, 2, 1);
        assert_eq!((small.hosts.all, small.hosts.per_address, small.management), (137, 34, 45));
        // Whatever there is, something is tried.
        assert_eq!(Shares::of(0, 8, 256).management, 1);
    }

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        assert_eq!(raise(), getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX));
    }
}
