//! File descriptors: the limit of the process, and its distribution.
//!
//! Each connection takes one. If they run out, neither the front end nor management can accept
//! connections. So the connections of hosts and management are limited to what remains after the
//! needs of the array itself.

use management::http;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::serve::ConnectionLimits;

/// The descriptors that the array itself may need at the same time, in addition to its threads and
/// portals: the pool, the history, certificates, the rings of background work, notifications that
/// are being sent, and connections that were just accepted and are refused.
const OWN: u64 = 64;
/// The descriptors of a front-end thread: its poller, its waker, its ring, and one to spare; for a
/// pool on several devices, a ring for each of them.
const OF_A_THREAD: u64 = 4;
/// The descriptors of a link over the network in addition to its connections: connections that are
/// not authenticated yet, and threads.
const OF_LINK: u64 = 100;
/// The number of devices to which a pool on two or three can grow.
const SEVERAL_MIN: usize = 3;

/// The limits of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// The connections of hosts.
    pub hosts: ConnectionLimits,
    /// The connections of management.
    pub management: usize,
    /// The connections of hosts while they are forwarded: each takes two descriptors, and
    /// management takes none. Over the network each takes two more at each end.
    pub forwarded: ConnectionLimits,
}

impl Shares {
    /// Distributes `limit` descriptors: of those that the array itself does not need, management
    /// gets a quarter, up to its maximum, and hosts get the rest.
    fn of(limit: u64, needs: Needs) -> Self {
        let free = limit.saturating_sub(needs.own());
        let management = (free / 4).clamp(1, http::CONNECTIONS_MAX as u64);
        let (of_host, of_forwarded) = if needs.has_link { (3, 4) } else { (1, 2) };
        let hosts = ConnectionLimits::within(free.saturating_sub(management) / of_host);
        let forwarded = ConnectionLimits::within(free / of_forwarded);
        Self { hosts, management: management as usize, forwarded }
    }
}

/// The parameters that determine how many descriptors the array needs.
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
    /// Returns the number of descriptors that the array itself needs.
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

    /// Returns the number of descriptors for the maximum number of connections.
    fn with_all_connections(self) -> u64 {
        let of_host = if self.has_link { 3 } else { 1 };
        self.own() + of_host * u64::from(ConnectionLimits::MOST.all) + http::CONNECTIONS_MAX as u64
    }
}

/// Raises the limit of descriptors to the hard limit (the default is 1,024, for programs that use
/// `select`), and distributes them. Logs a warning if they are not enough.
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

/// Raises the soft limit to the hard limit; returns the new soft limit.
fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tracing::warn!("can't raise the limit of open files: {error}");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shares_together_never_exceed_the_limit() {
        for (threads, portals, devices) in [(1, 1, 1), (8, 2, 2), (8, 2, 18), (64, 256, 1)] {
            let needs = Needs { threads, portals, devices, has_link: false };
            let (own, needed) = (needs.own(), needs.with_all_connections());
            for limit in (own + 2..own + 6000).step_by(7) {
                let Shares { hosts, management, forwarded } = Shares::of(limit, needs);
                let all = own + u64::from(hosts.all) + management as u64;
                assert!(all <= limit, "{limit}: {hosts:?}, {management}");
                assert!(own + 2 * u64::from(forwarded.all) <= limit, "{limit}: {forwarded:?}");
                assert!(hosts.all >= 1 && management >= 1 && hosts.per_address <= hosts.all);
                // Descriptors are left over only if all connections are at their maximum.
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
        // Even with too few descriptors there is at least one connection each.
        let many = Needs { threads: 8, portals: 256, devices: 1, has_link: false };
        assert_eq!(Shares::of(0, many).management, 1);
        // Each thread has a ring for each device; and the devices themselves.
        let own = |devices| Needs { threads: 4, portals: 1, devices, has_link: false }.own();
        assert_eq!([own(2) - own(1), own(3) - own(1), own(18) - own(1)], [10, 10, 85]);
    }

    #[test]
    fn a_network_link_takes_its_descriptors_from_those_of_hosts() {
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
    fn the_soft_limit_is_raised_to_the_hard_limit() {
        assert_eq!(raise(), getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX));
    }
}
