//! File descriptors: how many the process may have, and who gets them.
//!
//! Each connection takes one. If they run out nothing more can be accepted, by management neither;
//! so hosts and management get no more than there are, less what the array itself needs.

use management::http;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::serve::ConnectionLimits;

/// What the array itself may need at the same time besides its threads and portals: the pool, the
/// history, certificates, the rings of background work, notifications that are being sent, and
/// connections that were just accepted and are refused.
const OWN: u64 = 64;
/// What a front-end thread needs: its poller, its waker, its ring, and one to spare; of a pool on
/// several devices, a ring for each of them.
const OF_A_THREAD: u64 = 4;
/// What a link over the network needs besides its connections: those that have proven nothing yet,
/// and its threads.
const OF_LINK: u64 = 100;
/// Two or three devices can become so many.
const SEVERAL_MIN: usize = 3;

/// How many connections there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Of hosts.
    pub hosts: ConnectionLimits,
    /// Of management.
    pub management: usize,
    /// Of hosts, while they are forwarded: each takes two descriptors, and management none. Over
    /// the network two more at each end.
    pub forwarded: ConnectionLimits,
}

impl Shares {
    /// With so many descriptors in all: a quarter of what the array does not need itself is
    /// management's, as far as it takes so many, and hosts have the rest.
    fn of(limit: u64, needs: Needs) -> Self {
        let free = limit.saturating_sub(needs.own());
        let management = (free / 4).clamp(1, http::CONNECTIONS_MAX as u64);
        let (of_host, of_forwarded) = if needs.has_link { (3, 4) } else { (1, 2) };
        let hosts = ConnectionLimits::within(free.saturating_sub(management) / of_host);
        let forwarded = ConnectionLimits::within(free / of_forwarded);
        Self { hosts, management: management as usize, forwarded }
    }
}

/// What decides how many descriptors the array needs.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// Threads of the front end.
    pub threads: usize,
    /// Addresses for hosts.
    pub portals: usize,
    /// Devices of the pool.
    pub devices: usize,
    /// Whether there is a link to another controller over the network.
    pub has_link: bool,
}

impl Needs {
    /// Returns what the array itself needs.
    fn own(self) -> u64 {
        let more_devices = match self.devices {
            0 | 1 => 0,
            several => several.max(SEVERAL_MIN) as u64 - 1,
        };
        let of_threads = (OF_A_THREAD + more_devices) * self.threads as u64;
        // One more portal: management's.
        let of_link = if self.has_link { OF_LINK } else { 0 };
        OWN + of_link + more_devices + of_threads + self.portals as u64 + 1
    }

    /// Returns how many descriptors it takes for all connections that there may ever be.
    fn with_all_connections(self) -> u64 {
        let of_host = if self.has_link { 3 } else { 1 };
        self.own() + of_host * u64::from(ConnectionLimits::MOST.all) + http::CONNECTIONS_MAX as u64
    }
}

/// Raises the limit of descriptors as far as the process may (what a shell gives is 1,024, for the
/// sake of programs that use `select`), and shares them. Says so if they are not enough.
pub fn take(needs: Needs) -> Shares {
    let limit = raise();
    let (shares, needed) = (Shares::of(limit, needs), needs.with_all_connections());
    if limit < needed {
        let Shares { hosts, management, .. } = shares;
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
        for (threads, portals, devices) in [(1, 1, 1), (8, 2, 2), (8, 2, 18), (64, 256, 1)] {
            let needs = Needs { threads, portals, devices, has_link: false };
            let (own, needed) = (needs.own(), needs.with_all_connections());
            for limit in (own + 2..own + 6000).step_by(7) {
                let Shares { hosts, management, forwarded } = Shares::of(limit, needs);
                let all = own + u64::from(hosts.all) + management as u64;
                assert!(all <= limit, "{limit}: {hosts:?}, {management}");
                assert!(own + 2 * u64::from(forwarded.all) <= limit, "{limit}: {forwarded:?}");
                assert!(hosts.all >= 1 && management >= 1 && hosts.per_address <= hosts.all);
                // What is not given away is what nobody may have.
                let is_most = hosts == ConnectionLimits::MOST;
                assert!(all == limit || is_most && management == http::CONNECTIONS_MAX);
            }
            for limit in [needed, 1 << 20, u64::MAX] {
                let shares = Shares::of(limit, needs);
                assert_eq!((shares.hosts, shares.management), (ConnectionLimits::MOST, 256));
            }
            assert_ne!(Shares::of(needed - 1, needs).hosts, ConnectionLimits::MOST);
        }
        let small = Shares::of(256, Needs { threads: 2, portals: 1, devices: 1, has_link: false });
        assert_eq!((small.hosts.all, small.hosts.per_address, small.management), (137, 34, 45));
        // Whatever there is, something is tried.
        let many = Needs { threads: 8, portals: 256, devices: 1, has_link: false };
        assert_eq!(Shares::of(0, many).management, 1);
        // A ring of each thread for each device, and the devices.
        let own = |devices| Needs { threads: 4, portals: 1, devices, has_link: false }.own();
        assert_eq!([own(2) - own(1), own(3) - own(1), own(18) - own(1)], [10, 10, 85]);
    }

    #[test]
    fn a_link_over_the_network_takes_what_it_needs_of_all_hosts() {
        let needs = Needs { threads: 8, portals: 2, devices: 2, has_link: true };
        for limit in (needs.own() + 8..needs.with_all_connections() + 100).step_by(97) {
            let Shares { hosts, management, forwarded } = Shares::of(limit, needs);
            assert!(needs.own() + 3 * u64::from(hosts.all) + management as u64 <= limit);
            assert!(needs.own() + 4 * u64::from(forwarded.all) <= limit);
        }
        let most = Shares::of(needs.with_all_connections(), needs);
        assert_eq!(most.hosts, ConnectionLimits::MOST);
    }

    #[test]
    fn the_limit_is_raised_to_what_is_allowed() {
        assert_eq!(raise(), getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX));
    }
}
