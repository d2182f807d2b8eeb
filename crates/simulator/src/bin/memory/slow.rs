//! A disk with slow reads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use block::{Frame, FrameMut};
use simulator::synthetic::SyntheticDisk;
use sys::Disk;

/// A disk that may be slow.
pub struct SlowDisk {
    pub below: Arc<SyntheticDisk>,
    latency_us: AtomicU64,
}

impl SlowDisk {
    /// Creates a disk as fast as the one below, for now.
    pub fn new(below: SyntheticDisk) -> Self {
        Self { below: Arc::new(below), latency_us: AtomicU64::new(0) }
    }

    /// Makes each read take so long from now on.
    pub fn set_latency(&self, latency: Duration) {
        self.latency_us.store(latency.as_micros() as u64, Relaxed);
    }
}

impl Disk for SlowDisk {
    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        let latency_us = self.latency_us.load(Relaxed);
        if latency_us > 0 {
            // Simulates the device.
            #[allow(clippy::disallowed_methods)]
            std::thread::sleep(Duration::from_micros(latency_us));
        }
        self.below.read(offset_bytes, frames)
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.below.write(offset_bytes, frames)
    }

    fn flush(&self) -> io::Result<()> {
        self.below.flush()
    }

    fn flush_failures(&self) -> u64 {
        self.below.flush_failures()
    }
}
