//! When a checkpoint is due, and who writes it when nobody else does.

use crate::upkeep::Store;
use crate::writer::Writer;
use crate::{MemoryStatus, Next, StoreError};

impl Store {
    /// How the memory stands. Takes no lock that a writer holds for long.
    pub fn memory_status(&self) -> MemoryStatus {
        self.world.memory_status()
    }

    /// Whether enough log or changed metadata has gathered for a checkpoint, or segments run short.
    pub fn checkpoint_due(&self) -> bool {
        self.checkpoint_due_of(&mut self.writer.lock())
    }

    pub(crate) fn checkpoint_due_of(&self, writer: &mut Writer) -> bool {
        if writer.has_failed() {
            return false;
        }
        // Also without a log: what is freed in the background changes metadata.
        if self.world.memory.is_checkpoint_due() || writer.is_checkpoint_due_for_room(&self.world) {
            return true;
        }
        if writer.log.bytes() == 0 {
            return false;
        }
        let reserve = self.world.medium.reserve_segments();
        let short = writer.state.segments.free_count() <= reserve + reserve / 2;
        let geometry = self.world.medium.geometry();
        let segments_bytes = geometry.segment_bytes().max(geometry.usable_bytes() / 16);
        writer.log.bytes() >= self.options.checkpoint_log_bytes
            || short && writer.log.bytes() >= segments_bytes
    }

    /// Whether another thread does what a waiting caller waits for.
    pub(crate) fn others_work(&self) -> bool {
        let writer = self.writer.lock();
        writer.is_leading() || writer.queues.has_starved() || self.world.memory.is_full()
    }

    /// Where jobs wait for space and no other thread brings some back: does a turn of that, for
    /// callers that wait on the spot. `false`: there is no need, another thread is at it, or it
    /// waits itself for readers that hold back segments.
    pub(crate) fn feed(&self) -> bool {
        {
            let writer = self.writer.lock();
            if !writer.queues.has_starved() || writer.has_failed() {
                return false;
            }
        }
        // Who waits in the middle of reclaim or of a checkpoint has these.
        if self.reclaiming.try_lock().is_none() || self.checkpointing.try_lock().is_none() {
            return false;
        }
        // If it fails, all that waits is answered with that.
        !matches!(self.maintain(), Ok(Next::Soon))
    }

    /// Where metadata takes all of its memory: writes a checkpoint, so that what waits goes on. For
    /// callers that wait on the spot; `false`: there is no need, or another thread is at it. Where
    /// it finds no room, what waits for it is refused.
    pub(crate) fn relieve(&self) -> bool {
        if !self.world.memory.is_full() || self.has_failed() {
            return false;
        }
        let Some(mut checkpointer) = self.checkpointing.try_lock() else { return false };
        if self.world.memory.is_full() {
            // If it fails, all that waits is answered with that.
            let result = self.checkpoint_with(&mut checkpointer);
            if matches!(result, Err(StoreError::NoRoom { .. })) {
                if self.is_pass_why(&checkpointer) {
                    return false;
                }
                self.refuse_for_memory();
            }
        }
        true
    }
}
