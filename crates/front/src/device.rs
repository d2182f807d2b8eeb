//! Counters of requests to the pool's device that hosts' commands wait for, with their latencies:
//! reads of data and metadata, and commits of the log. Checkpoints, reclaim and scrubbing have
//! their own transfers, which no command waits for and which are not counted here.

use segments::{TransferCounters, TransferSnapshot};

/// The device counters of one thread, on their own cache lines.
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

/// A snapshot of all threads' device counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSnapshot {
    /// Reads that commands wait for.
    pub reads: TransferSnapshot,
    /// Commits of the log.
    pub writes: TransferSnapshot,
}

impl DeviceSnapshot {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { reads: self.reads.plus(other.reads), writes: self.writes.plus(other.writes) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use segments::Latencies;

    use super::*;

    #[test]
    fn a_transfer_is_in_progress_until_it_ends() {
        let device = DeviceCounters::default();
        for _ in 0..3 {
            device.reads.begin();
        }
        device.reads.end(true, 4096, Duration::from_micros(80));
        device.reads.end(false, 4096, Duration::from_secs(1));
        device.writes.begin();
        let mut latencies = Latencies::default();
        latencies[0] = 1;
        let reads = TransferSnapshot {
            under_way: 1,
            latencies,
            failed: 1,
            bytes: 4096,
            ok_latency_us: 80,
            ok_latency_us_max: 80,
        };
        let writes = TransferSnapshot { under_way: 1, ..TransferSnapshot::default() };
        let snapshot = device.snapshot();
        assert_eq!(snapshot, DeviceSnapshot { reads, writes });
        assert_eq!(reads.ok(), 1);
        assert_eq!((reads.ended(), writes.ended()), (2, 0));
        let twice = snapshot.plus(snapshot);
        assert_eq!((twice.reads.under_way, twice.reads.bytes, twice.writes.ok()), (2, 8192, 0));
        assert_eq!(twice.reads.latencies[0], 2);
    }
}
