//! The time until which this process may answer hosts.
//!
//! A fence keeps an old owner from writing, but not from answering a read from memory. So it
//! answers only while no other controller can have taken the pool: for a limited time after a
//! quorum of devices has confirmed that it is the owner. The time is that of a clock that continues
//! while the machine sleeps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The interval for checking whether there is a lease again.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Returns the time of that clock, in milliseconds.
pub(in crate::serve::controllers) fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let ms = now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000);
    u64::try_from(ms).unwrap_or_default()
}

/// A lease, initially expired.
#[derive(Debug, Default)]
pub struct Lease {
    until_ms: AtomicU64,
    has_ended: AtomicBool,
}

impl Lease {
    /// Returns whether it has not expired.
    pub fn is_valid(&self) -> bool {
        self.is_valid_at(now_ms())
    }

    pub(super) fn is_valid_at(&self, now_ms: u64) -> bool {
        !self.has_ended.load(Ordering::Acquire) && now_ms < self.until_ms.load(Ordering::Acquire)
    }

    /// Waits until it is valid. Forever, once this process is fenced, because it ends.
    pub fn wait(&self) {
        while !self.is_valid() {
            thread::sleep(LOOK_INTERVAL);
        }
    }

    pub(super) fn extend(&self, until_ms: u64) {
        self.until_ms.fetch_max(until_ms, Ordering::AcqRel);
    }

    /// Ends the lease for good.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }
}
