//! Which parts of a file were already written, so that writes there are fast and no zeros may be
//! written.
//!
//! This prevents zeros from ever overwriting data: each unit of 1 MiB is in one of three states,
//! and leaves [`UNTOUCHED`] once, by one compare-and-swap, either for a writer's data or for zeros.
//! A writer that finds zeros being written waits until they are done.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes of a unit.
pub const UNIT_BYTES: u64 = 1 << 20;

/// The maximum number of units whose zeros are written and flushed together. The flush makes
/// concurrent durable writes wait for the journal, so there must not be many flushes; and a writer
/// that reaches these units, or needs the device meanwhile, waits for all of it, so it must not
/// last long.
pub(crate) const STEP_UNITS: u64 = 8;

/// Reserved or a hole: never written.
pub(crate) const UNTOUCHED: u8 = 0;
/// Zeros are being written.
const PREPARING: u8 = 1;
/// Written: data may be there.
pub(crate) const WRITTEN: u8 = 2;

/// The states of a file's units.
#[derive(Debug)]
pub(crate) struct Units {
    /// Empty if everything counts as written.
    states: Box<[AtomicU8]>,
    /// The last unit that was written.
    pub(crate) latest: AtomicU64,
    /// Locked while waiting for the end of a preparation, and to announce it.
    pub(crate) changed: Mutex<()>,
    prepared: Condvar,
    pub(crate) wanted: Condvar,
}

impl Units {
    /// The units of a disk whose space is all prepared.
    pub(crate) fn all_written() -> Self {
        Self::of(Box::default())
    }

    /// The units of a file, of which only `written` (in order) was ever written. A partly written
    /// unit counts as written.
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

    /// Must be called before data is written. Waits while zeros are being written.
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
        // There is more than one turn only if zeros failed, which makes the unit untouched again.
        while state.compare_exchange(UNTOUCHED, WRITTEN, Ordering::AcqRel, Ordering::Acquire)
            == Err(PREPARING)
        {
            let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
            while state.load(Ordering::Acquire) == PREPARING {
                changed = self.prepared.wait(changed).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Claims untouched units from the front of `units` for zeros: a contiguous run of at most
    /// [`STEP_UNITS`]. `None` if none is left.
    pub(crate) fn claim_for_zeros(&self, units: Range<u64>) -> Option<Range<u64>> {
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

    /// Ends a claim of [`Units::claim_for_zeros`].
    pub(crate) fn release(&self, units: Range<u64>, state: u8) {
        let _changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        for unit in units {
            self.states[unit as usize].store(state, Ordering::Release);
        }
        self.prepared.notify_all();
    }

    pub(crate) fn is_untouched(&self, unit: u64) -> bool {
        self.states
            .get(unit as usize)
            .is_some_and(|state| state.load(Ordering::Relaxed) == UNTOUCHED)
    }

    /// Returns how many units were never written.
    pub(crate) fn untouched_count(&self) -> u64 {
        (0..self.states.len() as u64).filter(|unit| self.is_untouched(*unit)).count() as u64
    }
}
