//! Discarding free segments, to return their space to the device or the filesystem.
//!
//! A few are discarded at a time, when there is nothing else to do and far more are free than the
//! log needs soon, because a segment can't be opened while it is discarded. After a start all free
//! segments are discarded once more, because it is not recorded which were.

use crate::upkeep::Store;

/// The number of segments discarded in one turn.
const SEGMENTS_A_TURN: usize = 4;

impl Store {
    /// Discards some free segments, without holding a lock. Returns whether there were any. If the
    /// device does not support it, or fails, discarding ends.
    pub(crate) fn discard_turn(&self) -> bool {
        let spare = self.world.medium.segments_wanted();
        for done in 0..SEGMENTS_A_TURN {
            let taken = self.writer.lock().state.segments.take_to_discard(spare);
            let Some(segment) = taken else { return done > 0 };
            let answer = self.world.medium.disk.free(segment);
            self.writer.lock().state.segments.discarded(segment, matches!(answer, Ok(true)));
        }
        true
    }
}
