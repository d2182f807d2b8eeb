//! Giving a device what it lacks: all that was written while it was not in.
//!
//! From when it begins to catch up all that is written goes to it too
//! ([`segments::Segments::lacking`]), and so it is with the parts that columns are moved to. So a
//! *plan* is made after that, of what there is to be copied, and no more comes to it:
//!
//! 1. Under the writer's lock: all segments that are in use, and of those of the log only what is
//!    before its end.
//! 2. What was on its way then, perhaps not to this device, is waited for.
//! 3. The segments are copied, a piece in each turn. A segment that was freed since is left out: by
//!    now something else may be written there. That nobody does so in the midst of a piece is seen
//!    to by a reader's token, and for metadata by the checkpointer.
//! 4. A record is written behind the plan, where none was. What this device has behind the log's
//!    end is from before it went out, and may be a record that was never answered, and was given up
//!    without it. Behind a record of this epoch it is none of the log. Where there is no place for
//!    one, nothing is left of the old ones that could be found: see [`Store::write_behind`].
//! 5. The device is in, or the columns are where they were moved to.
//!
//! A plan is in memory only: after a restart it is made anew.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use block::{BLOCK_BYTES, Frame, FrameMut};
use format::{Place, SegmentRow, SegmentState};
use segments::{Lacking, Rebuilt};

use crate::log::log_reader::entry_blocks;
use crate::sync::Mutex;
use crate::upkeep::Store;

/// Blocks that are copied in one turn: 1 MiB, which holds up a checkpoint for some milliseconds.
const TURN_BLOCKS: u32 = 256;

/// How far a device is that catches up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchingUp {
    /// Its number in the pool.
    pub device: u16,
    /// Bytes that it was given, or that are not needed any more.
    pub done_bytes: u64,
    /// Bytes that it lacked.
    pub all_bytes: u64,
}

/// Which devices catch up, and how far they are.
#[derive(Default)]
pub(crate) struct CatchUp {
    plans: Mutex<Vec<Plan>>,
    /// The same for those who ask, who do not wait for a turn.
    told: Mutex<Vec<CatchingUp>>,
    /// Whether there is a plan. A hint.
    is_under_way: AtomicBool,
}

/// What somebody is to be given.
struct Plan {
    who: Lacking,
    /// Which of all attempts to give somebody something this is.
    attempt: u64,
    /// The first record that was not sealed yet.
    end_lsn: u64,
    parts: VecDeque<Part>,
    done_blocks: u64,
    all_blocks: u64,
}

/// A segment, or what of it is before the log's end: rows of it, which are blocks unless it is in
/// stripes.
struct Part {
    segment: u32,
    /// Its row in the segment table then.
    row: SegmentRow,
    next_block: u32,
    end_block: u32,
}

impl Part {
    /// Whether the segment is still what it was.
    fn is_of(&self, row: &SegmentRow) -> bool {
        (row.state, row.opened_lsn, row.opened_epoch)
            == (self.row.state, self.row.opened_lsn, self.row.opened_epoch)
    }

    fn left_blocks(&self) -> u32 {
        self.end_block - self.next_block
    }
}

/// What a turn came to.
enum Turn {
    More,
    /// Others have to do something first.
    Waits,
    /// The device has all.
    Done,
}

impl CatchUp {
    /// Whether a device was found that catches up. Takes no lock.
    pub(crate) fn is_under_way(&self) -> bool {
        self.is_under_way.load(Ordering::Relaxed)
    }

    fn tell(&self, plans: &[Plan]) {
        let told = plans.iter().filter_map(|plan| match plan.who {
            Lacking::Device(device) => Some(CatchingUp {
                device,
                done_bytes: plan.done_blocks * BLOCK_BYTES,
                all_bytes: plan.all_blocks * BLOCK_BYTES,
            }),
            Lacking::Parts => None,
        });
        *self.told.lock() = told.collect();
        self.is_under_way.store(!plans.is_empty(), Ordering::Relaxed);
    }
}

impl Store {
    /// The devices that catch up, and how far they are.
    pub fn catching_up(&self) -> Vec<CatchingUp> {
        self.catch_up.told.lock().clone()
    }

    /// Goes on with giving devices what they lack, one after the other. Whether there is more to
    /// do.
    pub(crate) fn catch_up_turn(&self) -> bool {
        let disk = &self.world.medium.disk;
        if disk.copies() <= 1 || self.has_failed() {
            return false;
        }
        // Whoever has a turn now does it.
        let Some(mut plans) = self.catch_up.plans.try_lock() else { return false };
        disk.begin_to_give();
        let lacking = disk.lacking();
        plans.retain(|plan| lacking.contains(&(plan.who, plan.attempt)));
        for (who, attempt) in lacking {
            if !plans.iter().any(|plan| plan.who == who) {
                plans.push(self.plan_for(who, attempt));
            }
        }
        if let Some(plan) = plans.first_mut() {
            match self.go_on_with(plan) {
                Ok(Turn::More | Turn::Waits) => {}
                // One that has failed is out; for one that has not, a plan is made anew.
                Ok(Turn::Done) | Err(_) => drop(plans.remove(0)),
            }
        }
        self.catch_up.tell(&plans);
        !plans.is_empty()
    }

    fn plan_for(&self, who: Lacking, attempt: u64) -> Plan {
        let rows = self.world.medium.geometry().rows();
        let writer = self.writer.lock();
        let end = writer.log.end();
        let part = |(segment, row): (u32, SegmentRow)| {
            let end_block = match segment {
                segment if segment == end.segment => end.block,
                segment if segment == end.next_segment => 0,
                _ => rows,
            };
            Part { segment, row, next_block: 0, end_block }
        };
        let rows = writer.state.segments.rows();
        let in_use = rows.filter(|(segment, row)| *segment > 0 && row.state != SegmentState::Free);
        let in_use = in_use.filter(|(segment, _)| self.world.medium.disk.lacks(who, *segment));
        let parts: VecDeque<Part> = in_use.map(part).collect();
        let all_blocks = parts.iter().map(|part| u64::from(part.end_block)).sum();
        Plan { who, attempt, end_lsn: end.lsn, parts, done_blocks: 0, all_blocks }
    }

    fn go_on_with(&self, plan: &mut Plan) -> io::Result<Turn> {
        let position_lsn = self.writer.lock().log.position().lsn;
        if position_lsn < plan.end_lsn {
            return Ok(Turn::Waits);
        }
        while let Some(part) = plan.parts.front_mut() {
            if part.left_blocks() == 0 {
                plan.parts.pop_front();
                continue;
            }
            // Before the row is looked at: what is freed behind that is not used before this ends.
            let _token = self.world.reader_token();
            let is_metadata = part.row.state == SegmentState::Metadata;
            let checkpointer = is_metadata.then(|| self.checkpointing.try_lock());
            if matches!(checkpointer, Some(None)) {
                return Ok(Turn::Waits);
            }
            let row = self.writer.lock().state.segments.row(part.segment);
            if !part.is_of(&row) {
                plan.done_blocks += u64::from(part.left_blocks());
                plan.parts.pop_front();
                continue;
            }
            let count = part.left_blocks().min(TURN_BLOCKS);
            let rows = part.next_block..part.next_block + count;
            if !self.give_rows(plan.who, part.segment, is_metadata, rows)? {
                return Ok(Turn::Waits);
            }
            part.next_block += count;
            plan.done_blocks += u64::from(count);
            return Ok(Turn::More);
        }
        if position_lsn == plan.end_lsn && self.is_at_end(plan.who) && self.write_behind(plan)? {
            return Ok(Turn::Waits);
        }
        self.world.medium.disk.given(plan.who)?;
        Ok(Turn::Done)
    }

    /// Whether something of the segment that the log ends in, or goes on in, is lacking.
    fn is_at_end(&self, who: Lacking) -> bool {
        let end = self.writer.lock().log.end();
        let disk = &self.world.medium.disk;
        disk.lacks(who, end.segment) || disk.lacks(who, end.next_segment)
    }

    /// Gives them what they should have in some rows of a segment. `false`: the others can't read
    /// anything, for now.
    fn give_rows(
        &self,
        who: Lacking,
        segment: u32,
        is_metadata: bool,
        rows: Range<u32>,
    ) -> io::Result<bool> {
        let disk = &self.world.medium.disk;
        if !self.world.medium.geometry().has_stripes() {
            let place = Place::of_block(segment, rows.start);
            let Some(frames) = self.read_for_copy(place, rows.end - rows.start) else {
                return Ok(false);
            };
            return disk.copy_to(who, place, &frames).map(|()| true);
        }
        match disk.rebuild(who, segment, is_metadata, rows.clone())? {
            Rebuilt::All => return Ok(true),
            // One of the others holds something else than was written: which, checksums say.
            Rebuilt::Doubtful => {
                self.encode_rows_anew(segment, &rows);
                return Ok(true);
            }
            Rebuilt::Nothing => {}
        }
        // A row that can't be had is lost: what stands there is older, and nobody takes it for
        // anything else.
        let mut is_any = false;
        for row in rows {
            let rebuilt = disk.rebuild(who, segment, is_metadata, row..row + 1)?;
            is_any |= rebuilt != Rebuilt::Nothing;
        }
        Ok(is_any || self.world.medium.answers().is_ok())
    }

    /// What others have. What none of them can read is zeros, which are nothing: it is lost anyway,
    /// and what stands there is older. `None`: they can't read anything, for now.
    fn read_for_copy(&self, place: Place, count: u32) -> Option<Vec<Frame>> {
        let medium = &self.world.medium;
        let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
        if medium.disk.read_patiently(place, &mut frames).is_ok() {
            return Some(frames.into_iter().map(FrameMut::freeze).collect());
        }
        let read_one = |block| {
            let mut frame = [FrameMut::stale()];
            let read = medium.disk.read_patiently(place.plus_blocks(block), &mut frame);
            let [frame] = frame;
            read.ok().map(|()| frame.freeze())
        };
        let read: Vec<Option<Frame>> = (0..count).map(read_one).collect();
        if read.iter().any(Option::is_none) && medium.answers().is_err() {
            return None;
        }
        Some(read.into_iter().map(|frame| frame.unwrap_or_else(Frame::zeros)).collect())
    }

    /// Writes a record, if none follows the plan yet. `false`: there is no place for one of its own
    /// now, and nothing is left behind the log's end of what they had there.
    ///
    /// # Errors
    /// If a device fails; if a record was written meanwhile, which may have been written over: all
    /// up to its end is copied once more then.
    fn write_behind(&self, plan: &Plan) -> io::Result<bool> {
        let end = {
            let mut writer = self.writer.lock();
            let end = writer.log.end();
            let is_there =
                end.lsn > plan.end_lsn || !writer.is_idle() || writer.begin_mark(&self.world);
            (!is_there).then_some(end)
        };
        let Some(end) = end else {
            self.commit_here();
            return Ok(true);
        };
        // A record whose header is bad is found by the one behind it: one row is not enough.
        let medium = &self.world.medium;
        let rows = medium.geometry().rows();
        let most_of = |segment| medium.tuning.record_rows_max(medium.geometry_of(segment));
        let most_here = most_of(end.segment);
        let here = end.block..rows.min(end.block.saturating_add(most_here).saturating_add(1));
        let next = 0..rows.min(most_of(end.next_segment).saturating_add(1));
        let entries = entry_blocks(rows).map(|block| (end.next_segment, block..block + 1));
        for (segment, rows) in
            [(end.segment, here), (end.next_segment, next)].into_iter().chain(entries)
        {
            self.leave_nothing(plan.who, segment, rows)?;
        }
        match self.writer.lock().log.end().lsn == plan.end_lsn {
            true => Ok(false),
            false => Err(io::Error::other("a record was written meanwhile")),
        }
    }

    /// What they have in rows behind the log's end tells nothing that others do not tell: zeros, or
    /// in stripes what those make of it.
    fn leave_nothing(&self, who: Lacking, segment: u32, rows: Range<u32>) -> io::Result<()> {
        let turns = |from: u32| from..rows.end.min(from.saturating_add(TURN_BLOCKS));
        for turn in rows.clone().step_by(TURN_BLOCKS as usize).map(turns) {
            if self.world.medium.geometry().has_stripes() {
                if !self.give_rows(who, segment, false, turn)? {
                    return Err(io::Error::other("too few devices can be read"));
                }
            } else {
                let zeros = vec![Frame::zeros(); turn.len()];
                let place = Place::of_block(segment, turn.start);
                self.world.medium.disk.copy_to(who, place, &zeros)?;
            }
        }
        Ok(())
    }
}
