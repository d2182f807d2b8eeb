//! What hosts' commands ask of the pool's device, and how long that takes: reads of data and
//! metadata that they wait for, and commits of the log. Checkpoints, reclaim and scrubbing have
//! transfers of their own, which nobody waits for, and which are not counted here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Transfers of one direction.
#[derive(Debug, Default)]
pub(super) struct TransferCounters {
    begun: AtomicU64,
    ok: AtomicU64,
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
            self.ok.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.ok_latency_us.fetch_add(latency.as_micros() as u64, Ordering::Relaxed);
        } else {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn snapshot(&self) -> TransferSnapshot {
        // First what has ended, or more could have ended than have begun.
        let (ok, failed) = (self.ok.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        TransferSnapshot {
            under_way: self.begun.load(Ordering::Relaxed).saturating_sub(ok + failed),
            ok,
            failed,
            bytes: self.bytes.load(Ordering::Relaxed),
            ok_latency_us: self.ok_latency_us.load(Ordering::Relaxed),
        }
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
    /// Those that succeeded.
    pub ok: u64,
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
            ok: self.ok + other.ok,
            failed: self.failed + other.failed,
            bytes: self.bytes + other.bytes,
            ok_latency_us: self.ok_latency_us + other.ok_latency_us,
        }
    }

    /// Those that have ended, one way or the other.
    pub(super) fn ended(self) -> u64 {
        self.ok + self.failed
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
    pub(super) fn plus(self, other: Self) -> Self {
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
        let reads =
            TransferSnapshot { under_way: 1, ok: 1, failed: 1, bytes: 4096, ok_latency_us: 80 };
        let writes = TransferSnapshot { under_way: 1, ..TransferSnapshot::default() };
        let snapshot = device.snapshot();
        assert_eq!(snapshot, DeviceSnapshot { reads, writes });
        assert_eq!((reads.ended(), writes.ended()), (2, 0));
        let twice = snapshot.plus(snapshot);
        assert_eq!((twice.reads.under_way, twice.reads.bytes, twice.writes.ok), (2, 8192, 0));
    }
}
