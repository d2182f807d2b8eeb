//! Rate limits: token buckets, on the time that the caller passes in.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

/// The amount that one request takes from a bucket.
const UNIT: u64 = 1_000_000;

/// The size of a bucket, and its refill rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// The maximum number of requests at once.
    pub burst: u64,
    /// The refill rate, in millionths of a request per millisecond: 1,000 is one request per
    /// second.
    pub refill_per_ms: u64,
}

/// Failed logins from an address: 10 at once, then one every 5 seconds.
pub(super) const FAILED_LOGINS: Rate = Rate { burst: 10, refill_per_ms: 200 };
/// Requests with an API token, in all of its sessions: 1,000 at once, then 500 per second. No
/// well-behaved program needs more, and a runaway program can't starve the others.
pub(super) const REQUESTS: Rate = Rate { burst: 1_000, refill_per_ms: 500_000 };
/// The maximum number of buckets of each kind: about 100 bytes each.
const BUCKETS_MAX: usize = 4_096;

/// The level of a bucket, and the time of that level.
struct Bucket {
    level: u64,
    at_ms: u64,
}

/// A bucket for each key. Full buckets are dropped.
pub(super) struct Buckets<K> {
    rate: Rate,
    by_key: HashMap<K, Bucket>,
}

impl<K: Eq + Hash + Copy> Buckets<K> {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, by_key: HashMap::new() }
    }

    fn full(&self) -> u64 {
        self.rate.burst * UNIT
    }

    fn level(&self, key: &K, now_ms: u64) -> u64 {
        self.by_key.get(key).map_or(self.full(), |bucket| self.refilled(bucket, now_ms))
    }

    fn refilled(&self, bucket: &Bucket, now_ms: u64) -> u64 {
        let more = now_ms.saturating_sub(bucket.at_ms).saturating_mul(self.rate.refill_per_ms);
        bucket.level.saturating_add(more).min(self.full())
    }

    /// Checks that one more request is allowed.
    ///
    /// # Errors
    /// Returns the number of seconds until it is.
    pub(super) fn check(&self, key: &K, now_ms: u64) -> Result<(), u64> {
        let missing = UNIT.saturating_sub(self.level(key, now_ms));
        match missing.div_ceil(self.rate.refill_per_ms).div_ceil(1000) {
            0 => Ok(()),
            seconds => Err(seconds),
        }
    }

    /// Takes one request from a bucket.
    pub(super) fn spend(&mut self, key: K, now_ms: u64) {
        let level = self.level(&key, now_ms).saturating_sub(UNIT);
        if !self.by_key.contains_key(&key) {
            self.make_room(now_ms);
        }
        self.by_key.insert(key, Bucket { level, at_ms: now_ms });
    }

    /// Returns one request to a bucket.
    pub(super) fn give_back(&mut self, key: &K) {
        let full = self.full();
        if let Some(bucket) = self.by_key.get_mut(key) {
            bucket.level = bucket.level.saturating_add(UNIT).min(full);
        }
    }

    /// If there are too many buckets, drops the full ones; if none is full, the fullest.
    fn make_room(&mut self, now_ms: u64) {
        if self.by_key.len() < BUCKETS_MAX {
            return;
        }
        let mut by_key = std::mem::take(&mut self.by_key);
        by_key.retain(|_, bucket| self.refilled(bucket, now_ms) < self.full());
        if by_key.len() >= BUCKETS_MAX {
            let fullest = by_key.iter().max_by_key(|(_, bucket)| self.refilled(bucket, now_ms));
            if let Some(fullest) = fullest.map(|(key, _)| *key) {
                by_key.remove(&fullest);
            }
        }
        self.by_key = by_key;
    }
}

/// Returns the key for limits by address: the address itself for IPv4; its network for IPv6, where
/// one host has many addresses.
pub(super) fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_logins_may_fail_and_then_one_in_five_seconds() {
        let mut buckets = Buckets::new(FAILED_LOGINS);
        for _ in 0..10 {
            assert_eq!(buckets.check(&1, 7), Ok(()));
            buckets.spend(1, 7);
        }
        assert_eq!(buckets.check(&1, 7), Err(5));
        assert_eq!(buckets.check(&2, 7), Ok(()), "another pays for it");
        assert_eq!(buckets.check(&1, 5_006), Err(1));
        assert_eq!(buckets.check(&1, 5_007), Ok(()));
        buckets.spend(1, 5_007);
        assert_eq!(buckets.check(&1, 5_007), Err(5));
        // However often it is called, rounding loses nothing, and time never goes back.
        assert!((5_008..10_000).all(|now| buckets.check(&1, now).is_err()));
        assert_eq!(buckets.check(&1, 0), Err(5));
        assert_eq!(buckets.check(&1, 10_007), Ok(()));
        assert_eq!(buckets.level(&1, u64::MAX), 10 * UNIT);
        buckets.spend(1, 10_007);
        buckets.give_back(&1);
        assert_eq!(buckets.check(&1, 10_007), Ok(()));
    }

    #[test]
    fn buckets_are_bounded_and_the_emptiest_stay() {
        let mut buckets = Buckets::new(FAILED_LOGINS);
        for _ in 0..10 {
            buckets.spend(0, 0);
        }
        for key in 1..3 * BUCKETS_MAX {
            buckets.spend(key, 1);
        }
        assert_eq!(buckets.by_key.len(), BUCKETS_MAX);
        assert!(buckets.check(&0, 1).is_err());
        buckets.spend(usize::MAX, 60_000);
        assert_eq!(buckets.by_key.len(), 1, "what is full again is kept");
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let of = |text: &str| neighbourhood(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
