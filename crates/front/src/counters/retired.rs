//! What was done to volumes that are gone: it stays counted for the initiator that did it.
//!
//! Volumes come and go for as long as an array runs. Counters of each of them for each initiator
//! would take more memory each day; sums that go down when a volume is eradicated would tell less
//! than was done.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Counters, PathCounters, PathKey, raise};

impl Counters {
    /// Moves the counters of an initiator and a volume that is gone to those that the initiator has
    /// without a volume. `held` are the caller's own.
    ///
    /// Tells whether it did: not where somebody else still holds them, who may count more.
    pub fn retire(&self, key: &PathKey, held: &Arc<PathCounters>) -> bool {
        let mut paths = self.paths.write();
        // The list's and the caller's: who wants others takes them from the list.
        if Arc::strong_count(held) > 2 || !paths.get(key).is_some_and(|it| Arc::ptr_eq(it, held)) {
            return false;
        }
        paths.remove(key);
        // Before the lock is let go, or who sums up all would miss it.
        paths.entry((key.0.clone(), None)).or_default().absorb(held);
        true
    }
}

impl PathCounters {
    /// Adds what others have counted, who count no more.
    fn absorb(&self, other: &Self) {
        let others = other.classes.iter().zip(other.snapshot());
        for (class, (others, more)) in self.classes.iter().zip(others) {
            class.ok.fetch_add(more.ok, Ordering::Relaxed);
            class.failed.fetch_add(more.failed, Ordering::Relaxed);
            class.bytes.fetch_add(more.bytes, Ordering::Relaxed);
            class.ok_latency_us.fetch_add(more.ok_latency_us, Ordering::Relaxed);
            class.failed_latency_us.fetch_add(more.failed_latency_us, Ordering::Relaxed);
            raise(&class.largest_bytes, more.largest_bytes);
            class.latencies.absorb(&others.latencies);
        }
        for (sum, more) in
            [(&self.reserves, &other.reserves), (&self.zeros_bytes, &other.zeros_bytes)]
        {
            sum.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.copied_from.absorb(other.copied_from.snapshot());
        self.copied_to.absorb(other.copied_to.snapshot());
    }
}
