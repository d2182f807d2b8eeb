//! Adapting the layout of segments to the current devices.
//!
//! If devices were lost, and the others have no free part for their columns, segments become
//! narrower; if devices were added, wider ([`segments::Segments::to_lay_anew`]). Only an empty
//! segment can change its layout. So free segments do, some at a time; and the live data of others
//! is moved, as by reclaim, until they are free: those first that lack most. What is moved, and
//! what hosts write meanwhile, goes to segments that have their new layout already.
//!
//! The log itself must leave its segment, and its next one: it continues in the next one although
//! there is room, and then in one that was opened since. Checkpoints leave theirs in the same way.
//!
//! This state is only in memory: after a start it is determined again.

use std::collections::BTreeMap;
use std::sync::Arc;

use format::SegmentState;
use segments::ToLayAnew;

use crate::StoreError;
use crate::space::widths::SegmentWidths;
use crate::upkeep::Store;
use crate::upkeep::compact::MOVED_UNITS_MAX;
use crate::upkeep::read_ahead::ReadAhead;
use crate::upkeep::reclaim::Reclaimer;
use crate::upkeep::relocate::SegmentReader;
use crate::upkeep::victim::Victim;
use crate::writer::Writer;

/// The number of segments whose layout is changed with one change of the map.
const SEGMENTS_A_TURN: usize = 64;

/// The state in which nothing was left to do: it is checked again when that has changed.
#[derive(Debug, Default)]
pub(crate) struct Rested(Option<(Arc<ToLayAnew>, u64)>);

impl Store {
    /// Does one turn of adapting segments. Returns whether anything was done.
    ///
    /// # Errors
    /// Those of the store and of its devices.
    pub(crate) fn lay_turn(&self) -> Result<bool, StoreError> {
        let Some(to_lay) = self.world.medium.disk.to_lay_anew() else { return Ok(false) };
        if self.does_laying_rest(&to_lay) {
            return Ok(false);
        }
        if self.lay_free(&to_lay) || self.empty_to_lay(&to_lay)? {
            return Ok(true);
        }
        let lsn = self.writer.lock().log.end().lsn;
        self.laying.lock().0 = Some((to_lay, lsn));
        Ok(false)
    }

    /// Returns whether there is anything to do about segments that should have another layout.
    pub(crate) fn is_laying_due(&self, writer: &Writer) -> bool {
        let to_lay = self.world.medium.disk.to_lay_anew();
        to_lay.is_some_and(|to_lay| !self.rests_from_laying(&to_lay, writer.log.end().lsn))
    }

    fn does_laying_rest(&self, to_lay: &Arc<ToLayAnew>) -> bool {
        let lsn = self.writer.lock().log.end().lsn;
        self.rests_from_laying(to_lay, lsn)
    }

    fn rests_from_laying(&self, to_lay: &Arc<ToLayAnew>, lsn: u64) -> bool {
        let rested = self.laying.lock();
        rested.0.as_ref().is_some_and(|(of, at)| Arc::ptr_eq(of, to_lay) && *at == lsn)
    }

    /// Changes the layout of some free segments. Returns whether there were any.
    fn lay_free(&self, to_lay: &ToLayAnew) -> bool {
        // A capture in progress has computed its space with the current widths.
        let Some(_checkpointer) = self.checkpointing.try_lock() else { return false };
        let wanted = [&to_lay.lacking[..], &to_lay.narrow[..]].concat();
        let taken = self.writer.lock().state.segments.take_to_lay(&wanted, SEGMENTS_A_TURN);
        if taken.is_empty() {
            return false;
        }
        let medium = &self.world.medium;
        let laid = medium.lay_anew(&taken);
        let writer = &mut *self.writer.lock();
        if laid {
            let widths = SegmentWidths::of(medium, taken.iter().copied());
            writer.widths_changed(&self.world, &widths);
        }
        writer.state.segments.laid_anew(taken);
        laid
    }

    /// Moves some live data of such segments in use. Returns whether anything was done.
    fn empty_to_lay(&self, to_lay: &ToLayAnew) -> Result<bool, StoreError> {
        let reclaimer = &mut *self.reclaiming.lock();
        if !self.has_room_to_lay() {
            return Ok(false);
        }
        if self.leave_metadata(to_lay) || self.compact_turn(&mut reclaimer.compaction)? {
            return Ok(true);
        }
        if reclaimer.victim.is_none() {
            reclaimer.victim = self.victim_to_lay(to_lay);
        }
        if reclaimer.victim.is_none() {
            return self.leave_log(to_lay, reclaimer);
        }
        self.move_to_lay(reclaimer)
    }

    fn move_to_lay(&self, reclaimer: &mut Reclaimer) -> Result<bool, StoreError> {
        let tuning = &self.options.tuning;
        let is_idle = self.writer.lock().is_idle();
        let blocks = if is_idle { tuning.move_blocks_max } else { tuning.move_blocks_busy };
        Ok(self.move_some(reclaimer, blocks)? || self.free_any()?)
    }

    /// Returns whether so much is free that hosts do not need what is moved before a checkpoint
    /// frees it.
    fn has_room_to_lay(&self) -> bool {
        let writer = &mut *self.writer.lock();
        let reserve = writer.reserve_now(&self.world);
        !writer.queues.has_starved() && writer.state.segments.free_count() > reserve + reserve / 2
    }

    /// Returns a segment of the log that is to be emptied, if there is one that recovery would not
    /// read.
    fn victim_to_lay(&self, to_lay: &ToLayAnew) -> Option<Victim> {
        for segment in to_lay.lacking.iter().chain(&to_lay.narrow).copied() {
            let row = {
                let writer = self.writer.lock();
                let row = writer.state.segments.row(segment);
                let is_it = row.state == SegmentState::Log
                    && (row.live_units > 0 || writer.state.segments.weightless.contains(&segment))
                    && !writer.log.segments().contains(&segment)
                    && !writer.supply.is_unreclaimable(segment);
                is_it.then_some(row)
            };
            let Some(row) = row else { continue };
            let reader = SegmentReader::new(segment, row.opened_lsn);
            let victim = self.victim_of(row, reader, &mut ReadAhead::none());
            if victim.is_some() {
                return victim;
            }
        }
        None
    }

    /// Returns whether a checkpoint frees some of those segments, or makes recovery not read them.
    /// While hosts write, only for those that lack something.
    fn is_checkpoint_wanted(&self, to_lay: &ToLayAnew) -> bool {
        let writer = &mut *self.writer.lock();
        let (end, rows) = (writer.log.end(), &writer.state.segments);
        let is_read = |segment: &u32| {
            writer.log.segments().contains(segment)
                && *segment != end.segment
                && *segment != end.next_segment
        };
        let is_dead = |segment: &u32| {
            let row = rows.row(*segment);
            row.state != SegmentState::Free
                && row.live_units == 0
                && !rows.weightless.contains(segment)
                && !writer.log.segments().contains(segment)
        };
        let narrow = if writer.is_idle() { &to_lay.narrow[..] } else { &[] };
        to_lay.lacking.iter().chain(narrow).any(|segment| is_read(segment) || is_dead(segment))
    }

    /// Frees by a checkpoint what only recovery would read or what is dead, and makes the log leave
    /// segments that lack something. Returns whether anything was done.
    fn leave_log(&self, to_lay: &ToLayAnew, reclaimer: &mut Reclaimer) -> Result<bool, StoreError> {
        if self.is_checkpoint_wanted(to_lay) {
            self.checkpoint()?;
            return Ok(true);
        }
        let (segment, row) = {
            let writer = &mut *self.writer.lock();
            let end = writer.log.end();
            let lacks = |segment| to_lay.lacking.contains(&segment);
            if !lacks(end.segment) && !lacks(end.next_segment) {
                return Ok(false);
            }
            writer.log.leave_segment();
            // Hosts' next record goes there; if there is none, something is moved.
            if !writer.is_idle() || writer.has_failed() {
                return Ok(false);
            }
            (end.segment, writer.state.segments.row(end.segment))
        };
        if row.live_units == 0 {
            return Ok(false);
        }
        let reader = SegmentReader::new(segment, row.opened_lsn);
        reclaimer.victim = self.victim_of(row, reader, &mut ReadAhead::none());
        if reclaimer.victim.is_none() { Ok(false) } else { self.move_to_lay(reclaimer) }
    }

    /// Makes checkpoints continue in another segment, if theirs lacks something. Returns whether it
    /// does.
    fn leave_metadata(&self, to_lay: &ToLayAnew) -> bool {
        let Some(mut checkpointer) = self.checkpointing.try_lock() else { return false };
        let open = checkpointer.superblock().metadata_segment;
        if open == 0 || !to_lay.lacking.contains(&open) || !checkpointer.refused.insert(open) {
            return false;
        }
        self.writer.lock().next_checkpoint.note_open((0, 0));
        true
    }
}

impl Writer {
    /// Returns the metadata segments that should have another layout, and when they were opened,
    /// without the one in which checkpoints continue: as many as fit a quarter of the free space.
    pub(super) fn metadata_to_lay(
        &mut self,
        to_lay: &ToLayAnew,
        open: u32,
        segment_units: u64,
    ) -> BTreeMap<u32, u64> {
        let free = u64::from(self.state.segments.free_count());
        let room_units = free.saturating_sub(u64::from(self.left_by_data())) * segment_units / 4;
        let room_units = if self.has_failed() { 0 } else { room_units.min(MOVED_UNITS_MAX) };
        let segments = to_lay.lacking.iter().chain(&to_lay.narrow).copied();
        let rows = segments.map(|segment| (segment, self.state.segments.row(segment)));
        let rows = rows.filter(|(segment, row)| {
            row.state == SegmentState::Metadata
                && row.live_units > 0
                && *segment != open
                && !self.supply.is_unreclaimable(*segment)
        });
        let mut moved_units = 0;
        let fitting = rows.take_while(|(_, row)| {
            moved_units += u64::from(row.live_units);
            moved_units <= room_units
        });
        fitting.map(|(segment, row)| (segment, row.opened_lsn)).collect()
    }
}
