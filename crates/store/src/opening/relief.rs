//! Relief: intermediate checkpoints during a recovery.
//!
//! If the log is long and the pool nearly full, a checkpoint of all that the log changes may need
//! more room than is free. The state after any record is as good for a checkpoint as that at the
//! end, as long as the later records stay where they are. So when the changes so far take half of
//! the free space, a checkpoint is written, which frees what is dead by then, and recovery
//! continues from there; a crash during it or after it leaves a shorter log.
//!
//! Segments in which the log continues appear free until their records are reached. So before the
//! first such checkpoint all of them are found, and kept. It is not proven then that the log ends
//! where it seems to: it may be damaged there, and only a later record may show that
//! ([`crate::log::replay::find_witness`]). So everything that the search for such a record would
//! read is kept as well, wherever the log stops. A checkpoint changes neither the end nor what is
//! after it, so the proof at the end of the recovery is as good as without one.

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

/// The maximum number of log segments ahead that may be unknown, if that many more are free than
/// are needed: 64, and twice what the options allow to collect.
const AHEAD_SEGMENTS: u64 = 64;
/// The fraction of a segment from which on changes are worth a checkpoint.
const WORTH_DIVISOR: u64 = 8;

/// Writes checkpoints during replay, if allowed.
pub(crate) struct Relief<'a> {
    checkpointer: Option<&'a mut Checkpointer>,
    /// Bytes of log between checkpoints, usually.
    log_bytes: u64,
    is_ahead_known: bool,
    /// Segments that the checkpoint has freed, although its table still shows their old content.
    dead: Vec<u32>,
    /// The number of changed blocks at which it did not fit.
    refused_blocks: u64,
}

impl<'a> Relief<'a> {
    /// For a recovery that may write or, without a checkpointer, may not.
    pub(crate) fn new(
        checkpointer: Option<&'a mut Checkpointer>,
        log_bytes: u64,
        dead: Vec<u32>,
    ) -> Self {
        Self { checkpointer, log_bytes, is_ahead_known: false, dead, refused_blocks: 0 }
    }

    /// For callers that may never write.
    pub(crate) fn none() -> Self {
        Self::new(None, 0, Vec::new())
    }

    /// Returns whether writing is allowed.
    pub(crate) fn may_write(&self) -> bool {
        self.checkpointer.is_some()
    }

    /// Returns whether writing is allowed, and the newest checkpoint is older than this record.
    pub(crate) fn needs(&self, lsn: u64) -> bool {
        let checkpointer = self.checkpointer.as_ref();
        checkpointer.is_some_and(|it| it.superblock().log.lsn <= lsn)
    }

    /// Writes a checkpoint after a record was applied, if changes take much of the free space. If
    /// it does not fit, recovery continues without it.
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

    /// Tries a checkpoint; returns the segment that has refused a part of it: it must then be
    /// captured again.
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

    /// Frees what the checkpoint has freed and the log has not used since.
    fn free_dead(&mut self, world: &World, writer: &mut Writer) {
        for segment in std::mem::take(&mut self.dead) {
            if !writer.log.segments().contains(&segment) && !is_weightless(world, writer, segment) {
                writer.state.segments.free_dead_one(segment);
            }
        }
    }
}

/// Returns whether a segment counts nothing live, but is not empty: it is then kept.
fn is_weightless(world: &World, writer: &mut Writer, segment: u32) -> bool {
    let is_log = writer.state.segments.row(segment).state == SegmentState::Log;
    let holds = is_log && holds_something(world, segment);
    if holds {
        writer.state.segments.weightless.insert(segment);
    }
    holds
}

/// Keeps the segments that contain the log after the writer's position, and those in which a record
/// may prove that it continues after its apparent end. If a recovery may have ended and the log
/// continued elsewhere, both paths are kept.
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
        // What can't be read here is not on the path of recovery, or ends it.
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
