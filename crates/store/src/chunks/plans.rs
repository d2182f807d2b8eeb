//! Keeping the metadata with which a change was planned in memory until it is applied.
//!
//! An entry is applied when its record is durable, under the writer's lock: it must find what it
//! was planned with, without waiting for the device. Reference counts would cost each change a
//! write to each page. Instead plans have *numbers*, like the epochs in epoch-based reclamation: a
//! plan marks what it uses with the current number ([`Plans::now`]), and what is marked with the
//! oldest number that is still needed ([`Plans::oldest`]), or a later one, is not evicted.
//!
//! Invariants:
//! 1. `oldest <= now`, and neither decreases. So what was just marked stays, at least until the
//!    writer's lock was held.
//! 2. `oldest` is changed under the writer's lock, and is at most the number of each change that
//!    has joined a record and is not applied, and of each [`Held`]. A change joins with a number
//!    that is at least `oldest`, or is planned again under that lock.
//! 3. The number increases only when too little can be evicted. So if all metadata fits in memory
//!    nothing is ever planned twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The numbers of plans.
#[derive(Default)]
pub(crate) struct Plans {
    /// 0 while a pool is being opened, when nothing is planned.
    now: AtomicU64,
    oldest: AtomicU64,
    /// The numbers of background work, which takes longer than a commit, and how many have each.
    held: Mutex<BTreeMap<u64, u32>>,
    /// Set when too little can be evicted.
    wanted: AtomicBool,
}

impl Plans {
    /// Returns the current number for plans; 0: nothing is marked.
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Acquire)
    }

    /// Returns the oldest needed number: what is marked with it, or a later one, stays.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest.load(Ordering::Acquire)
    }

    /// Begins planning, once a pool is open.
    pub(crate) fn begin(&self) {
        self.now.store(1, Ordering::Release);
        self.oldest.store(1, Ordering::Release);
    }

    /// Requests that more can be evicted.
    pub(crate) fn want(&self) {
        if !self.wanted.load(Ordering::Relaxed) {
            self.wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether [`Plans::turn`] would allow more to be evicted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Allows eviction of what is older than the oldest unapplied change. The caller holds the
    /// writer's lock.
    pub(crate) fn turn(&self, unapplied: Option<u64>) {
        let held = self.held.lock();
        if self.now() > 0 && self.wanted.swap(false, Ordering::Relaxed) {
            self.now.fetch_add(1, Ordering::AcqRel);
        }
        let first = held.first_key_value().map(|(number, _)| *number);
        let oldest = [unapplied, first].into_iter().flatten().fold(self.now(), u64::min);
        debug_assert!(oldest >= self.oldest(), "the oldest needed number never decreases");
        self.oldest.store(oldest, Ordering::Release);
    }

    /// Returns a number that stays needed while it is held.
    pub(crate) fn hold(self: &Arc<Self>) -> Held {
        let mut held = self.held.lock();
        let number = self.now();
        *held.entry(number).or_default() += 1;
        Held { plans: self.clone(), number }
    }
}

/// Keeps what is marked with a number in memory.
pub(crate) struct Held {
    plans: Arc<Plans>,
    pub(crate) number: u64,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Held({})", self.number)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.plans.held.lock();
        if let Some(count) = held.get_mut(&self.number) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.number);
            }
        }
    }
}

/// The number of the last plan that has used something.
#[derive(Debug, Default)]
pub(crate) struct Mark(AtomicU64);

impl Mark {
    /// Marks it as used by a plan with this number.
    #[inline]
    pub(crate) fn set(&self, number: u64) {
        if self.0.load(Ordering::Relaxed) < number {
            self.0.fetch_max(number, Ordering::AcqRel);
        }
    }

    /// Returns whether no plan needs it any longer.
    pub(crate) fn is_before(&self, oldest: u64) -> bool {
        let number = self.0.load(Ordering::Acquire);
        number == 0 || number < oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_needed_number_does_not_advance() {
        let plans = Arc::<Plans>::default();
        let mark = Mark::default();
        mark.set(plans.now());
        assert!(mark.is_before(plans.oldest()), "while a pool is opened everything may be evicted");
        plans.begin();
        mark.set(plans.now());
        assert!(!mark.is_before(plans.oldest()));
        plans.turn(None);
        assert_eq!((plans.now(), plans.oldest()), (1, 1), "there is no shortage");
        // An unapplied change keeps it, and then one in the background.
        plans.want();
        plans.turn(Some(1));
        assert_eq!((plans.now(), plans.oldest()), (2, 1));
        plans.want();
        let held = plans.hold();
        plans.turn(None);
        assert_eq!((plans.now(), plans.oldest()), (3, 2));
        assert!(mark.is_before(plans.oldest()));
        mark.set(held.number);
        assert!(!mark.is_before(plans.oldest()));
        drop(held);
        plans.turn(None);
        assert!(plans.oldest() == 3 && mark.is_before(3));
    }

    #[test]
    fn a_plan_with_two_holders_stays_until_both_release_it() {
        let plans = Arc::<Plans>::default();
        plans.begin();
        let mark = Mark::default();
        let [one, other] = [plans.hold(), plans.hold()];
        mark.set(one.number);
        for held in [one, other] {
            plans.want();
            plans.turn(None);
            assert!(!mark.is_before(plans.oldest()));
            drop(held);
        }
        plans.turn(None);
        assert!(mark.is_before(plans.oldest()));
    }
}
