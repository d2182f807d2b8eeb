//! Catching up: copying to a device what it lacks, because it was written while the device was not
//! in.
//!
//! From when it begins to catch up the device receives all writes
//! ([`segments::Segments::lacking`]); the same holds for parts to which columns are moved. So a
//! *plan* of what must be copied is made after that, and nothing is added to it:
//!
//! 1. Under the writer's lock: all segments in use, and of those of the log only what is before its
//!    end.
//! 2. Wait for writes that were in flight then, perhaps not to this device.
//! 3. Copy the segments, a piece in each turn. A segment that was freed since is skipped, because
//!    it may have been reused. A reader's token, and for metadata the checkpointer, prevent that
//!    during a piece.
//! 4. Write a record after the plan, if there was none. What this device has after the log's end is
//!    from before it went out, and may be a record that was never acknowledged, and was given up
//!    without it. After a record of this epoch it is not part of the log. If there is no location
//!    for one, nothing is left of the old ones that could be found: see [`Store::write_behind`].
//! 5. The device is in, or the columns are at their new locations.
//!
//! What is copied is compared with another device if there is one more than is needed. If they
//! differ, one of them is not what was written, and checksums show which. The log is repaired
//! before it is copied. Metadata is copied as it is, because only a walk through its trees finds
//! the checksums: a pass of scrubbing follows when the device is in.
//!
//! A plan is only in memory: after a restart a new one is made.

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

/// The number of blocks copied in one turn: 1 MiB, which delays a checkpoint by some milliseconds.
const TURN_BLOCKS: u32 = 256;

/// The progress of a device that catches up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatchingUp {
    /// Its number in the pool.
    pub device: u16,
    /// Bytes that it has received, or that are no longer needed.
    pub done_bytes: u64,
    /// Bytes that it lacked.
    pub all_bytes: u64,
}

/// The devices that catch up, and their progress.
#[derive(Default)]
pub(crate) struct CatchUp {
    plans: Mutex<Vec<Plan>>,
    /// The same for callers that do not wait for a turn.
    told: Mutex<Vec<CatchingUp>>,
    /// Whether there is a plan. A hint.
    is_under_way: AtomicBool,
    /// Whether metadata was copied of which the sources differ, since scrubbing began last.
    is_in_doubt: AtomicBool,
}

/// What a target is to get.
struct Plan {
    who: Lacking,
    /// The number of the attempt to catch up.
    attempt: u64,
    /// The first record that was not sealed yet.
    end_lsn: u64,
    parts: VecDeque<Part>,
    done_blocks: u64,
    all_blocks: u64,
}

/// A segment, or the part of it before the log's end, in rows, which are blocks unless the pool is
/// striped.
struct Part {
    segment: u32,
    /// Its row in the segment table at that time.
    row: SegmentRow,
    next_block: u32,
    end_block: u32,
}

impl Part {
    /// Returns whether the segment still has this content.
    fn is_of(&self, row: &SegmentRow) -> bool {
        (row.state, row.opened_lsn, row.opened_epoch)
            == (self.row.state, self.row.opened_lsn, self.row.opened_epoch)
    }

    fn left_blocks(&self) -> u32 {
        self.end_block - self.next_block
    }
}

/// The result of a turn.
enum Turn {
    More,
    /// Others must do something first.
    Waits,
    /// The device has everything.
    Done,
}

impl CatchUp {
    /// Returns whether a device was found that catches up. Takes no lock.
    pub(crate) fn is_under_way(&self) -> bool {
        self.is_under_way.load(Ordering::Relaxed)
    }

    /// Notes that scrubbing begins: it reads all devices that are in.
    pub(crate) fn is_scrubbed(&self) {
        if !self.is_under_way() {
            self.is_in_doubt.store(false, Ordering::Relaxed);
        }
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
    /// Returns the devices that catch up, and their progress.
    pub fn catching_up(&self) -> Vec<CatchingUp> {
        self.catch_up.told.lock().clone()
    }

    /// Returns whether scrubbing should begin now, because a device has metadata that may be wrong.
    pub fn is_scrub_wanted(&self) -> bool {
        !self.catch_up.is_under_way() && self.catch_up.is_in_doubt.load(Ordering::Relaxed)
    }

    /// Continues catching up, one device after the other. Returns whether there is more to do.
    pub(crate) fn catch_up_turn(&self) -> bool {
        let disk = &self.world.medium.disk;
        if disk.copies() <= 1 || self.has_failed() {
            return false;
        }
        // Another thread has a turn now.
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
                // A device that has failed is out; for one that has not, a new plan is made.
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
            // Before the row is checked: what is freed after that is not reused before this ends.
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

    /// Returns whether the target lacks a part of the log's current or next segment.
    fn is_at_end(&self, who: Lacking) -> bool {
        let end = self.writer.lock().log.end();
        let disk = &self.world.medium.disk;
        disk.lacks(who, end.segment) || disk.lacks(who, end.next_segment)
    }

    /// Copies or rebuilds some rows of a segment. Returns `false` if the other devices can't read
    /// anything for now.
    fn give_rows(
        &self,
        who: Lacking,
        segment: u32,
        is_metadata: bool,
        rows: Range<u32>,
    ) -> io::Result<bool> {
        let disk = &self.world.medium.disk;
        if !self.world.medium.geometry().has_stripes() {
            return self.copy_rows(who, segment, is_metadata, rows);
        }
        match disk.rebuild(who, segment, is_metadata, rows.clone())? {
            Rebuilt::All => return Ok(true),
            Rebuilt::Doubtful if is_metadata => {
                self.catch_up.is_in_doubt.store(true, Ordering::Relaxed);
                return Ok(true);
            }
            // The device receives what is encoded, too.
            Rebuilt::Doubtful => {
                self.encode_rows_anew(segment, &rows);
                return Ok(true);
            }
            Rebuilt::Nothing => {}
        }
        // A row that can't be read is lost: the old content there is not mistaken for anything
        // else.
        let mut is_any = false;
        for row in rows {
            let rebuilt = disk.rebuild(who, segment, is_metadata, row..row + 1)?;
            is_any |= rebuilt != Rebuilt::Nothing;
        }
        Ok(is_any || self.world.medium.answers().is_ok())
    }

    /// The same in mirrors.
    fn copy_rows(
        &self,
        who: Lacking,
        segment: u32,
        is_metadata: bool,
        rows: Range<u32>,
    ) -> io::Result<bool> {
        let (place, count) = (Place::of_block(segment, rows.start), rows.end - rows.start);
        let frames = match self.read_compared(place, count) {
            Some((frames, true)) => Some(frames),
            Some((frames, false)) if is_metadata => {
                self.catch_up.is_in_doubt.store(true, Ordering::Relaxed);
                Some(frames)
            }
            Some((_, false)) => {
                self.mend_rows(segment, &rows);
                self.read_for_copy(place, count)
            }
            None => self.read_for_copy(place, count),
        };
        let Some(frames) = frames else { return Ok(false) };
        self.world.medium.disk.copy_to(who, place, &frames).map(|()| true)
    }

    /// Reads from each of the other devices that can be read. Returns what the first one has, and
    /// whether all have the same.
    fn read_compared(&self, place: Place, count: u32) -> Option<(Vec<Frame>, bool)> {
        let disk = &self.world.medium.disk;
        let mut copies = (0..disk.copies()).filter_map(|copy| {
            let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
            disk.read_copy(place, copy, &mut frames).ok().map(|()| frames)
        });
        let first = copies.next()?;
        let is_same = |other: Vec<FrameMut>| first.iter().zip(&other).all(|(a, b)| a[..] == b[..]);
        let agree = copies.all(is_same);
        Some((first.into_iter().map(FrameMut::freeze).collect(), agree))
    }

    /// Reads from the other devices. What none of them can read is replaced by zeros, which are
    /// invalid: it is lost anyway, and what is there is older. `None`: they can't read anything for
    /// now.
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

    /// Writes a record, if none follows the plan yet. Returns `false` if there is no location for
    /// one now, and nothing is left of what the target had after the log's end.
    ///
    /// # Errors
    /// If a device fails; if a record was written meanwhile, which may have been overwritten:
    /// everything up to its end is then copied again.
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
        // A record with a bad header is found through the next one: one row is not enough.
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

    /// Overwrites what the target has in rows after the log's end with what proves no more than the
    /// other devices do: zeros or, in stripes, what the others encode.
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
