//! What hosts' commands ask of the pool's device, and how long that takes: reads of data and
//! metadata that they wait for, and commits of the log. Checkpoints, reclaim and scrubbing have
//! transfers of their own, which nobody waits for, and which are not counted here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The latencies at which the buckets of a histogram end, in microseconds, each included. The last
/// bucket has no end.
pub const LATENCY_BOUNDS_US: [u64; 14] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 10_000_000,
];

const BUCKETS: usize = LATENCY_BOUNDS_US.len() + 1;

/// How many transfers took how long, by [`LATENCY_BOUNDS_US`].
pub type Latencies = [u64; BUCKETS];

/// Transfers of one direction.
#[derive(Debug, Default)]
pub(super) struct TransferCounters {
    begun: AtomicU64,
    /// Those that succeeded.
    latencies: [AtomicU64; BUCKETS],
    failed: AtomicU64,
    bytes: AtomicU64,
    ok_latency_us: AtomicU64,
}

impl TransferCounters {
    /// One was given to the device.
    pub(super) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// One of so many bytes has ended, so long after it began.
    pub(super) fn end(&self, ok: bool, bytes: u64, latency: Duration) {
        if ok {
            let latency_us = latency.as_micros() as u64;
            let bucket = LATENCY_BOUNDS_US.partition_point(|bound_us| *bound_us < latency_us);
            self.latencies[bucket].fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.ok_latency_us.fetch_add(latency_us, Ordering::Relaxed);
        } else {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn snapshot(&self) -> TransferSnapshot {
        // First what has ended, or more could have ended than have begun.
        let latencies = self.latencies.each_ref().map(|count| count.load(Ordering::Relaxed));
        let mut snapshot = TransferSnapshot {
            under_way: 0,
            latencies,
            failed: self.failed.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            ok_latency_us: self.ok_latency_us.load(Ordering::Relaxed),
        };
        let begun = self.begun.load(Ordering::Relaxed);
        snapshot.under_way = begun.saturating_sub(snapshot.ended());
        snapshot
    }
}

/// What one thread asks of the device; on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct DeviceCounters {
    pub(super) reads: TransferCounters,
    pub(super) writes: TransferCounters,
}

impl DeviceCounters {
    pub(super) fn snapshot(&self) -> DeviceSnapshot {
        DeviceSnapshot { reads: self.reads.snapshot(), writes: self.writes.snapshot() }
    }
}

/// Transfers of one direction at one moment, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferSnapshot {
    /// Those that the device has not ended yet.
    pub under_way: u64,
    /// How long those took that succeeded.
    pub latencies: Latencies,
    /// Those that the device failed.
    pub failed: u64,
    /// Bytes that the successful ones moved.
    pub bytes: u64,
    /// The sum of the latencies of the successful ones: with the flush, where a commit has one.
    pub ok_latency_us: u64,
}

impl TransferSnapshot {
    fn plus(self, other: Self) -> Self {
        Self {
            under_way: self.under_way + other.under_way,
            latencies: std::array::from_fn(|at| self.latencies[at] + other.latencies[at]),
            failed: self.failed + other.failed,
            bytes: self.bytes + other.bytes,
            ok_latency_us: self.ok_latency_us + other.ok_latency_us,
        }
    }

    /// Those that succeeded.
    pub fn ok(self) -> u64 {
        self.latencies.iter().sum()
    }

    /// Those that have ended, one way or the other.
    pub fn ended(self) -> u64 {
        self.ok() + self.failed
    }
}

/// What all threads ask of the device, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSnapshot {
    /// Reads that commands wait for.
    pub reads: TransferSnapshot,
    /// Commits of the log.
    pub writes: TransferSnapshot,
}

impl DeviceSnapshot {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { reads: self.reads.plus(other.reads), writes: self.writes.plus(other.writes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_begun_is_under_way_until_it_ends() {
        let device = DeviceCounters::default();
        for _ in 0..3 {
            device.reads.begin();
        }
        device.reads.end(true, 4096, Duration::from_micros(80));
        device.reads.end(false, 4096, Duration::from_secs(1));
        device.writes.begin();
        let mut latencies = Latencies::default();
        latencies[0] = 1;
        let reads =
            TransferSnapshot { under_way: 1, latencies, failed: 1, bytes: 4096, ok_latency_us: 80 };
        let writes = TransferSnapshot { under_way: 1, ..TransferSnapshot::default() };
        let snapshot = device.snapshot();
        assert_eq!(snapshot, DeviceSnapshot { reads, writes });
        assert_eq!(reads.ok(), 1);
        assert_eq!((reads.ended(), writes.ended()), (2, 0));
        let twice = snapshot.plus(snapshot);
        assert_eq!((twice.reads.under_way, twice.reads.bytes, twice.writes.ok()), (2, 8192, 0));
        assert_eq!(twice.reads.latencies[0], 2);
    }

    #[test]
    fn a_bucket_ends_with_its_bound() {
        let counters = TransferCounters::default();
        for latency_us in [0, 100, 101, 10_000_000, 10_000_001, u64::MAX / 2] {
            counters.end(true, 512, Duration::from_micros(latency_us));
        }
        let snapshot = counters.snapshot();
        assert_eq!(snapshot.ok(), 6);
        assert_eq!(snapshot.latencies, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    }
}
