//! Memory for data in transit, over all connections: one budget, in which each initiator has a
//! share.
//!
//! An initiator may take as much as remains free afterwards: one alone gets half of the budget, two
//! get a third each, and a newcomer always finds as much as each of the others has. In any case
//! each has [`FLOOR_BYTES`]; the administrator limits the number of initiators, because only
//! initiators of hosts can log in. For an initiator that holds nothing and wants more than is free,
//! that much is set aside until it is available, so that many short commands do not starve long
//! ones.
//!
//! A [`Grant`] owns what was taken, and returns it when dropped: however a command, a PDU or a
//! connection ends, nothing is leaked. [`crate::Limits::data_timeout`] bounds how long that takes.
//! A connection that gets nothing waits, and is woken when something is returned.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use block::task::ConnectionId;
use parking_lot::Mutex;

/// The minimum for each initiator.
pub(crate) const FLOOR_BYTES: usize = 1 << 20;
/// The number of waiting connections that are woken when something is returned.
const WOKEN: usize = 4;

/// The memory of all connections.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes_max: usize,
    used: AtomicUsize,
    shares: Mutex<HashMap<String, Weak<Share>>>,
    /// Bytes that are set aside for [`Waiting::favoured`].
    aside: AtomicUsize,
    /// The number of waiting connections.
    waiters: AtomicUsize,
    /// Whether [`Waiting::woken`] is not empty.
    has_woken: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    queue: VecDeque<ConnectionId>,
    /// The connection for which [`Budget::aside`] is set aside.
    favoured: Option<ConnectionId>,
    /// Connections that may retry and were not notified yet.
    woken: Vec<ConnectionId>,
}

/// What an initiator has taken, in all its sessions.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    used: AtomicUsize,
}

/// Memory taken from a share, returned when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Grant {
    share: Option<Arc<Share>>,
    bytes: usize,
}

impl Grant {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes over another grant of the same share.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
        self.share = self.share.take().or(other.share.take());
    }

    /// Returns all but this many bytes to the budget.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let given = self.bytes.saturating_sub(bytes);
        self.bytes -= given;
        if let Some(share) = &self.share {
            share.give(given);
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            used: AtomicUsize::new(0),
            shares: Mutex::default(),
            aside: AtomicUsize::new(0),
            waiters: AtomicUsize::new(0),
            has_woken: AtomicBool::new(false),
            waiting: Mutex::default(),
        })
    }

    /// Returns the share of the initiator with this name.
    pub(crate) fn share(self: &Arc<Self>, initiator_name: &str) -> Arc<Share> {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.get(initiator_name).and_then(Weak::upgrade) {
            return share;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Share { budget: self.clone(), used: AtomicUsize::new(0) });
        shares.insert(initiator_name.to_owned(), Arc::downgrade(&share));
        share
    }

    /// Returns the total memory taken.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Takes this many bytes if they are available. Otherwise the connection waits.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize, connection: ConnectionId) -> Option<Grant> {
        let taken = self.try_take(bytes, connection);
        let budget = &*self.budget;
        if taken.is_some() && budget.waiters.load(Ordering::Relaxed) == 0 {
            return taken;
        }
        let mut waiting = budget.waiting.lock();
        if taken.is_some() {
            waiting.forget(connection, budget);
            return taken;
        }
        if !waiting.queue.contains(&connection) {
            waiting.queue.push_back(connection);
        }
        if waiting.favoured.is_none() && self.used.load(Ordering::Relaxed) == 0 {
            waiting.favoured = Some(connection);
            budget.aside.store(bytes, Ordering::Relaxed);
        }
        budget.waiters.store(waiting.queue.len(), Ordering::Relaxed);
        drop(waiting);
        // Memory that was returned meanwhile has woken no connection.
        let taken = self.try_take(bytes, connection);
        if taken.is_some() {
            budget.waiting.lock().forget(connection, budget);
        }
        taken
    }

    /// Takes this many bytes if they are available now.
    pub(crate) fn try_take(
        self: &Arc<Self>,
        bytes: usize,
        connection: ConnectionId,
    ) -> Option<Grant> {
        let budget = &*self.budget;
        let own = self.used.fetch_add(bytes, Ordering::Relaxed);
        let all = budget.used.fetch_add(bytes, Ordering::Relaxed);
        let mut aside = budget.aside.load(Ordering::Relaxed);
        if aside > 0 && budget.waiting.lock().favoured == Some(connection) {
            aside = 0;
        }
        let free = budget.bytes_max.saturating_sub(all.saturating_add(aside));
        let granted =
            own + bytes <= FLOOR_BYTES || bytes <= free && (own == 0 || own + bytes <= free);
        if !granted {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            budget.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        granted.then(|| Grant { share: Some(self.clone()), bytes })
    }

    /// Takes memory for what is already stored: this can't be refused, and slows its owner down
    /// instead.
    pub(crate) fn add(self: &Arc<Self>, bytes: usize) -> Grant {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        Grant { share: Some(self.clone()), bytes }
    }

    fn give(&self, bytes: usize) {
        let own = self.used.fetch_sub(bytes, Ordering::Relaxed);
        let all = self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
        assert!(own >= bytes && all >= bytes, "more memory was returned than was taken");
        if bytes > 0 && self.budget.waiters.load(Ordering::Relaxed) > 0 {
            self.budget.waiting.lock().next();
            self.budget.has_woken.store(true, Ordering::Release);
        }
    }

    /// Adds to `wake` the waiting connections that may retry, since the last call.
    pub(crate) fn take_woken(&self, wake: &mut Vec<ConnectionId>) {
        let has_woken = &self.budget.has_woken;
        if has_woken.load(Ordering::Relaxed) && has_woken.swap(false, Ordering::Acquire) {
            wake.append(&mut self.budget.waiting.lock().woken);
        }
    }

    /// Removes a connection from those that wait.
    pub(crate) fn forget(&self, connection: ConnectionId) {
        if self.budget.waiters.load(Ordering::Relaxed) > 0 {
            self.budget.waiting.lock().forget(connection, &self.budget);
        }
    }

    /// Returns whether it has more than an equal share, so that it must return memory before it
    /// gets more.
    pub(crate) fn is_over(&self) -> bool {
        let own = self.used.load(Ordering::Relaxed);
        own > FLOOR_BYTES && own > self.budget.bytes_max.saturating_sub(self.budget.used())
    }
}

impl Waiting {
    /// Wakes the favoured connection, and those that have waited longest, which move to the end of
    /// the queue.
    fn next(&mut self) {
        let favoured = self.favoured.into_iter().collect::<Vec<_>>();
        let count = self.queue.len().min(WOKEN);
        let first: Vec<ConnectionId> = self.queue.iter().take(count).copied().collect();
        self.queue.rotate_left(count);
        for connection in favoured.into_iter().chain(first) {
            if !self.woken.contains(&connection) {
                self.woken.push(connection);
            }
        }
    }

    fn forget(&mut self, connection: ConnectionId, budget: &Budget) {
        self.queue.retain(|waiting| *waiting != connection);
        budget.waiters.store(self.queue.len(), Ordering::Relaxed);
        if self.favoured == Some(connection) {
            self.favoured = None;
            budget.aside.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn id(n: u64) -> ConnectionId {
        ConnectionId(n)
    }

    /// Takes MiBs until none is available.
    fn greedy(share: &Arc<Share>, connection: u64) -> Vec<Grant> {
        std::iter::from_fn(|| share.take(MIB, id(connection))).collect()
    }

    fn woken(share: &Share) -> Vec<ConnectionId> {
        let mut woken = Vec::new();
        share.take_woken(&mut woken);
        woken
    }

    #[test]
    fn one_initiator_gets_half_and_later_ones_a_fair_share() {
        let budget = Budget::new(64 * MIB);
        let shares = [0, 1, 2].map(|n| budget.share(&format!("iqn.{n}")));
        let mut first = greedy(&shares[0], 1);
        let (second, third) = (greedy(&shares[1], 2), greedy(&shares[2], 3));
        assert_eq!((first.len(), second.len(), third.len()), (32, 16, 8));
        assert!(Arc::ptr_eq(&shares[0], &budget.share("iqn.0")), "one for all its sessions");
        // The first one now exceeds its share, and can't take back what it returns.
        assert!(shares[0].is_over() && !shares[2].is_over());
        first.truncate(24);
        assert_eq!(greedy(&shares[0], 1).len(), 0);
        assert_eq!(greedy(&shares[2], 3).len(), 4);
    }

    #[test]
    fn memory_is_returned_when_its_grant_is_dropped() {
        let budget = Budget::new(64 * MIB);
        let share = budget.share("iqn.0");
        let mut grant = share.add(3 * MIB);
        grant.merge(share.take(MIB, id(1)).unwrap());
        grant.merge(Grant::default());
        let mut other = Grant::default();
        other.merge(share.add(MIB));
        assert_eq!((grant.bytes(), other.bytes(), budget.used()), (4 * MIB, MIB, 5 * MIB));
        grant.shrink_to(2 * MIB);
        grant.shrink_to(9 * MIB);
        assert_eq!((grant.bytes(), budget.used()), (2 * MIB, 3 * MIB));
        drop((grant, other));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn each_has_its_minimum_regardless_of_the_others() {
        let budget = Budget::new(4 * MIB);
        let hog = budget.share("hog");
        let all = hog.add(100 * MIB);
        for n in 0..100 {
            let share = budget.share(&format!("iqn.{n}"));
            let floor = share.take(FLOOR_BYTES, id(n));
            assert!(floor.is_some(), "{n}");
            assert!(share.take(1, id(n)).is_none());
            share.forget(id(n));
        }
        drop(all);
        assert_eq!((budget.used(), woken(&hog)), (0, vec![]));
    }

    #[test]
    fn a_long_command_of_an_initiator_without_memory_is_not_starved() {
        let budget = Budget::new(32 * MIB);
        let shares: Vec<_> = (0..15).map(|n| budget.share(&format!("iqn.{n}"))).collect();
        let long = budget.share("long");
        let mut grants: Vec<Vec<Grant>> =
            shares.iter().enumerate().map(|(n, share)| greedy(share, n as u64)).collect();
        assert!(long.take(16 * MIB, id(99)).is_none());
        // Each returns one and takes another, forever.
        let mut rounds = 0;
        loop {
            for (n, share) in shares.iter().enumerate() {
                grants[n].pop();
                grants[n].extend(share.take(MIB, id(n as u64)));
            }
            if woken(&long).contains(&id(99)) && long.take(16 * MIB, id(99)).is_some() {
                break;
            }
            rounds += 1;
            assert!(rounds < 100, "it is starved");
        }
        assert!(shares.iter().all(|share| share.used.load(Ordering::Relaxed) <= 2 * MIB));
    }

    #[test]
    fn waiting_connections_are_woken_in_turn_and_closed_ones_are_not() {
        let budget = Budget::new(4 * MIB);
        let hog = budget.share("hog");
        let mut all = hog.add(8 * MIB);
        let shares: Vec<_> = (0..10).map(|n| budget.share(&format!("iqn.{n}"))).collect();
        for (n, share) in shares.iter().enumerate() {
            assert!(share.take(2 * MIB, id(n as u64)).is_none());
        }
        shares[2].forget(id(2));
        let mut told = std::collections::BTreeSet::new();
        for n in 1..=4 {
            all.shrink_to(8 * MIB - n);
            let wake = woken(&hog);
            assert!(wake.len() <= WOKEN + 1);
            told.extend(wake.iter().map(|connection| connection.0));
        }
        assert_eq!(told.into_iter().collect::<Vec<_>>(), [0, 1, 3, 4, 5, 6, 7, 8, 9]);
    }
}
