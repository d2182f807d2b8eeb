//! Counters of eradicated volumes: they are kept in a sum for each initiator.
//!
//! Volumes are created and eradicated for as long as an array runs. Separate counters of each of
//! them for each initiator would take more memory each day, and if they were dropped, sums would
//! decrease.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Counters, PathCounters, PathKey, raise};

impl Counters {
    /// Adds the counters of an initiator and an eradicated volume to the initiator's counters
    /// without a volume. `held` is the caller's reference to them.
    ///
    /// Returns false without a change if another holder of a reference may still count.
    pub fn retire(&self, key: &PathKey, held: &Arc<PathCounters>) -> bool {
        let mut paths = self.paths.write();
        // The list and the caller have one reference each; new ones are taken from the list.
        if Arc::strong_count(held) > 2 || !paths.get(key).is_some_and(|it| Arc::ptr_eq(it, held)) {
            return false;
        }
        paths.remove(key);
        // Add before releasing the lock, so that totals never miss it.
        paths.entry((key.0.clone(), None)).or_default().absorb(held);
        true
    }
}

impl PathCounters {
    /// Adds counters that count no more.
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
