//! What the array did: samples of its counters, kept for a year in a file of bounded size.
//!
//! A sampler calls [`History::record`] about each second with what happened since the last call.
//! That is gathered, and every 30 seconds merged into a *step* of each of the [`RINGS`]: of 30
//! seconds for a day, of 5 minutes for 31 days, of an hour for 366 days. Sums and counts are kept
//! beside greatest values, so that a longer step tells the same mean as the shorter ones it is made
//! of, and the same peak.
//!
//! * [`counts`]: what is kept of one object for one step,
//! * [`step`]: a step, with all objects,
//! * [`cell`]: its bytes, which are not trusted when they are read,
//! * [`layout`]: where they stand in the file,
//! * [`range`]: what can be asked for.
//!
//! # What is kept of whom
//!
//! A step has one cell of 16 KiB in the file, at a place that its time says, so the file has at
//! most [`layout::FILE_BYTES`] (322 MiB, less where hosts do little: what is not written takes no
//! space). The array itself is in each cell. Hosts and volumes that did something follow, as many
//! as fit, those with the most commands first: some 300 that read and write. What another did in
//! that step is not known afterwards, and not told as nothing: see [`Point::covered_ms`]. Who did
//! nothing takes no room. In memory, the steps that are under way have at most 20,000 objects
//! each.
//!
//! This is nobody's data: a cell that is damaged is a gap, a file that is damaged is begun anew,
//! and what a killed process has not written yet is lost, 30 seconds at most.
//!
//! There is no clock here and no file: the caller has both.

pub mod cell;
pub mod counts;
pub mod layout;
pub mod range;
pub mod step;

mod medium;
mod reading;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

pub use counts::{Activity, CLASSES, Capacity, ClassSums, GAUGES, Gauge};
pub use layout::{FILE_BYTES, NotOurs, RINGS, Ring};
pub use medium::{Medium, Memory};
pub use range::{Range, RangeError};
pub use reading::{Point, Series};
pub use step::{Object, Step};

use layout::CELL_BYTES;

/// How many seconds of the array are kept, in memory: 50 minutes.
pub const SECONDS_KEPT: usize = 3000;

/// What happened since the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// When it ends, in milliseconds since 1970.
    pub now_ms: u64,
    /// How long it is, in milliseconds.
    pub covered_ms: u64,
    /// What all did.
    pub array: Activity,
    /// What each did that did anything.
    pub objects: BTreeMap<Object, Activity>,
    /// How the pool stands, if somebody looked.
    pub capacity: Option<Capacity>,
}

/// The history of an array.
pub struct History {
    /// Written by one at a time, so that no cell is read while it changes.
    medium: RwLock<Box<dyn Medium>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What has not been merged into any ring.
    pending: Step,
    /// For each ring, the step that is under way.
    open: [Step; RINGS.len()],
    latest: Arc<Tick>,
    /// Of the array only, the oldest first.
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
    /// The bytes are those of something else, or of another pool, or damaged.
    #[error("{0}")]
    NotOurs(#[from] NotOurs),
    /// The medium can't be read or written.
    #[error(transparent)]
    Medium(#[from] io::Error),
}

impl History {
    /// The history of a pool that stands on a medium; one that was never written is prepared.
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
        Ok(Self { medium: RwLock::new(medium), state: Mutex::default() })
    }

    /// A history that can't be kept, and why: all but the last hour of the array is refused.
    pub fn not_kept(why: String) -> Self {
        let medium: Box<dyn Medium> = Box::new(medium::Absent(why));
        Self { medium: RwLock::new(medium), state: Mutex::default() }
    }

    /// Takes what happened in. Every 30 seconds it writes what was gathered.
    ///
    /// # Errors
    /// What was gathered could not be written, and is lost.
    pub fn record(&self, tick: Tick) -> io::Result<()> {
        let mut state = self.state.lock();
        // By its middle: the end of the last second of a step is the beginning of the next.
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

    /// Writes what was gathered. Called when the program ends in order.
    ///
    /// # Errors
    /// It could not be written, and is lost.
    pub fn save(&self) -> io::Result<()> {
        self.flush(&mut self.state.lock())
    }

    /// What happened last, of all objects.
    pub fn latest(&self) -> Arc<Tick> {
        self.state.lock().latest.clone()
    }

    /// Merges what was gathered into each ring, and writes the cells that have changed.
    fn flush(&self, state: &mut State) -> io::Result<()> {
        let pending = std::mem::take(&mut state.pending);
        if pending.covered_ms == 0 {
            return Ok(());
        }
        let mut first_error = Ok(());
        for (ring, open) in RINGS.iter().zip(&mut state.open) {
            let start_ms = ring.start_of(pending.start_ms);
            if open.start_ms != start_ms {
                // After a restart it goes on with what the last process wrote.
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

    /// A step as it was written; `None` where it was not, or is damaged.
    fn step(&self, ring: &Ring, start_ms: u64) -> io::Result<Option<Step>> {
        let mut bytes = vec![0; CELL_BYTES];
        self.medium.read().read(ring.offset_of(start_ms), &mut bytes)?;
        Ok(cell::decode(ring, start_ms, &bytes))
    }
}
