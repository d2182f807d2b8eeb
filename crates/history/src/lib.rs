//! Performance history: samples of the array's counters, kept for a year in a file of bounded size.
//!
//! A sampler calls [`History::record`] about once a second with the activity since the last call.
//! This is collected, and every 30 seconds merged into a *step* of each of the [`RINGS`]: of 30
//! seconds for a day, of 5 minutes for 31 days, of an hour for 366 days. Sums and counts are kept
//! in addition to maxima, so that a longer step has the same mean as the shorter ones that it
//! consists of, and the same peak.
//!
//! * [`counts`]: the counts of one object for one step,
//! * [`latency`]: histograms of the latencies of commands,
//! * [`step`]: a step, with all objects,
//! * [`cell`]: the encoding of a step, which is untrusted when it is read,
//! * [`layout`]: the locations of cells in the file,
//! * [`range`]: the ranges that can be read,
//! * [`space`]: the space of volumes over time.
//!
//! # Which objects are kept
//!
//! A step has one cell of 16 KiB in the file, at a location derived from its time, so these take at
//! most 322 MiB (less if hosts do little, because holes take no space). Each cell contains the
//! array itself, followed by as many of the active ports, hosts and volumes as fit, those with the
//! most commands first: about 150 that read and write. The activity of the others in that step is
//! unknown, and not reported as none: see [`Point::covered_ms`]. Idle objects take no room. In
//! memory, each step in progress has at most 20,000 objects.
//!
//! The space of volumes is kept in rings of its own, for all volumes.
//!
//! History is not user data: a damaged cell is a gap, a damaged file is replaced by an empty one,
//! and a killed process loses what it has not written yet, 30 seconds at most; of space 5 minutes.
//!
//! This crate has no clock and opens no file: the caller provides both.

pub mod cell;
pub mod counts;
pub mod latency;
pub mod layout;
pub mod range;
pub mod space;
pub mod step;

mod medium;
mod numbers;
mod reading;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

pub use counts::{Activity, CLASSES, Capacity, ClassSums, GAUGES, Gauge};
pub use latency::{LATENCY_BOUNDS_US, Latencies};
pub use layout::{FILE_BYTES, NotOurs, RINGS, Ring, SPACE_RINGS};
pub use medium::{Medium, Memory};
pub use range::{Range, RangeError};
pub use reading::{Point, Series};
pub use space::{SpacePoint, SpaceSample, VolumeFigures};
pub use step::{Object, Step};

use layout::CELL_BYTES;

/// How many seconds of the array are kept in memory: 50 minutes.
pub const SECONDS_KEPT: usize = 3000;

/// The activity since the last tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// When it ends, in milliseconds since 1970.
    pub now_ms: u64,
    /// Its length, in milliseconds.
    pub covered_ms: u64,
    /// The activity of the whole array.
    pub array: Activity,
    /// The activity of each object that had any.
    pub objects: BTreeMap<Object, Activity>,
    /// The state of the pool, if it was sampled.
    pub capacity: Option<Capacity>,
}

/// The history of an array.
pub struct History {
    /// Locked for writing, so that no cell is read while it changes.
    medium: RwLock<Box<dyn Medium>>,
    state: Mutex<State>,
    /// The newest sample of the space of volumes.
    space: Mutex<Option<SpaceSample>>,
}

#[derive(Default)]
struct State {
    /// Activity that is not merged into any ring yet.
    pending: Step,
    /// For each ring, the step in progress.
    open: [Step; RINGS.len()],
    latest: Arc<Tick>,
    /// Only of the array, the oldest first.
    seconds: VecDeque<Point>,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("History(…)")
    }
}

/// Why a history can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file is something else, belongs to another pool, or is damaged.
    #[error("{0}")]
    NotOurs(#[from] NotOurs),
    /// The medium can't be read or written.
    #[error(transparent)]
    Medium(#[from] io::Error),
}

impl History {
    /// Opens the history of a pool on a medium; a medium that was never written is prepared.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(medium: Box<dyn Medium>, pool_id: [u8; 16]) -> Result<Self, OpenError> {
        let mut header = [0; layout::HEADER_BYTES];
        medium.read(0, &mut header)?;
        if header.iter().all(|byte| *byte == 0) {
            medium.write(0, &layout::header(pool_id))?;
        } else {
            layout::check(&header, pool_id)?;
        }
        Ok(Self { medium: RwLock::new(medium), state: Mutex::default(), space: Mutex::default() })
    }

    /// Returns a history that can't be stored, and why: only the last hour of the array can be
    /// read.
    pub fn not_kept(why: String) -> Self {
        let medium: Box<dyn Medium> = Box::new(medium::Absent(why));
        Self { medium: RwLock::new(medium), state: Mutex::default(), space: Mutex::default() }
    }

    /// Adds a tick. Every 30 seconds it writes what was collected.
    ///
    /// # Errors
    /// What was collected could not be written, and is lost.
    pub fn record(&self, tick: Tick) -> io::Result<()> {
        let mut state = self.state.lock();
        // By its middle, because the end of the last second of a step is the beginning of the next
        // step.
        let moment = tick.now_ms.saturating_sub(tick.covered_ms / 2);
        let start_ms = RINGS[0].start_of(moment);
        let written = match state.pending.start_ms == start_ms {
            true => Ok(()),
            false => self.flush(&mut state),
        };
        state.pending.start_ms = start_ms;
        state.pending.add(&tick);
        if state.seconds.len() == SECONDS_KEPT {
            state.seconds.pop_front();
        }
        state.seconds.push_back(Point::of_second(&tick));
        state.latest = Arc::new(tick);
        written
    }

    /// Writes what was collected. Called when the program shuts down cleanly.
    ///
    /// # Errors
    /// It could not be written, and is lost.
    pub fn save(&self) -> io::Result<()> {
        let written = self.flush(&mut self.state.lock());
        written.and(self.save_space())
    }

    /// Returns the last tick, with all objects.
    pub fn latest(&self) -> Arc<Tick> {
        self.state.lock().latest.clone()
    }

    /// Merges what was collected into each ring, and writes the cells that have changed.
    fn flush(&self, state: &mut State) -> io::Result<()> {
        let pending = std::mem::take(&mut state.pending);
        if pending.covered_ms == 0 {
            return Ok(());
        }
        let mut first_error = Ok(());
        for (ring, open) in RINGS.iter().zip(&mut state.open) {
            let start_ms = ring.start_of(pending.start_ms);
            if open.start_ms != start_ms {
                // After a restart, continues the step that the last process wrote.
                *open = self.step(ring, start_ms)?.unwrap_or_default();
                open.start_ms = start_ms;
            }
            open.merge(&pending);
            let bytes = cell::encode(ring, open);
            let written = self.medium.write().write(ring.offset_of(start_ms), &bytes);
            first_error = first_error.and(written);
        }
        first_error
    }

    /// Reads a step; `None` if it was not written, or is damaged.
    fn step(&self, ring: &Ring, start_ms: u64) -> io::Result<Option<Step>> {
        let mut bytes = vec![0; CELL_BYTES];
        self.medium.read().read(ring.offset_of(start_ms), &mut bytes)?;
        Ok(cell::decode(ring, start_ms, &bytes))
    }
}
