//! Chunks that count no units.
//!
//! The blocks of a compressed group share its units of 64 bytes. If there were fewer units than
//! blocks, some blocks counted none, so that a segment with one of them could be considered empty,
//! freed and overwritten. Such groups are no longer written ([`crate::chunks::pack`]), but pools
//! may contain some. So a log segment from before this opening is freed only after its records were
//! examined. Chunks found there are moved, as by reclaim, and then have units.

use crate::upkeep::Store;
use crate::upkeep::relocate::live_chunks;
use crate::world::World;
use crate::writer::Writer;

/// Returns whether something in a segment of the log is live. An unreadable record may have a live
/// chunk.
pub(crate) fn holds_something(world: &World, segment: u32) -> bool {
    live_chunks(world, segment).map_or(true, |live| !live.is_empty())
}

impl Store {
    /// Returns those of the segments without counted live data that really are empty.
    pub(crate) fn without_weightless(&self, segments: Vec<u32>) -> Vec<u32> {
        let is_empty = |segment: &u32| {
            if self.writer.lock().state.segments.is_known(*segment) {
                return true;
            }
            let is_empty = !holds_something(&self.world, *segment);
            if !is_empty {
                self.writer.lock().state.segments.weightless.insert(*segment);
            }
            is_empty
        };
        segments.into_iter().filter(is_empty).collect()
    }

    /// Checks a segment from which everything possible was moved. If it is still not empty, it is
    /// left alone.
    pub(crate) fn weigh_again(&self, segment: u32) {
        if !self.writer.lock().state.segments.weightless.contains(&segment) {
            return;
        }
        let is_empty = !holds_something(&self.world, segment);
        let writer: &mut Writer = &mut self.writer.lock();
        if is_empty {
            writer.state.segments.weightless.remove(&segment);
        } else {
            writer.supply.leave_alone(segment);
        }
    }
}
