//! Discarding free segments, so that the device, or the filesystem, has their space back.
//!
//! It happens some at a time, when there is nothing else to do and far more is free than the log
//! needs soon, because a segment can't be opened while it is discarded. After a start all free
//! segments are discarded once more, as nobody knows which were before.

use crate::upkeep::Store;

/// Segments that are discarded in one turn.
const SEGMENTS_A_TURN: usize = 4;

impl Store {
    /// Discards some free segments, and holds no lock meanwhile. Returns whether there were any. If
    /// the device does not support it, or fails, no other is discarded.
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
