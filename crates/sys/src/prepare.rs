//! Preparing space for fast durable writes.
//!
//! A filesystem that reserves space for a file marks it "unwritten", and the first write to each
//! part of it changes that mark. A durable write must then wait for the filesystem's own journal,
//! which makes it several times as expensive as a second write to the same location. So a file's
//! space is written once with zeros before the log gets there: by [`FileDisk::prepare_ahead`], or
//! by a [`Preparer`], a thread that keeps ahead of the writes that it sees.
//!
//! [`crate::units`] prevents zeros from ever overwriting data.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use crate::file::FileDisk;
use crate::units::{STEP_UNITS, UNIT_BYTES, UNTOUCHED, WRITTEN};

impl FileDisk {
    /// Writes zeros durably to the parts of `offset_bytes..offset_bytes + len_bytes` that were
    /// never written, in whole MiB within the range, so that later durable writes there are fast.
    /// Never overwrites data, even with concurrent writers. Returns the bytes that it wrote.
    ///
    /// # Errors
    /// Those of the device. Units that were not done stay as they were.
    pub fn prepare_ahead(&self, offset_bytes: u64, len_bytes: u64) -> io::Result<u64> {
        let end = offset_bytes.saturating_add(len_bytes).min(crate::Disk::len_bytes(self));
        let mut rest = offset_bytes.div_ceil(UNIT_BYTES)..end / UNIT_BYTES;
        let mut done_bytes = 0;
        while let Some(units) = self.units().claim_for_zeros(rest.clone()) {
            let start_bytes = units.start * UNIT_BYTES;
            let bytes = (units.end - units.start) * UNIT_BYTES;
            let result = self.write_zeros(start_bytes, bytes);
            let state = if result.is_ok() { WRITTEN } else { UNTOUCHED };
            self.units().release(units.clone(), state);
            result?;
            done_bytes += bytes;
            rest.start = units.end;
        }
        Ok(done_bytes)
    }

    /// Returns how many bytes were never written.
    pub fn untouched_bytes(&self) -> u64 {
        self.units().untouched_count() * UNIT_BYTES
    }
}

/// A thread that prepares space ahead of the disk's writes. Ends when it is dropped.
#[derive(Debug)]
pub struct Preparer {
    disk: Arc<FileDisk>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Preparer {
    /// Keeps `ahead_bytes` after the latest write prepared, and starts again when half of that is
    /// used up. Calls `report` once if the device refuses; preparing then ends, which only costs
    /// speed.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        disk: Arc<FileDisk>,
        ahead_bytes: u64,
        report: impl Fn(&str) + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (its_disk, its_stop) = (disk.clone(), stop.clone());
        let thread = thread::Builder::new().name("prepare".into()).spawn(move || {
            let ahead_units = (ahead_bytes / UNIT_BYTES).max(2);
            if let Err(error) = prepare_until_stopped(&its_disk, ahead_units, &its_stop) {
                report(&format!(
                    "could not prepare space ahead of the log ({error}): \
                     durable writes to new space will be slower"
                ));
            }
        })?;
        Ok(Self { disk, stop, thread: Some(thread) })
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        {
            let units = self.disk.units();
            let _changed = units.changed.lock().unwrap_or_else(PoisonError::into_inner);
            self.stop.store(true, Ordering::Release);
            units.wanted.notify_all();
        }
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

fn prepare_until_stopped(disk: &FileDisk, ahead_units: u64, stop: &AtomicBool) -> io::Result<()> {
    let units = disk.units();
    let mut seen = u64::MAX;
    loop {
        {
            let mut changed = units.changed.lock().unwrap_or_else(PoisonError::into_inner);
            while !stop.load(Ordering::Acquire) && units.latest.load(Ordering::Relaxed) == seen {
                changed = units.wanted.wait(changed).unwrap_or_else(PoisonError::into_inner);
            }
        }
        seen = units.latest.load(Ordering::Relaxed);
        let near_end = seen.saturating_add(ahead_units / 2);
        if !(seen..=near_end).any(|unit| units.is_untouched(unit)) {
            if stop.load(Ordering::Acquire) {
                return Ok(());
            }
            continue;
        }
        let mut next = seen;
        while next <= seen + ahead_units {
            if stop.load(Ordering::Acquire) {
                return Ok(());
            }
            let step = STEP_UNITS.min(seen + ahead_units + 1 - next);
            disk.prepare_ahead(next * UNIT_BYTES, step * UNIT_BYTES)?;
            next += step;
        }
    }
}
