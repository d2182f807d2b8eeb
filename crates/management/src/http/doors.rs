//! The open connections, and which of them is displaced by a new one.
//!
//! A connection is *silent* until its first request is answered, *busy* during a request, and
//! *idle* between two. As long as there is a silent connection, there is space for one more: the
//! oldest silent one of the address with the most of them is displaced. Next are idle ones without
//! a known caller. A connection that is busy, or has a known caller, stays; only one from the same
//! address can displace it while it is idle. Some places are reserved for this machine.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The most connections at once. Half of the limit may be from one address, or from one IPv6
/// network, and a sixteenth is reserved for this machine.
pub const CONNECTIONS_MAX: usize = 256;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// No request of it has been answered yet.
    Silent,
    /// Requests were answered, but no caller was authenticated.
    Stranger,
    /// A caller was authenticated; no request is in progress.
    Known,
    /// A request is in progress.
    Busy,
}

struct Entry {
    from: IpAddr,
    state: State,
    /// Whether a caller was authenticated.
    is_known: bool,
    leave: Arc<Notify>,
}

/// All connections by number: the oldest first.
struct Table {
    /// The limit.
    most: usize,
    next: u64,
    entries: BTreeMap<u64, Entry>,
}

impl Table {
    /// Returns the limit for one address.
    fn most_of_one(&self) -> usize {
        self.most.div_ceil(2)
    }

    /// Returns the limit for other machines.
    fn most_remote(&self) -> usize {
        self.most - self.most / 16
    }

    fn count(&self, is_one: impl Fn(&Entry) -> bool) -> usize {
        self.entries.values().filter(|entry| is_one(entry)).count()
    }

    /// Returns the connection of an address that another one from there displaces: the oldest of
    /// the least valuable ones.
    fn least_of(&self, from: IpAddr) -> Option<u64> {
        let own = self.entries.iter().filter(|(_, entry)| entry.from == from);
        let own = own.filter(|(_, entry)| entry.state != State::Busy);
        own.min_by_key(|(number, entry)| (entry.state, **number)).map(|(number, _)| *number)
    }

    /// Returns the connection that another one from anywhere displaces: one of the address with the
    /// most of them.
    fn least(&self, is_remote: bool) -> Option<u64> {
        [State::Silent, State::Stranger].into_iter().find_map(|state| {
            let mut by_address: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
            for (number, entry) in &self.entries {
                // Connections from other machines take no place of this machine's.
                if entry.state == state && !(is_remote && entry.from.is_loopback()) {
                    by_address.entry(entry.from).or_insert((0, *number)).0 += 1;
                }
            }
            let most = by_address.into_values();
            let most = most.max_by_key(|(count, oldest)| (*count, std::cmp::Reverse(*oldest)));
            most.map(|(_, oldest)| oldest)
        })
    }

    fn evict(&mut self, number: u64) {
        if let Some(entry) = self.entries.remove(&number) {
            entry.leave.notify_one();
        }
    }

    /// Makes space for one more; returns `false` if no connection can be displaced.
    fn make_room(&mut self, from: IpAddr) -> bool {
        let is_remote = !from.is_loopback();
        if self.count(|entry| entry.from == from) >= self.most_of_one() {
            let Some(number) = self.least_of(from) else { return false };
            self.evict(number);
        }
        let remote = self.count(|entry| !entry.from.is_loopback());
        let is_full =
            self.entries.len() >= self.most || (is_remote && remote >= self.most_remote());
        if is_full {
            let Some(number) = self.least(is_remote) else { return false };
            self.evict(number);
        }
        true
    }
}

/// The open connections, and their addresses.
pub(super) struct Doors(Mutex<Table>);

impl Doors {
    /// Creates places for this many, at least one.
    pub(super) fn new(most: usize) -> Self {
        Self(Mutex::new(Table { most, next: 0, entries: BTreeMap::new() }))
    }

    /// Takes a place for a connection; `None` if all others are more valuable.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Arc<Place>> {
        let from = network(address);
        let mut table = self.0.lock();
        if !table.make_room(from) {
            return None;
        }
        let (number, leave) = (table.next, Arc::new(Notify::new()));
        table.next += 1;
        let entry = Entry { from, state: State::Silent, is_known: false, leave: leave.clone() };
        table.entries.insert(number, entry);
        assert!(table.entries.len() <= table.most, "a connection without a place");
        Some(Arc::new(Place { doors: self.clone(), number, leave }))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().entries.len()
    }
}

/// A connection's place, returned when it is dropped.
pub(super) struct Place {
    doors: Arc<Doors>,
    number: u64,
    leave: Arc<Notify>,
}

impl Place {
    /// Completes when the connection is displaced.
    pub(super) async fn given_away(&self) {
        self.leave.notified().await;
    }

    fn change(&self, change: impl FnOnce(&mut Entry)) {
        // It has no entry if it is displaced at this very moment.
        if let Some(entry) = self.doors.0.lock().entries.get_mut(&self.number) {
            change(entry);
        }
    }

    /// Notes that a request has arrived.
    pub(super) fn begin(&self) {
        self.change(|entry| entry.state = State::Busy);
    }

    /// Notes that it was answered; `let_in` says whether its caller was authenticated.
    pub(super) fn end(&self, let_in: bool) {
        self.change(|entry| {
            entry.is_known |= let_in;
            entry.state = if entry.is_known { State::Known } else { State::Stranger };
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.doors.0.lock().entries.remove(&self.number);
    }
}

/// Returns the network of an address: a host with one IPv6 address has a whole network of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTIONS_PER_ADDRESS_MAX: usize = CONNECTIONS_MAX / 2;
    const LOOPBACK_RESERVED: usize = CONNECTIONS_MAX / 16;

    fn doors() -> Arc<Doors> {
        Arc::new(Doors::new(CONNECTIONS_MAX))
    }

    fn take(doors: &Arc<Doors>, address: &str) -> Option<Arc<Place>> {
        doors.take(address.parse().unwrap())
    }

    /// Returns whether a place was displaced.
    fn is_gone(place: &Place) -> bool {
        !place.doors.0.lock().entries.contains_key(&place.number)
    }

    #[test]
    fn the_oldest_silent_connection_is_displaced() {
        let doors = doors();
        let all: Vec<_> =
            (0..CONNECTIONS_PER_ADDRESS_MAX).map(|_| take(&doors, "192.0.2.1").unwrap()).collect();
        // The oldest one was answered, and its next request is in progress.
        all[0].begin();
        all[0].end(false);
        all[1].begin();
        let _more = take(&doors, "::ffff:192.0.2.1").unwrap();
        assert!(is_gone(&all[2]));
        assert_eq!(all.iter().filter(|place| is_gone(place)).count(), 1);
        assert_eq!(doors.len(), CONNECTIONS_PER_ADDRESS_MAX);
        drop((all, _more));
        assert_eq!(doors.len(), 0);
    }

    #[test]
    fn authenticated_connections_stay_and_one_address_leaves_space_for_others() {
        let doors = doors();
        let known = take(&doors, "192.0.2.9").unwrap();
        known.begin();
        known.end(true);
        let flood: Vec<_> = (0..4 * CONNECTIONS_MAX)
            .filter_map(|n| take(&doors, &format!("198.51.100.{}", n % 3)))
            .collect();
        assert_eq!(flood.len(), 4 * CONNECTIONS_MAX);
        assert!(!is_gone(&known) && doors.len() <= CONNECTIONS_MAX - LOOPBACK_RESERVED);
        // A new one is not displaced next, even in a flood.
        let fresh = take(&doors, "203.0.113.1").unwrap();
        let _flood: Vec<_> = (0..CONNECTIONS_MAX).map(|_| take(&doors, "198.51.100.1")).collect();
        assert!(!is_gone(&fresh) && !is_gone(&known));
    }

    #[test]
    fn places_are_reserved_for_this_machine() {
        let doors = doors();
        let mut busy = Vec::new();
        for n in 0..CONNECTIONS_MAX {
            let Some(place) = take(&doors, &format!("192.0.2.{}", n % 4)) else { break };
            place.begin();
            busy.push(place);
        }
        assert_eq!(busy.len(), CONNECTIONS_MAX - LOOPBACK_RESERVED);
        assert!(take(&doors, "192.0.2.77").is_none());
        let own: Vec<_> = (0..LOOPBACK_RESERVED).map(|_| take(&doors, "127.0.0.1")).collect();
        assert!(own.iter().all(Option::is_some));
        // Silent ones of this machine are displaced by others of it, never by those of other
        // machines.
        assert!(take(&doors, "192.0.2.77").is_none());
        assert!(take(&doors, "127.0.0.1").is_some());
    }

    #[test]
    fn a_network_of_addresses_counts_once() {
        let doors = doors();
        let flood: Vec<_> = (0..2 * CONNECTIONS_MAX)
            .map(|n| take(&doors, &format!("2001:db8::{n:x}")).unwrap())
            .collect();
        assert_eq!(doors.len(), CONNECTIONS_PER_ADDRESS_MAX);
        assert!(take(&doors, "2001:db8:0:1::1").is_some());
        drop(flood);
        assert_eq!(doors.len(), 0);
    }

    /// For a machine with few descriptors.
    #[test]
    fn few_places_are_shared_by_the_same_rules() {
        for most in 1..=CONNECTIONS_MAX {
            let doors = Arc::new(Doors::new(most));
            let flood: Vec<_> = (0..2 * most).map(|_| take(&doors, "192.0.2.1")).collect();
            let left = flood.iter().flatten().filter(|place| !is_gone(place)).count();
            assert_eq!(left, most.div_ceil(2));
            assert!(take(&doors, "127.0.0.1").is_some(), "{most}");
            assert!(doors.len() <= most, "{most}");
        }
    }
}
