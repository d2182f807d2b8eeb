//! I/O counters: the number of transfers, their bytes, and their latencies.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The upper bounds of the buckets of a histogram, in microseconds, inclusive. The last bucket has
/// none.
pub const LATENCY_BOUNDS_US: [u64; 14] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 10_000_000,
];

const BUCKETS: usize = LATENCY_BOUNDS_US.len() + 1;

/// The number of transfers in each bucket of [`LATENCY_BOUNDS_US`].
pub type Latencies = [u64; BUCKETS];

/// Transfers of one kind. Counting one costs some atomic additions.
#[derive(Debug, Default)]
pub struct TransferCounters {
    begun: AtomicU64,
    /// Those that succeeded.
    latencies: [AtomicU64; BUCKETS],
    failed: AtomicU64,
    bytes: AtomicU64,
    ok_latency_us: AtomicU64,
    ok_latency_us_max: AtomicU64,
}

impl TransferCounters {
    /// Counts the beginning of one.
    pub fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a request of this many bytes, with its latency.
    pub fn end(&self, ok: bool, bytes: u64, latency: Duration) {
        if ok {
            let latency_us = latency.as_micros() as u64;
            let bucket = LATENCY_BOUNDS_US.partition_point(|bound_us| *bound_us < latency_us);
            self.latencies[bucket].fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.ok_latency_us.fetch_add(latency_us, Ordering::Relaxed);
            // Usually it is not, and then nothing is written.
            if latency_us > self.ok_latency_us_max.load(Ordering::Relaxed) {
                self.ok_latency_us_max.fetch_max(latency_us, Ordering::Relaxed);
            }
        } else {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Uncounts the beginning of one that will begin once more later.
    fn withdraw(&self) {
        self.begun.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a call that returns how many bytes it has transferred.
    pub(crate) fn count(&self, call: impl FnOnce() -> io::Result<usize>) -> io::Result<usize> {
        let timed = self.start();
        let result = call();
        self.stop(timed, &result);
        result
    }

    /// Counts the beginning of a call.
    pub(crate) fn start(&self) -> Timed {
        self.begin();
        Timed(Instant::now())
    }

    /// Counts its end, with how many bytes it has transferred.
    pub(crate) fn stop(&self, Timed(begun): Timed, result: &io::Result<usize>) {
        match result {
            Ok(bytes) => self.end(true, *bytes as u64, begun.elapsed()),
            Err(error) if is_not_now(error) => self.withdraw(),
            Err(_) => self.end(false, 0, begun.elapsed()),
        }
    }

    /// Returns the counts.
    pub fn snapshot(&self) -> TransferSnapshot {
        // First what has ended; otherwise more could have ended than have begun.
        let latencies = self.latencies.each_ref().map(|count| count.load(Ordering::Relaxed));
        let mut snapshot = TransferSnapshot {
            under_way: 0,
            latencies,
            failed: self.failed.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            ok_latency_us: self.ok_latency_us.load(Ordering::Relaxed),
            ok_latency_us_max: self.ok_latency_us_max.load(Ordering::Relaxed),
        };
        let begun = self.begun.load(Ordering::Relaxed);
        snapshot.under_way = begun.saturating_sub(snapshot.ended());
        snapshot
    }
}

/// The counts of one direction at one time, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferSnapshot {
    /// Those that have not ended yet.
    pub under_way: u64,
    /// The latencies of those that succeeded.
    pub latencies: Latencies,
    /// Those that failed.
    pub failed: u64,
    /// Bytes that the successful ones transferred.
    pub bytes: u64,
    /// The sum of the latencies of the successful ones, including the flush of a commit that has
    /// one.
    pub ok_latency_us: u64,
    /// The maximum of these latencies.
    pub ok_latency_us_max: u64,
}

impl TransferSnapshot {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            under_way: self.under_way + other.under_way,
            latencies: std::array::from_fn(|at| self.latencies[at] + other.latencies[at]),
            failed: self.failed + other.failed,
            bytes: self.bytes + other.bytes,
            ok_latency_us: self.ok_latency_us + other.ok_latency_us,
            ok_latency_us_max: self.ok_latency_us_max.max(other.ok_latency_us_max),
        }
    }

    /// Returns how many succeeded.
    pub fn ok(self) -> u64 {
        self.latencies.iter().sum()
    }

    /// Returns how many have ended, with or without success.
    pub fn ended(self) -> u64 {
        self.ok() + self.failed
    }
}

/// A call that was counted as begun, and its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed(Instant);

/// Returns whether a call that failed so is repeated because the device was not asked, or not in
/// this way.
fn is_not_now(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EOPNOTSUPP))
}

/// Calls to a disk since it was opened, including those of background work and repeated ones; on
/// separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct DiskCounters {
    pub(crate) reads: TransferCounters,
    /// Including those with their own flush.
    pub(crate) writes: TransferCounters,
    pub(crate) flushes: TransferCounters,
}

impl DiskCounters {
    pub(crate) fn snapshot(&self) -> DiskSnapshot {
        DiskSnapshot {
            reads: self.reads.snapshot(),
            writes: self.writes.snapshot(),
            flushes: self.flushes.snapshot(),
        }
    }
}

/// The calls to a disk since it was opened, for all callers: a transfer in several calls, or a
/// retried one, counts as often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskSnapshot {
    /// Reads.
    pub reads: TransferSnapshot,
    /// Writes, including those with their own flush.
    pub writes: TransferSnapshot,
    /// Separate flushes.
    pub flushes: TransferSnapshot,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use block::{Frame, FrameMut};

    use super::*;
    use crate::{Disk, FileDisk, Persist, Ring};

    #[test]
    fn a_repeated_call_is_not_counted_twice() {
        let counters = TransferCounters::default();
        for code in [libc::EINTR, libc::EAGAIN, libc::EOPNOTSUPP, libc::EIO] {
            let error = || Err(io::Error::from_raw_os_error(code));
            assert!(counters.count(error).is_err());
        }
        assert_eq!(counters.count(|| Ok(4096)).unwrap(), 4096);
        let snapshot = counters.snapshot();
        let ended = (snapshot.ok(), snapshot.failed, snapshot.bytes, snapshot.under_way);
        assert_eq!(ended, (1, 1, 4096, 0));
    }

    /// By blocking callers, and by rings.
    #[test]
    fn a_file_counts_its_calls() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk");
        let disk = Arc::new(FileDisk::create(&path, 1 << 20).unwrap());
        let frames = [Frame::zeros(), Frame::zeros()];
        disk.write(0, &frames).unwrap();
        disk.flush().unwrap();
        disk.write_and_flush(&mut || Ok(())).unwrap();
        let mut ring = Ring::new(disk.clone(), 4);
        ring.write(1, 8192, frames.to_vec(), Persist::All).unwrap();
        ring.read(2, 0, vec![FrameMut::stale()]).unwrap();
        ring.submit().unwrap();
        let mut ended = Vec::new();
        while ended.len() < 2 {
            ring.wait().unwrap();
            ring.complete(&mut ended).unwrap();
        }
        let DiskSnapshot { reads, writes, flushes } = disk.counts();
        assert_eq!((reads.ok(), reads.bytes), (1, 4096));
        assert_eq!((writes.ok(), writes.bytes), (2, 16_384));
        assert_eq!((flushes.ok(), flushes.bytes), (3, 0));
        assert_eq!(reads.under_way + writes.under_way + flushes.under_way, 0);
        assert!(disk.read(1 << 20, &mut [FrameMut::stale()]).is_err());
        assert_eq!(disk.counts().reads, reads, "a read past the end does not count");
    }

    #[test]
    fn a_bucket_ends_with_its_bound() {
        let counters = TransferCounters::default();
        for latency_us in [0, 100, 101, 10_000_000, 10_000_001, u64::MAX / 2] {
            counters.end(true, 512, Duration::from_micros(latency_us));
        }
        let snapshot = counters.snapshot();
        assert_eq!((snapshot.ok(), snapshot.ok_latency_us_max), (6, u64::MAX / 2));
        assert_eq!(snapshot.latencies, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    }
}
