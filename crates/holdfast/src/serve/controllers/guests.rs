//! Limits the number of hosts that are forwarded at the same time. Each takes two descriptors, and
//! a process without any left can't even report that it is alive.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::listen::{ConnectionLimits, Neighbours};

/// All forwarded hosts.
pub(super) struct Guests {
    limits: ConnectionLimits,
    count: AtomicU32,
    addresses: Neighbours,
}

/// One of them, until this is dropped.
pub(super) struct Guest {
    guests: Arc<Guests>,
    address: IpAddr,
}

impl Guests {
    /// Creates an empty set with these limits.
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, count: AtomicU32::new(0), addresses: Neighbours::default() })
    }

    /// Adds one from this address, if the limits allow it.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Guest> {
        let ConnectionLimits { all, per_address } = self.limits;
        let take = |count: u32| (count < all).then_some(count + 1);
        self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok()?;
        if !self.addresses.enter(address, per_address) {
            self.count.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        Some(Guest { guests: self.clone(), address })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.guests.addresses.leave(self.address);
        self.guests.count.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_hosts_are_limited_per_address_and_in_total() {
        let guests = Guests::new(ConnectionLimits { all: 3, per_address: 2 });
        let enter = |last| guests.enter(IpAddr::from([192, 0, 2, last]));
        let mut first = vec![enter(1).unwrap(), enter(1).unwrap()];
        assert!(enter(1).is_none(), "it has its share");
        let other = enter(2).unwrap();
        assert!(enter(2).is_none() && enter(3).is_none(), "there is no more");
        first.pop();
        assert!(enter(3).is_some());
        let again = enter(1).unwrap();
        assert!(enter(2).is_none());
        drop((first, other, again));
        assert_eq!(guests.count.load(Ordering::Acquire), 0);
    }
}
