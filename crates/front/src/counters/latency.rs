//! Latencies of commands: a histogram for each class that occurs.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The inclusive upper bounds of the buckets of command latency histograms, in microseconds. The
/// last bucket has no bound. Finer than the buckets of devices, because most commands need no
/// device.
pub const COMMAND_LATENCY_BOUNDS_US: [u64; 25] = [
    10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000,
    10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 10_000_000,
];

const BUCKETS: usize = COMMAND_LATENCY_BOUNDS_US.len() + 1;

/// The number of commands per bucket of [`COMMAND_LATENCY_BOUNDS_US`].
pub type CommandLatencies = [u64; BUCKETS];

/// The same with atomic counters. Memory is allocated with the first command, because an initiator
/// never sends most classes to a volume.
#[derive(Debug, Default)]
pub(super) struct LatencyCounters(OnceLock<Box<[AtomicU64; BUCKETS]>>);

impl LatencyCounters {
    /// Counts one command.
    pub(super) fn count(&self, latency_us: u64) {
        let at = COMMAND_LATENCY_BOUNDS_US.partition_point(|bound_us| *bound_us < latency_us);
        self.0.get_or_init(Box::default)[at].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the current values; `None` if nothing was counted.
    pub(super) fn snapshot(&self) -> Option<CommandLatencies> {
        let counts = self.0.get()?;
        Some(counts.each_ref().map(|count| count.load(Ordering::Relaxed)))
    }

    /// Adds counters that count no more.
    pub(super) fn absorb(&self, other: &Self) {
        let Some(more) = other.snapshot() else { return };
        for (count, more) in self.0.get_or_init(Box::default).iter().zip(more) {
            count.fetch_add(more, Ordering::Relaxed);
        }
    }
}

/// Adds one histogram to another.
pub(super) fn add(sum: &mut CommandLatencies, more: &CommandLatencies) {
    for (sum, more) in sum.iter_mut().zip(more) {
        *sum += more;
    }
}
