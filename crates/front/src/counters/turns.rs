//! What threads have done in their turns.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Counters;

/// What one thread has done in its turns.
#[derive(Debug, Default)]
pub(crate) struct TurnCounters {
    turns: AtomicU64,
    most_bytes: AtomicU64,
}

impl TurnCounters {
    /// A turn has ended that has begun so much.
    pub(crate) fn note(&self, bytes: u64) {
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.most_bytes.fetch_max(bytes, Ordering::Relaxed);
    }
}

/// The turns of all threads: what tests bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnSnapshot {
    /// How many there were: a thread that has nothing to do takes two a second.
    pub turns: u64,
    /// The most work that one of them has begun, in bytes that are read, checked and packed in that
    /// time.
    pub most_bytes: u64,
}

impl Counters {
    /// What the threads have done in their turns.
    pub fn turns(&self) -> TurnSnapshot {
        let turns = self.turns.iter().map(|thread| thread.turns.load(Ordering::Relaxed)).sum();
        let most = self.turns.iter().map(|thread| thread.most_bytes.load(Ordering::Relaxed));
        TurnSnapshot { turns, most_bytes: most.max().unwrap_or(0) }
    }
}
