//! Writing a checkpoint while hosts are served, again if the device refuses it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use block::VolumeError;

use crate::checkpoint::holes::Holes;
use crate::checkpoint::images::images_bytes;
use crate::checkpoint::recapture::Bad;
use crate::checkpoint::slices::Captured;
use crate::log::checkpointer::Checkpointer;
use crate::upkeep::Store;
use crate::{Durability, StoreError};

use crate::checkpoint::above::lock_for_capture;
use crate::checkpoint::slices::capture_slices;
use crate::checkpoint::{Capture, capture, free_dead, write};

/// How many segments may refuse a checkpoint before it waits for its next turn: other writers
/// detect a device that no longer accepts writes.
const TRIES_MAX: usize = 256;
const NO_PLACE: &str = "no location is left that accepts a checkpoint";

impl Store {
    /// Writes a checkpoint. Blocks, while the data path continues; for a background thread.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`] if it does not fit the free space, and [`StoreError::Io`] if too many
    /// locations refuse it: nothing has changed then, and it can be tried again. Other errors end
    /// all writing.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        self.checkpoint_with(&mut self.checkpointing.lock())
    }

    /// Writes a checkpoint, for a caller that has the checkpointer.
    pub(crate) fn checkpoint_with(
        &self,
        checkpointer: &mut Checkpointer,
    ) -> Result<(), StoreError> {
        let (mut is_refused, mut retired) = (false, Vec::new());
        let mut result = Err(StoreError::Io(std::io::Error::other(NO_PLACE)));
        for _ in 0..TRIES_MAX {
            match self.try_checkpoint(checkpointer) {
                // Each try takes another segment.
                Ok(Some(bad)) => {
                    is_refused = true;
                    retired.extend(bad.is_retired.then_some(bad.segment));
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.writer.lock().state.segments.give_back(retired);
        if is_refused && !self.has_failed() {
            self.find_device_there(checkpointer)?;
        }
        result
    }

    /// Handles a checkpoint that was refused at so many locations that it fits no others. If the
    /// device takes no superblock either, it accepts nothing.
    fn find_device_there(&self, checkpointer: &mut Checkpointer) -> Result<(), StoreError> {
        if checkpointer.rewrite_superblock(&self.world.medium).is_ok() {
            return Ok(());
        }
        let answers = {
            let mut writer = self.writer.lock();
            writer.fail();
            writer.abandon(&self.world)
        };
        self.answer(answers);
        Err(StoreError::Io(std::io::Error::other(NO_PLACE)))
    }

    /// Writes a checkpoint, or returns the segment that has refused a part of it: it must then be
    /// captured again.
    fn try_checkpoint(&self, checkpointer: &mut Checkpointer) -> Result<Option<Bad>, StoreError> {
        let mut begun = capture_slices(&self.world, &self.writer, checkpointer)?;
        if self.options.durability == Durability::Flush
            && let Err(error) = self.raise_barrier()
        {
            self.give_back(begun, checkpointer)?;
            return Err(error);
        }
        let mut captured = self.try_capture(checkpointer, None, &mut begun);
        if let Err(StoreError::NoRoom { .. }) = &captured {
            self.give_back(begun, checkpointer)?;
            // Found without the writer's lock: what a checkpoint needs changes only with the next
            // one.
            let emptied = self.writer.lock().supply.compacted().clone();
            captured = self.capture_into_holes(checkpointer, &emptied);
            if let Err(StoreError::NoRoom { .. }) = &captured
                && !emptied.is_empty()
            {
                // A checkpoint is more important than compaction.
                self.writer.lock().supply.end_compaction();
                captured = self.capture_into_holes(checkpointer, &BTreeSet::new());
            }
        }
        let answers = {
            let mut writer = self.writer.lock();
            let is_fatal = !matches!(captured, Ok(_) | Err(StoreError::NoRoom { .. }));
            writer.fail_if(is_fatal);
            let mut answers = writer.abandon(&self.world);
            if writer.lower_barrier() {
                writer.take_waiting(&self.world, &mut answers);
            }
            answers
        };
        self.answer(answers);
        let capture = captured?;
        let written = self.write_capture(checkpointer, capture);
        let (answers, waited) = {
            let mut writer = self.writer.lock();
            // Memory may differ from the medium permanently.
            writer.fail_if(written.is_err());
            let mut answers = writer.abandon(&self.world);
            let waited = (writer.has_waiting() || writer.wants_commit()) && !writer.has_failed();
            if waited {
                // What did not fit in memory may fit now, and what found no segment may find one.
                writer.take_waiting(&self.world, &mut answers);
            }
            (answers, waited)
        };
        self.answer(answers);
        if waited {
            self.hand_over();
        }
        written
    }

    fn give_back(&self, begun: Captured, checkpointer: &Checkpointer) -> Result<(), StoreError> {
        let mut writer = self.writer.lock();
        let result = begun.give_back(&self.world, &mut writer, checkpointer, None);
        writer.fail_if(result.is_err());
        result
    }

    fn capture_into_holes(
        &self,
        checkpointer: &Checkpointer,
        emptied: &BTreeSet<u32>,
    ) -> Result<Capture, StoreError> {
        let holes = Holes::find(&self.world, checkpointer, emptied);
        self.try_capture(checkpointer, Some(holes), &mut Captured::default())
    }

    fn try_capture(
        &self,
        checkpointer: &Checkpointer,
        holes: Option<Holes>,
        begun: &mut Captured,
    ) -> Result<Capture, StoreError> {
        let (_plan, mut writer) = lock_for_capture(&self.world, &self.writer);
        // After a failed write memory and medium differ: that state must not become durable.
        if writer.has_failed() {
            return Err(StoreError::Volume(VolumeError::WriteFailed));
        }
        capture(&self.world, &mut writer, checkpointer, holes, begun)
    }

    fn write_capture(
        &self,
        checkpointer: &mut Checkpointer,
        capture: Capture,
    ) -> Result<Option<Bad>, StoreError> {
        let mut left_bytes = images_bytes(&capture.captured.images);
        let mut told = |bytes| {
            self.checkpointed(bytes, left_bytes);
            left_bytes = left_bytes.saturating_sub(bytes);
        };
        let mut written = match write(&self.world, checkpointer, capture, &mut told)? {
            Ok(written) => written,
            Err(refused) => {
                let writer = &mut self.writer.lock();
                return refused.take_back(&self.world, writer, checkpointer).map(Some);
            }
        };
        self.checkpoint_bytes.fetch_add(written.bytes, Ordering::Relaxed);
        written.dead = self.without_weightless(written.dead);
        let mut writer = self.writer.lock();
        let in_both = written.in_both;
        free_dead(&self.world, &mut writer, checkpointer, written);
        if in_both {
            // The log is now found by superblocks that know all segments.
            writer.state.segments.open_up();
        }
        drop(writer);
        self.checkpoint_count.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    }
}
