//! When a checkpoint is due, and who writes it if no background thread does.

use crate::upkeep::Store;
use crate::writer::Writer;
use crate::{MemoryStatus, Next, StoreError};

impl Store {
    /// Returns the use of memory. Takes no lock that a writer holds for long.
    pub fn memory_status(&self) -> MemoryStatus {
        self.world.memory_status()
    }

    /// Returns whether a checkpoint is due because of the size of the log or of changed metadata,
    /// or because segments run short.
    pub fn checkpoint_due(&self) -> bool {
        self.checkpoint_due_of(&mut self.writer.lock())
    }

    pub(crate) fn checkpoint_due_of(&self, writer: &mut Writer) -> bool {
        if writer.has_failed() {
            return false;
        }
        // Even without a log: freeing in the background changes metadata.
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

    /// Returns whether another thread does what a blocked caller waits for.
    pub(crate) fn others_work(&self) -> bool {
        let writer = self.writer.lock();
        writer.is_leading() || writer.queues.has_starved() || self.world.memory.is_full()
    }

    /// Does a turn of reclaim for callers that block, if jobs wait for space and no other thread
    /// reclaims it. Returns `false` if that is not needed, another thread does it, or it waits
    /// itself for readers that hold segments back.
    pub(crate) fn feed(&self) -> bool {
        {
            let writer = self.writer.lock();
            if !writer.queues.has_starved() || writer.has_failed() {
                return false;
            }
        }
        // A caller that waits in the middle of reclaim or of a checkpoint has these.
        if self.reclaiming.try_lock().is_none() || self.checkpointing.try_lock().is_none() {
            return false;
        }
        // If it fails, all waiting jobs get that error.
        !matches!(self.maintain(), Ok(Next::Soon))
    }

    /// Writes a checkpoint for callers that block, if metadata takes all of its memory, so that
    /// waiting jobs continue. Returns `false` if that is not needed, or another thread does it. If
    /// the checkpoint finds no room, jobs that wait for it are refused.
    pub(crate) fn relieve(&self) -> bool {
        if !self.world.memory.is_full() || self.has_failed() {
            return false;
        }
        let Some(mut checkpointer) = self.checkpointing.try_lock() else { return false };
        if self.world.memory.is_full() {
            // If it fails, all waiting jobs get that error.
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
