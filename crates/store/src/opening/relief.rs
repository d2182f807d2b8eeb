//! Relief: checkpoints in the midst of a recovery.
//!
//! What the log changes may take more room in a checkpoint than is free, where it is long and the
//! pool nearly full. The state behind any record is as good for a checkpoint as that at the end, as
//! long as the records that follow it stay where they are. So where what was replayed so far takes
//! half of what is free, a checkpoint is written, which frees what is dead by then, and recovery
//! goes on from there; a crash in it or behind it leaves a shorter log.
//!
//! Segments that the log goes on in look free until their records are met. Before the first such
//! checkpoint all of them are looked for, and kept. That the log ends where it seems to is not
//! proven then: it may be damaged there, and a record further on be the only one that tells
//! ([`crate::log::replay::find_witness`]). So all that the search for such a witness would read is
//! kept as well, wherever the log stops. A checkpoint moves neither the end nor what stands behind
//! it, so the proof at the end of the recovery is as good as without one.

use std::collections::BTreeSet;

use block::BLOCK_BYTES;
use format::SegmentState;
use format::log::LogPosition;

use crate::StoreError;
use crate::checkpoint::holes::Holes;
use crate::checkpoint::recapture::Bad;
use crate::checkpoint::slices::Captured;
use crate::checkpoint::{capture, free_dead, write};
use crate::log::checkpointer::Checkpointer;
use crate::log::log_reader::{LogReader, ReadRecord};
use crate::log::replay::{next_record, search_behind};
use crate::upkeep::weightless::holds_something;
use crate::world::World;
use crate::writer::Writer;

/// Segments of log that may be ahead without being known, where that many more are free than would
/// be wanted: 64, and twice what options let gather.
const AHEAD_SEGMENTS: u64 = 64;
/// What has changed is worth a checkpoint from such a part of a segment on.
const WORTH_DIVISOR: u64 = 8;

/// Writes checkpoints while the log is followed, if it may.
pub(crate) struct Relief<'a> {
    checkpointer: Option<&'a mut Checkpointer>,
    /// Log that gathers between checkpoints, as a rule.
    log_bytes: u64,
    is_ahead_known: bool,
    /// Segments that the checkpoint has freed, though its table still shows what they were.
    dead: Vec<u32>,
    /// It did not fit when so much had changed.
    refused_blocks: u64,
}

impl<'a> Relief<'a> {
    /// For a recovery that may write, or, without a checkpointer, may not.
    pub(crate) fn new(
        checkpointer: Option<&'a mut Checkpointer>,
        log_bytes: u64,
        dead: Vec<u32>,
    ) -> Self {
        Self { checkpointer, log_bytes, is_ahead_known: false, dead, refused_blocks: 0 }
    }

    /// For who may never write.
    pub(crate) fn none() -> Self {
        Self::new(None, 0, Vec::new())
    }

    /// Whether anything may be written.
    pub(crate) fn may_write(&self) -> bool {
        self.checkpointer.is_some()
    }

    /// Whether something may be written, and the newest checkpoint is of before this record.
    pub(crate) fn needs(&self, lsn: u64) -> bool {
        let checkpointer = self.checkpointer.as_ref();
        checkpointer.is_some_and(|it| it.superblock().log.lsn <= lsn)
    }

    /// A record was applied: writes a checkpoint if what has changed takes much of what is free.
    /// Where it does not fit, recovery goes on without.
    pub(crate) fn relieve(&mut self, world: &World, writer: &mut Writer) -> Result<(), StoreError> {
        if self.checkpointer.is_none() {
            return Ok(());
        }
        let per_segment = u64::from(writer.next_checkpoint.segment_blocks());
        let changed = world.memory.dirty_bytes() / BLOCK_BYTES;
        if changed < self.refused_blocks + per_segment / WORTH_DIVISOR {
            return Ok(());
        }
        let free = u64::from(writer.state.segments.free_for_metadata());
        if !self.is_ahead_known {
            let ahead = AHEAD_SEGMENTS + 2 * self.log_bytes / writer.log.segment_bytes();
            if free * per_segment > ahead * per_segment + 2 * changed {
                return Ok(());
            }
            keep_what_is_ahead(world, writer)?;
            self.is_ahead_known = true;
            self.free_dead(world, writer);
        }
        let free = u64::from(writer.state.segments.free_for_metadata());
        let room = u64::from(writer.next_checkpoint.rest_blocks()) + free * per_segment;
        if 2 * changed < room {
            return Ok(());
        }
        match self.checkpoint(world, writer) {
            Err(StoreError::NoRoom { .. }) => {
                self.refused_blocks = changed;
                Ok(())
            }
            result => result,
        }
    }

    fn checkpoint(&mut self, world: &World, writer: &mut Writer) -> Result<(), StoreError> {
        let mut retired = Vec::new();
        let result = loop {
            match self.try_checkpoint(world, writer) {
                Ok(Some(bad)) => retired.extend(bad.is_retired.then_some(bad.segment)),
                Ok(None) => return Ok(()),
                Err(error) => break Err(error),
            }
        };
        writer.state.segments.give_back(retired);
        result
    }

    /// Which segment has refused a part of it: it has to be captured anew then.
    fn try_checkpoint(
        &mut self,
        world: &World,
        writer: &mut Writer,
    ) -> Result<Option<Bad>, StoreError> {
        let Some(checkpointer) = &mut self.checkpointer else { return Ok(None) };
        let captured = match capture(world, writer, checkpointer, None, &mut Captured::default()) {
            Err(StoreError::NoRoom { .. }) => {
                let holes = Holes::find(world, checkpointer, &BTreeSet::new());
                capture(world, writer, checkpointer, Some(holes), &mut Captured::default())?
            }
            captured => captured?,
        };
        let mut written = match write(world, checkpointer, captured, &mut |_| {})? {
            Ok(written) => written,
            Err(refused) => {
                return refused.take_back(world, writer, checkpointer).map(Some);
            }
        };
        written.dead.retain(|segment| !is_weightless(world, writer, *segment));
        free_dead(world, writer, checkpointer, written);
        self.refused_blocks = 0;
        Ok(None)
    }

    /// Frees what the checkpoint has freed and the log has not taken since.
    fn free_dead(&mut self, world: &World, writer: &mut Writer) {
        for segment in std::mem::take(&mut self.dead) {
            if !writer.log.segments().contains(&segment) && !is_weightless(world, writer, segment) {
                writer.state.segments.free_dead_one(segment);
            }
        }
    }
}

/// Whether a segment counts nothing live, and holds something all the same: it is kept then.
fn is_weightless(world: &World, writer: &mut Writer, segment: u32) -> bool {
    let is_log = writer.state.segments.row(segment).state == SegmentState::Log;
    let holds = is_log && holds_something(world, segment);
    if holds {
        writer.state.segments.weightless.insert(segment);
    }
    holds
}

/// Keeps the segments that the log behind the writer's position goes through, and those in which a
/// record may tell that it goes on where it seems to end. Where a recovery may have ended and the
/// log gone on elsewhere, both ways are kept.
pub(crate) fn keep_what_is_ahead(world: &World, writer: &mut Writer) -> Result<(), StoreError> {
    let mut reader = LogReader::new(&world.medium);
    let mut at = writer.log.position();
    let (first_lsn, mut epoch, mut begun) = (at.lsn, 0, BTreeSet::new());
    loop {
        while let Some(found) = next_record(&mut reader, &at, 0)? {
            epoch = found.header.epoch;
            for segment in [found.at.segment, found.at.next_segment] {
                if writer.log.note_segment(segment) {
                    writer.state.segments.reserve_for_log(segment, (found.at.lsn, epoch));
                }
            }
            at = found.behind();
        }
        for segment in search_behind(&mut reader, &at, &mut |_| false) {
            if writer.log.note_segment(segment) {
                writer.state.segments.reserve_for_log(segment, (at.lsn, epoch));
            }
        }
        let segment = at.next_segment;
        if !begun.insert(segment) {
            return Ok(());
        }
        // What can't be read here is not on the way that recovery takes, or ends it.
        let Ok(Some(ReadRecord { header, .. })) = reader.record_at(segment, 0) else {
            return Ok(());
        };
        if header.lsn < first_lsn {
            return Ok(());
        }
        at = LogPosition {
            segment,
            block: 0,
            next_segment: header.next_segment,
            lsn: header.lsn,
            previous: header.previous,
        };
    }
}
