//! Telling the device of free segments, so that it has their space back.
//!
//! Some at a time, when there is nothing else to do and far more is free than the log needs soon:
//! what is told of can't be opened meanwhile. After a start all that is free is told of once more,
//! as nobody knows what was before.

use crate::store::Store;

/// Segments that are told of in one turn.
const SEGMENTS_A_TURN: usize = 4;

impl Store {
    /// Tells the device of some free segments; whether there were any. No lock is held meanwhile. A
    /// device that can't do anything with it, or fails, is told no more.
    pub(crate) fn discard_turn(&self) -> bool {
        let spare = self.world.medium.segments_wanted();
        for told in 0..SEGMENTS_A_TURN {
            let taken = self.writer.lock().state.segments.take_held(spare);
            let Some(segment) = taken else { return told > 0 };
            let answer = self.world.medium.disk.free(segment);
            self.writer.lock().state.segments.told(segment, matches!(answer, Ok(true)));
        }
        true
    }
}
