//! Counters of threads' turns.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Counters;

/// The counters of one thread's turns.
#[derive(Debug, Default)]
pub(crate) struct TurnCounters {
    turns: AtomicU64,
    most_bytes: AtomicU64,
}

impl TurnCounters {
    /// Counts a turn that started this much work.
    pub(crate) fn note(&self, bytes: u64) {
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.most_bytes.fetch_max(bytes, Ordering::Relaxed);
    }
}

/// A snapshot of all threads' turns, which tests check against bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnSnapshot {
    /// The number of turns. An idle thread takes two per second.
    pub turns: u64,
    /// The most work that one of them started, in bytes read, verified and packed.
    pub most_bytes: u64,
}

impl Counters {
    /// Returns a snapshot of all threads' turns.
    pub fn turns(&self) -> TurnSnapshot {
        let turns = self.turns.iter().map(|thread| thread.turns.load(Ordering::Relaxed)).sum();
        let most = self.turns.iter().map(|thread| thread.most_bytes.load(Ordering::Relaxed));
        TurnSnapshot { turns, most_bytes: most.max().unwrap_or(0) }
    }
}
