//! How long commands took: a histogram for each class that occurs.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The latencies at which the buckets of commands' histograms end, in microseconds, each included.
/// The last bucket has no end. Finer than those of devices: most commands need none.
pub const COMMAND_LATENCY_BOUNDS_US: [u64; 25] = [
    10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000,
    10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 10_000_000,
];

const BUCKETS: usize = COMMAND_LATENCY_BOUNDS_US.len() + 1;

/// How many commands took how long, by [`COMMAND_LATENCY_BOUNDS_US`].
pub type CommandLatencies = [u64; BUCKETS];

/// The same while they are counted. It takes memory from the first command on: most of what an
/// initiator may do to a volume it never does.
#[derive(Debug, Default)]
pub(super) struct LatencyCounters(OnceLock<Box<[AtomicU64; BUCKETS]>>);

impl LatencyCounters {
    /// Counts one command.
    pub(super) fn count(&self, latency_us: u64) {
        let at = COMMAND_LATENCY_BOUNDS_US.partition_point(|bound_us| *bound_us < latency_us);
        self.0.get_or_init(Box::default)[at].fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted; `None` if nothing was.
    pub(super) fn snapshot(&self) -> Option<CommandLatencies> {
        let counts = self.0.get()?;
        Some(counts.each_ref().map(|count| count.load(Ordering::Relaxed)))
    }

    /// Adds what others have counted, who count no more.
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
