//! Reclaim: when free segments run short, the log segment with the least live data is emptied, so
//! that the next checkpoint frees it (`relocate` moves its live data).
//!
//! It works in small turns, in step with the hosts: for what they write, as much is moved as keeps
//! the number of free segments constant, and more the fewer there are. So there are no bursts, and
//! in a nearly full pool hosts write at the pace of reclaim (`pace`). Only while jobs wait for
//! space, or no host writes, is it as fast as possible.

use block::BLOCK_BYTES;
use format::PLACE_UNIT_BYTES;

use crate::chunks::verify::Stored;
use crate::space::need::Need;
use crate::space::pace::PACED_PERMILLE;
use crate::upkeep::Store;
use crate::upkeep::compact::Compactor;
use crate::upkeep::read_ahead::ReadAhead;
use crate::upkeep::relocate::SegmentReader;
use crate::upkeep::victim::Victim;
use crate::world::World;
use crate::writer::Writer;
use crate::{Next, StoreError};

/// The divisor for the desired number of free segments, relative to those that would be free if
/// there were no dead data.
const SPARE_DIVISOR: u32 = 2;
/// The segment of the log, and its next one.
const LOG_SEGMENTS_MIN: usize = 2;

/// What is being emptied, and how fast.
#[derive(Default)]
pub(crate) struct Reclaimer {
    pub(super) victim: Option<Victim>,
    /// What is to be emptied next.
    next: Option<SegmentReader>,
    /// Bytes that hosts had written at the last turn.
    seen_bytes: u64,
    /// Bytes that may be moved for what hosts have written.
    credit_bytes: u64,
    /// The pass that empties metadata segments, if there is one.
    pub(super) compaction: Option<Compactor>,
}

/// How short free segments are.
#[derive(Clone, Copy, Debug)]
struct Shortage {
    /// 0: enough are free. 1,000: hosts are about to wait.
    permille: u64,
    /// The need of jobs that already wait for space, or for their pace.
    need: Option<Need>,
    /// Whether jobs wait because there is none.
    exhausted: bool,
}

impl Shortage {
    /// Returns how many dead units make a segment worth emptying: a quarter while there is no
    /// shortage, because more dies by itself the longer it waits; less and less once hosts are
    /// paced, down to what pays for new data (`need`); and as little as the need of waiting jobs
    /// allows if there is nothing else.
    fn gain_units(self, segment_units: u64) -> u64 {
        let least = Need::NewData.least_dead_divisor();
        if self.exhausted {
            return segment_units / self.need.map_or(least, Need::least_dead_divisor);
        }
        let into = self.permille.max(PACED_PERMILLE) - PACED_PERMILLE;
        segment_units * 1000 / (4000 + (least - 4) * 1000 * into / (1000 - PACED_PERMILLE))
    }

    fn starving(self) -> bool {
        self.need.is_some()
    }

    fn pace(self) -> Next {
        if self.starving() { Next::AtOnce } else { Next::Soon }
    }

    /// Returns what may be moved for `bytes` of the hosts. Moving `live` gains `dead`: as much as
    /// they use at a quarter of the shortage, half of that at none, two and a half times at most.
    fn credit(self, bytes: u64, victim: &Victim) -> u64 {
        let cost = bytes * victim.live_units / victim.dead_units.max(1);
        cost * (500 + 2 * self.permille) / 1000
    }
}

impl Store {
    /// Returns whether so few segments are free that one should be emptied.
    pub fn reclaim_due(&self) -> bool {
        self.reclaim_due_of(&mut self.writer.lock())
    }

    pub(crate) fn reclaim_due_of(&self, writer: &mut Writer) -> bool {
        !writer.has_failed()
            && writer.state.segments.free_count() < writer.segments_wanted(&self.world)
            && !writer.is_reclaim_futile()
    }

    /// Moves some live data of the segment that is being emptied, if hosts have written enough
    /// since. Refuses requests that wait for space when no more can be gained.
    pub(crate) fn reclaim_turn(&self, ahead: &mut ReadAhead) -> Result<Next, StoreError> {
        let reclaimer = &mut *self.reclaiming.lock();
        let shortage = self.shortage();
        match self.empty_some(reclaimer, shortage, ahead)? {
            Some(next) => Ok(next),
            None => self.gain_the_rest(reclaimer, shortage),
        }
    }

    /// Does one turn in parallel with freeing dropped nodes, while hosts wait. Freeing may take
    /// seconds and gains no whole segment at first, so hosts get what moves gain meanwhile. If
    /// there is nothing to gain, no request is refused yet.
    pub(crate) fn reclaim_beside(&self, ahead: &mut ReadAhead) -> Result<Next, StoreError> {
        let reclaimer = &mut *self.reclaiming.lock();
        match self.empty_some(reclaimer, self.shortage(), ahead) {
            Ok(_) | Err(StoreError::NoRoom { .. }) => Ok(Next::AtOnce),
            Err(error) => Err(error),
        }
    }

    /// Compacts metadata, or moves a part of the segment that is being emptied. Returns `None` if
    /// neither can gain anything.
    fn empty_some(
        &self,
        reclaimer: &mut Reclaimer,
        shortage: Shortage,
        ahead: &mut ReadAhead,
    ) -> Result<Option<Next>, StoreError> {
        let tuning = &self.options.tuning;
        // Compaction goes with the checkpoints that free emptied segments, unless space is needed
        // at once.
        let compacts = reclaimer.compaction.is_some() || shortage.exhausted;
        if reclaimer.victim.is_none() && compacts && self.compact_turn(&mut reclaimer.compaction)? {
            self.worked_a_turn();
            return Ok(Some(shortage.pace()));
        }
        if reclaimer.victim.is_none() && (shortage.permille > 0 || shortage.starving()) {
            // Without free space, the segment with the least live data now.
            let begun = reclaimer.next.take().filter(|_| !shortage.exhausted);
            reclaimer.victim = self.choose_victim(self.live_units_max(shortage), begun, ahead);
        }
        let Some(victim) = &mut reclaimer.victim else { return Ok(None) };
        let (hosts_bytes, idle) = {
            let mut writer = self.writer.lock();
            writer.pace.set(shortage.permille, victim.live_units, victim.dead_units);
            let written = writer.log.written();
            (written.log_bytes - written.moved_bytes, writer.is_idle())
        };
        let written = hosts_bytes.saturating_sub(reclaimer.seen_bytes);
        let at_once = shortage.starving() || written == 0 && idle;
        let credit = reclaimer.credit_bytes + shortage.credit(written, victim);
        reclaimer.seen_bytes = hosts_bytes;
        reclaimer.credit_bytes = credit.min(tuning.move_credit_bytes_max);
        let batch_bytes = tuning.move_blocks_busy as u64 * BLOCK_BYTES;
        if !at_once && reclaimer.credit_bytes < batch_bytes {
            return Ok(Some(Next::Soon));
        }
        reclaimer.credit_bytes = reclaimer.credit_bytes.saturating_sub(batch_bytes);
        let blocks =
            if shortage.exhausted { tuning.move_blocks_max } else { tuning.move_blocks_busy };
        if !self.move_some(reclaimer, blocks)? {
            return Ok(None);
        }
        if let Some(victim) = &mut reclaimer.victim
            && !shortage.exhausted
        {
            let live_units_max = self.live_units_max(shortage);
            self.read_ahead(victim, &mut reclaimer.next, live_units_max, blocks, ahead);
        }
        Ok(Some(Next::AtOnce))
    }

    /// Empties the log segment with the least live data at once, if that gains anything. Returns
    /// whether something was done.
    ///
    /// # Errors
    /// Those of the store and of its device.
    pub fn reclaim_segment(&self) -> Result<bool, StoreError> {
        let mut reclaimer = self.reclaiming.lock();
        if reclaimer.victim.is_none() {
            let live_units_max = self.live_units_max(self.shortage());
            reclaimer.victim = self.choose_victim(live_units_max, None, &mut ReadAhead::none());
        }
        if reclaimer.victim.is_none() {
            return self.free_any();
        }
        while reclaimer.victim.is_some() {
            if !self.move_some(&mut reclaimer, self.options.tuning.move_blocks_max)? {
                return self.free_any();
            }
        }
        Ok(true)
    }

    /// Moves up to `blocks` blocks of the segment that is being emptied. Returns `false` if the
    /// writer has no room for them.
    pub(super) fn move_some(
        &self,
        reclaimer: &mut Reclaimer,
        blocks: usize,
    ) -> Result<bool, StoreError> {
        let Some(mut victim) = reclaimer.victim.take() else { return Ok(true) };
        let tuning = &self.options.tuning;
        // A record that does not fit the rest of the log's segment would leave that empty.
        let rest = self
            .writer
            .lock()
            .log
            .segment_rest_blocks()
            .saturating_sub(tuning.move_header_blocks());
        let fitting =
            if rest >= tuning.move_blocks_min { blocks.min(rest as usize) } else { blocks };
        let batch: Vec<Stored> = victim.live.drain(..fitting.min(victim.live.len())).collect();
        if !self.move_chunks_from(&batch, &victim.image)? {
            return Ok(false);
        }
        let units: u64 = batch.iter().map(|chunk| u64::from(chunk.row.share_units())).sum();
        self.moved(units * PLACE_UNIT_BYTES);
        if !victim.live.is_empty() {
            reclaimer.victim = Some(victim);
            return Ok(true);
        }
        {
            let mut writer = self.writer.lock();
            let row = writer.state.segments.row(victim.segment);
            if row.live_units > 0 && row.opened_lsn == victim.opened_lsn {
                // Something in it can't be read, or is not in its records: it is left alone.
                writer.supply.leave_alone(victim.segment);
            }
        }
        self.weigh_again(victim.segment);
        self.free_emptied(&mut reclaimer.compaction)?;
        Ok(true)
    }

    /// Handles that no segment is worth emptying, or there is no room for it: frees what is empty,
    /// and if there is nothing, refuses jobs that wait for it.
    fn gain_the_rest(
        &self,
        reclaimer: &mut Reclaimer,
        shortage: Shortage,
    ) -> Result<Next, StoreError> {
        self.writer.lock().pace.end();
        let freed = match shortage.starving() {
            true => self.free_any()?,
            false => self.free_emptied(&mut reclaimer.compaction)?,
        };
        if freed {
            return Ok(Next::AtOnce);
        }
        if self.compact_turn(&mut reclaimer.compaction)? {
            return Ok(shortage.pace());
        }
        if !self.is_starving() {
            self.writer.lock().rest_from_reclaim();
            return Ok(Next::Nothing);
        }
        if self.writer.lock().state.segments.awaits_readers() {
            return Ok(Next::Soon);
        }
        self.refuse_starving(shortage.need.unwrap_or(Need::NewData));
        Ok(Next::AtOnce)
    }

    fn shortage(&self) -> Shortage {
        let mut writer = self.writer.lock();
        let reserve = writer.reserve_now(&self.world);
        let least = u64::from(reserve + reserve / 2);
        let most = u64::from(writer.segments_wanted(&self.world)).max(least + 1);
        let free = u64::from(writer.state.segments.free_count());
        let need = writer.greatest_need();
        let exhausted = need.is_some() && free <= u64::from(reserve);
        // The next checkpoint frees what is emptied, so it counts as free, unless jobs wait now.
        let emptied = if exhausted { 0 } else { writer.dead_segments() as u64 };
        let permille = most.saturating_sub(free + emptied) * 1000 / (most - least);
        Shortage { permille: permille.min(1000), need, exhausted }
    }

    /// Writes a checkpoint if that frees several segments, and as many as are free: then it costs
    /// little for each, and hosts have the others while it is written. Returns whether it did.
    pub(crate) fn free_emptied(&self, pass: &mut Option<Compactor>) -> Result<bool, StoreError> {
        let least = (self.world.medium.whole_segments() as usize / 64).clamp(2, 16);
        {
            let mut writer = self.writer.lock();
            let free = writer.state.segments.free_count() as usize;
            if writer.dead_segments() < least.max(free) {
                return Ok(false);
            }
        }
        self.checkpoint_compacting(pass)?;
        Ok(true)
    }

    /// Writes a checkpoint if that frees any segment, or allows emptying one that recovery would
    /// read now. Returns whether it did.
    pub(super) fn free_any(&self) -> Result<bool, StoreError> {
        let gains = {
            let writer = self.writer.lock();
            writer.dead_segments() > 0 || writer.log.segments().len() > LOG_SEGMENTS_MIN
        };
        if gains {
            self.checkpoint()?;
        }
        Ok(gains)
    }

    /// Returns the maximum of live units with which a segment is worth emptying.
    fn live_units_max(&self, shortage: Shortage) -> u64 {
        let segment_units = self.world.medium.geometry().segment_bytes() / PLACE_UNIT_BYTES;
        segment_units - shortage.gain_units(segment_units)
    }
}

impl Writer {
    /// Returns the number of free segments below which some should be emptied: half of those that
    /// would be free if there were no dead data, at least twice the reserve, and at most what the
    /// medium wants ([`Medium::segments_wanted`](crate::chunks::medium::Medium::segments_wanted)).
    /// Dead data in other segments makes emptying them cheap, so it should not be much less than
    /// what is free.
    fn segments_wanted(&self, world: &World) -> u32 {
        let (most, least) = (world.medium.segments_wanted(), 2 * world.medium.reserve_segments());
        let segments = &self.state.segments;
        let segment_bytes = world.medium.geometry().segment_bytes();
        let live = segments.live_bytes().div_ceil(segment_bytes) as u32;
        let spare = world.medium.whole_segments().saturating_sub(live);
        (spare / SPARE_DIVISOR).clamp(least, most)
    }

    /// Returns how many segments the next checkpoint frees.
    fn dead_segments(&self) -> usize {
        self.state.segments.dead(self.log.segments()).len()
    }

    /// Returns an eighth of a segment: after so much more log another search for dead blocks may
    /// pay.
    pub(crate) fn eighth_segment_bytes(&self) -> u64 {
        self.log.segment_bytes() / 8
    }

    /// Pauses reclaim, which has found nothing worth moving, until an eighth of a segment was
    /// written since, or has died.
    fn rest_from_reclaim(&mut self) {
        let eighth = self.eighth_segment_bytes();
        let live_bytes = self.state.segments.live_log_bytes();
        let log_bytes = self.log.written().log_bytes + eighth;
        self.supply.rest_from_reclaim(log_bytes, live_bytes.saturating_sub(eighth));
    }

    fn is_reclaim_futile(&self) -> bool {
        let (written, live_bytes) = (self.log.written(), self.state.segments.live_log_bytes());
        !self.queues.has_starved() && self.supply.does_reclaim_rest(written.log_bytes, live_bytes)
    }
}
