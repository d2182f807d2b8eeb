//! Space that is ready to be written durably.
//!
//! A filesystem that reserves space for a file marks it "unwritten", and the first write to each
//! part of it changes that mark. A durable write must then wait for the filesystem's own journal,
//! which makes it several times as dear as a second write to the same place. So a file's space is
//! written once with zeros before the log gets there: by [`FileDisk::prepare_ahead`], or by a
//! [`Preparer`], a thread that keeps ahead of the writes that it sees.
//!
//! What keeps zeros from ever overwriting data: each unit of 1 MiB is in one of three states, and
//! leaves [`UNTOUCHED`] once, by one compare-and-swap, either for a writer's data or for zeros. A
//! writer that finds zeros under way waits until they are down.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::file::FileDisk;

/// Bytes of a unit.
pub const UNIT_BYTES: u64 = 1 << 20;

/// The most units whose zeros are written and flushed together. The flush makes concurrent durable
/// writes wait for the journal, so there must not be many; and a writer that gets there, or that
/// needs the device meanwhile, waits for all of it, so it must not last long.
const STEP_UNITS: u64 = 8;

/// Reserved or a hole: never written.
const UNTOUCHED: u8 = 0;
/// Zeros are being written.
const PREPARING: u8 = 1;
/// Written: data may be there.
const WRITTEN: u8 = 2;

/// What is known of a file's units.
#[derive(Debug)]
pub(crate) struct Units {
    /// Empty where all is taken for written.
    states: Box<[AtomicU8]>,
    /// The unit that was written last.
    latest: AtomicU64,
    /// Held while waiting for the end of a preparation, and to announce it.
    changed: Mutex<()>,
    prepared: Condvar,
    wanted: Condvar,
}

impl Units {
    /// Units of a disk whose space is all ready.
    pub(crate) fn all_written() -> Self {
        Self::of(Box::default())
    }

    /// Units of a file, of which only `written` (in order) was ever written. A unit that was
    /// written in part counts as written.
    pub(crate) fn with_written(len_bytes: u64, written: &[Range<u64>]) -> Self {
        // The last, partial unit is not worth preparing, and is left out.
        let states: Box<[AtomicU8]> =
            (0..len_bytes / UNIT_BYTES).map(|_| AtomicU8::new(UNTOUCHED)).collect();
        for range in written {
            let first = range.start / UNIT_BYTES;
            let end = range.end.div_ceil(UNIT_BYTES).min(states.len() as u64);
            for unit in first..end {
                states[unit as usize].store(WRITTEN, Ordering::Relaxed);
            }
        }
        Self::of(states)
    }

    fn of(states: Box<[AtomicU8]>) -> Self {
        Self {
            states,
            latest: AtomicU64::new(u64::MAX),
            changed: Mutex::new(()),
            prepared: Condvar::new(),
            wanted: Condvar::new(),
        }
    }

    /// Must be called before data is written. Waits where zeros are under way.
    pub(crate) fn before_write(&self, offset_bytes: u64, len_bytes: u64) {
        if self.states.is_empty() || len_bytes == 0 {
            return;
        }
        let end = offset_bytes.saturating_add(len_bytes);
        let units = offset_bytes / UNIT_BYTES..end.div_ceil(UNIT_BYTES);
        for state in units.clone().filter_map(|unit| self.states.get(unit as usize)) {
            if state.load(Ordering::Acquire) != WRITTEN {
                self.claim_for_data(state);
            }
        }
        let last = units.end - 1;
        if self.latest.swap(last, Ordering::Relaxed) != last {
            let _changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
            self.wanted.notify_all();
        }
    }

    fn claim_for_data(&self, state: &AtomicU8) {
        // More than one turn only where zeros failed, which makes the unit untouched again.
        while state.compare_exchange(UNTOUCHED, WRITTEN, Ordering::AcqRel, Ordering::Acquire)
            == Err(PREPARING)
        {
            let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
            while state.load(Ordering::Acquire) == PREPARING {
                changed = self.prepared.wait(changed).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Takes untouched units from the front of `units` for zeros: a run without a gap, of at most
    /// [`STEP_UNITS`]. `None` where none is left.
    fn claim_for_zeros(&self, units: Range<u64>) -> Option<Range<u64>> {
        let end = units.end.min(self.states.len() as u64);
        let claim = |unit: u64| {
            let state = &self.states[unit as usize];
            state
                .compare_exchange(UNTOUCHED, PREPARING, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        let first = (units.start..end).find(|unit| claim(*unit))?;
        let limit = end.min(first + STEP_UNITS);
        let behind = (first + 1..limit).find(|unit| !claim(*unit)).unwrap_or(limit);
        Some(first..behind)
    }

    /// Ends what [`Units::claim_for_zeros`] began.
    fn release(&self, units: Range<u64>, state: u8) {
        let _changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        for unit in units {
            self.states[unit as usize].store(state, Ordering::Release);
        }
        self.prepared.notify_all();
    }

    fn is_untouched(&self, unit: u64) -> bool {
        self.states
            .get(unit as usize)
            .is_some_and(|state| state.load(Ordering::Relaxed) == UNTOUCHED)
    }
}

impl FileDisk {
    /// Writes zeros durably to whatever in `offset_bytes..offset_bytes + len_bytes` was never
    /// written, in whole MiB inside the range, so that later durable writes there are fast. Never
    /// touches data, whoever writes at the same time. Returns the bytes that it wrote.
    ///
    /// # Errors
    /// What the device says. Units that were not done stay as they were.
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

    /// How many bytes were never written.
    pub fn untouched_bytes(&self) -> u64 {
        let units = self.units();
        let count = (0..units.states.len() as u64).filter(|unit| units.is_untouched(*unit)).count();
        count as u64 * UNIT_BYTES
    }
}

/// A thread that prepares space ahead of the writes that the disk sees. Ends when it is dropped.
#[derive(Debug)]
pub struct Preparer {
    disk: Arc<FileDisk>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Preparer {
    /// Keeps `ahead_bytes` behind the latest write ready, and starts again when half of that is
    /// used up. `report` is told, once, when the device refuses; preparing ends then, which costs
    /// speed and nothing else.
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
