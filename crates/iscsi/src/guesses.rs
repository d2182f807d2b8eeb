//! Limits how often secrets can be guessed, by address and time.
//!
//! An address has [`AT_ONCE`] failures, and regains one every [`ONE_IN`]. While it has none left,
//! responses are not checked, so that they reveal nothing.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// The failures that an address initially has.
const AT_ONCE: u32 = 10;
/// The time until it has one more.
const ONE_IN: Duration = Duration::from_secs(5);
/// The most addresses that are stored.
const ADDRESSES_MAX: usize = 4096;

/// For each address with failures, the time when all of them are forgiven.
#[derive(Debug, Default)]
pub(crate) struct Guesses(HashMap<IpAddr, Duration>);

impl Guesses {
    /// Returns whether an address may try.
    pub(crate) fn may(&self, address: IpAddr, now: Duration) -> bool {
        let forgiven = self.0.get(&neighbourhood(address)).copied().unwrap_or(now);
        forgiven.saturating_sub(now) <= ONE_IN * (AT_ONCE - 1)
    }

    /// Records a failure. Returns whether it was the last one allowed for now.
    pub(crate) fn failed(&mut self, address: IpAddr, now: Duration) -> bool {
        let key = neighbourhood(address);
        if self.0.len() >= ADDRESSES_MAX && !self.0.contains_key(&key) {
            self.0.retain(|_, forgiven| *forgiven > now);
            // Addresses that keep failing are soon stored again.
            let least = self.0.iter().min_by_key(|(_, forgiven)| **forgiven).map(|(key, _)| *key);
            if let Some(least) = least.filter(|_| self.0.len() >= ADDRESSES_MAX) {
                self.0.remove(&least);
            }
        }
        let forgiven = self.0.entry(key).or_insert(now);
        *forgiven = (*forgiven).max(now) + ONE_IN;
        !self.may(address, now)
    }
}

/// Returns the entity that an address represents: a host of IPv4, a network of IPv6, in which one
/// host may have any number of addresses.
pub fn neighbourhood(address: IpAddr) -> IpAddr {
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

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn ten_guesses_and_then_one_in_five_seconds() {
        let mut guesses = Guesses::default();
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        let at = Duration::from_secs;
        for n in 1..=10 {
            assert!(guesses.may(one, at(100)));
            assert_eq!(guesses.failed(one, at(100)), n == 10);
        }
        assert!(!guesses.may(one, at(104)) && guesses.may(other, at(104)));
        assert!(guesses.may(one, at(105)));
        guesses.failed(one, at(105));
        assert!(!guesses.may(one, at(109)) && guesses.may(one, at(110)));
        assert!(guesses.may(one, at(1000)));
        assert!(!guesses.failed(one, at(1000)), "all failures are forgiven");
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address_and_the_table_is_bounded() {
        let mut guesses = Guesses::default();
        for n in 0..10 {
            guesses.failed(address(&format!("2001:db8::{n}")), Duration::ZERO);
        }
        assert!(!guesses.may(address("2001:db8::ffff"), Duration::ZERO));
        assert!(guesses.may(address("2001:db8:0:1::1"), Duration::ZERO));
        for n in 0..3 * ADDRESSES_MAX as u32 {
            guesses.failed(IpAddr::V4((0x0a00_0000 + n).into()), Duration::ZERO);
        }
        assert_eq!(guesses.0.len(), ADDRESSES_MAX);
        assert!(
            !guesses.may(address("2001:db8::1"), Duration::ZERO),
            "the address with the most failures is kept"
        );
    }
}
