//! Jobs that wait for space.
//!
//! A pool in which hosts write over what they have written is full of dead bytes that reclaim
//! brings back. So a job that finds no free segment waits as long as there is something to bring
//! back; it is refused when there is nothing ([`crate::Store::maintain`] decides that). What needs
//! no space does not wait: neither reads nor deallocation nor zeros.

use std::collections::VecDeque;

use block::{BLOCK_BYTES, VolumeError};
use format::log::header_blocks;

use crate::segments::reserve_segments;
use crate::store::Store;
use crate::world::World;
use crate::writer::{Answer, Job, Writer};

/// Free segments that are left to checkpoints alone.
const RESERVE_FOR_CHECKPOINT: u32 = 2;

/// Whether there is room for what a job brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Found,
    /// Not yet, but dead bytes may be brought back.
    Awaited,
    /// None, nor anything to bring back.
    None,
}

impl Writer {
    /// Whether there is room for `blocks` new blocks of a host, and for a record.
    pub(crate) fn room_for(&mut self, world: &World, blocks: usize) -> Room {
        let reserve = reserve_segments(world.medium.geometry().segment_count);
        let wanted = if blocks > 0 { reserve } else { RESERVE_FOR_CHECKPOINT };
        if self.state.segments.free_count() > wanted {
            if blocks > 0 && self.is_paced_out() {
                return Room::Awaited;
            }
            self.fed_at_moved_bytes = self.written.moved_bytes;
            Room::Found
        } else if self.is_exhausted() {
            Room::None
        } else {
            Room::Awaited
        }
    }

    /// Whether there is room for a record of reclaim with so many blocks: what is left of the
    /// segment that the log is in is no use to anything else.
    pub(crate) fn has_room_to_move(&mut self, blocks: usize) -> bool {
        let here = self.segment_rest_blocks() as usize;
        let headers = header_blocks(self.open.entries_bytes) + self.tuning.move_header_blocks();
        self.open.payload_blocks() + blocks + headers as usize <= here
            || self.state.segments.free_count() > RESERVE_FOR_CHECKPOINT
    }

    /// Whether reclaim has found nothing to bring back, and nothing has died since.
    fn is_exhausted(&self) -> bool {
        self.exhausted_at_bytes.is_some_and(|then| self.state.segments.live_log_bytes() >= then)
    }

    /// Lets jobs that wait for space join in front of all others, if there is some for them.
    pub(crate) fn revive_starved(&mut self, world: &World) {
        let starved = std::mem::take(&mut self.starved);
        let mut budget_bytes = self.budget_bytes();
        let mut found = |job: &Job| {
            let blocks = job.data_blocks();
            if blocks > 0
                && let Some(left) = &mut budget_bytes
            {
                if *left <= 0 {
                    return false;
                }
                *left -= blocks as i64 * BLOCK_BYTES as i64;
            }
            self.room_for(world, blocks) == Room::Found
        };
        let (ready, starved): (VecDeque<_>, _) =
            starved.into_iter().partition(|(_, job)| found(job));
        self.starved = starved;
        ready.into_iter().rev().for_each(|job| self.overflow.push_front(job));
    }

    /// Nothing can be brought back: refuses all that waits for space.
    fn refuse_starved(&mut self, world: &World) -> Vec<Answer> {
        self.exhausted_at_bytes = Some(self.state.segments.live_log_bytes());
        let starved = std::mem::take(&mut self.starved);
        let refuse = |(token, job)| {
            let error = match job {
                Job::Edit(edit) | Job::Stage(edit) => {
                    self.let_go(world, &edit, VolumeError::NoSpace)
                }
                _ => VolumeError::NoSpace,
            };
            Answer::Reply(token, Err(error))
        };
        starved.into_iter().map(refuse).collect()
    }
}

impl Job {
    /// How many blocks of data it brings, at most.
    fn data_blocks(&self) -> usize {
        match self {
            Self::Edit(edit) => edit.data_blocks(),
            Self::Stage(edit) => edit.staging.frames.len(),
            Self::Relocate(relocation) => relocation.payload_blocks(),
            Self::Entries(_) | Self::Flush => 0,
        }
    }
}

impl Store {
    /// Lets jobs go on for which there is space now; whether others still wait for some.
    pub(crate) fn is_starving(&self) -> bool {
        let (answers, starving) = {
            let mut writer = self.writer.lock();
            if writer.starved.is_empty() {
                return false;
            }
            let mut answers = Vec::new();
            writer.take_waiting(&self.world, &mut answers);
            (answers, !writer.starved.is_empty())
        };
        self.answer(answers);
        self.hand_over();
        starving
    }

    /// Refuses what waits for space, because there is none to be had.
    pub(crate) fn refuse_starving(&self) {
        let answers = self.writer.lock().refuse_starved(&self.world);
        self.answer(answers);
        self.hand_over();
    }
}
