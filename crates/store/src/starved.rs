//! Jobs that wait for space.
//!
//! A pool in which hosts write over what they have written is full of dead bytes that reclaim
//! brings back. So a job that finds no free segment waits as long as there is something to bring
//! back; it is refused when there is nothing ([`crate::Store::maintain`] decides that). How much
//! must stay free for what, says `room`. Reads never wait.
//!
//! No job waits for ever. What is done to win space is counted as *work* ([`Writer::work_bytes`]):
//! the bytes that reclaim moves and that checkpoints write, and a block for each turn, so that a
//! turn which writes nothing counts as well. Let `W` be [`Store::work_bytes_max`].
//!
//! Invariants:
//! 1. A job begins to wait once: it keeps the work of that moment until it joins the open record,
//!    however often it finds room and loses it again, or is read again in between.
//! 2. Whether a job gets in is decided where it joins, and only a job that has joined counts as
//!    fed. That there seems to be room for it counts for nothing.
//! 3. After `W` of work in which no job was fed all are refused. So, of those that wait, one is fed
//!    in each `W`, or none is left.
//! 4. A job that others overtake is refused after [`OVERTAKEN_MAX`] times `W`.
//!
//! Each turn of [`crate::Store::maintain`] begins with 3 and 4, so whatever a turn does, and
//! however it ends, it can't keep a job for longer.

use std::collections::VecDeque;

use block::{BLOCK_BYTES, BlockRange, VolumeError};
use format::log::header_blocks;
use format::{Entry, MapEntry, VolumeRow};

use crate::Token;
use crate::edit::{Edit, Step};
use crate::room::Want;
use crate::store::Store;
use crate::world::World;
use crate::writer::{Answer, Job, Relocation, Submitted, Writer};

/// The most work while no job is fed, or all that the pool has if that is less: 1 GiB. Longer than
/// that takes no host waits.
const WORK_BYTES_MAX: u64 = 1 << 30;
/// How many times that much a job waits which others overtake, as they need less.
const OVERTAKEN_MAX: u64 = 4;

/// Whether there is room for what a job brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Found,
    /// Not yet, but dead bytes may be brought back.
    Awaited,
    /// None, nor anything to bring back.
    None,
}

/// When reclaim found nothing to bring back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exhausted {
    /// How much was live in the log's segments.
    live_bytes: u64,
    /// How much log was written since the start, and changed metadata waited for a checkpoint: what
    /// was written over since may be worth a look.
    log_bytes: u64,
}

impl Writer {
    /// Whether there is room for a job, and for its record.
    pub(crate) fn room_for(&mut self, world: &World, job: &Job) -> Room {
        let Some(want) = job.want() else { return Room::Found };
        let (blocks, changes) = (job.data_blocks(), job.changes_blocks(world));
        let fits_here = want != Want::Data && self.fits_here(blocks, job.entries_bytes_max());
        if self.leaves_enough(world, want, changes, fits_here) || self.replaces(world, job, changes)
        {
            if want == Want::Data && self.is_paced_out(job.waits_from().is_some()) {
                return Room::Awaited;
            }
            Room::Found
        } else if want != Want::End && self.is_exhausted(world) {
            Room::None
        } else {
            Room::Awaited
        }
    }

    /// Whether there is room for a new block of a host.
    pub(crate) fn room_for_data(&mut self, world: &World) -> Room {
        if self.leaves_enough(world, Want::Data, 0, false) {
            Room::Found
        } else if self.is_exhausted(world) {
            Room::None
        } else {
            Room::Awaited
        }
    }

    /// Whether the open record would fit what is left of the log's segment with so much more.
    fn fits_here(&self, blocks: usize, entries_bytes: usize) -> bool {
        let headers = header_blocks(self.open.entries_bytes + entries_bytes);
        let blocks = self.open.payload_blocks() + blocks + headers as usize;
        blocks <= self.segment_rest_blocks() as usize
    }

    /// Whether a host's data takes the place of as much that dies with it: then it may have what is
    /// kept back from hosts, as what reclaim wins makes up for it.
    fn replaces(&mut self, world: &World, job: &Job, changes: u64) -> bool {
        let Job::Edit(edit) = job else { return false };
        edit.data_blocks() > 0
            && self.leaves_enough(world, Want::Replacement, changes, false)
            && is_replacement(world, edit)
    }

    /// Whether reclaim has found nothing to bring back, and hardly anything has died since.
    fn is_exhausted(&mut self, world: &World) -> bool {
        if self.exhausted_at.is_none() || self.is_checkpoint_due_for_room(world) {
            return false;
        }
        let eighth = self.eighth_segment_bytes();
        self.exhausted_at.is_some_and(|then| {
            self.state.segments.live_log_bytes() >= then.live_bytes
                && self.written.log_bytes < then.log_bytes + eighth
        })
    }

    /// A job waits for space from now on, if it does not yet.
    pub(crate) fn starve(&mut self, token: Token, mut job: Job) {
        let work_bytes = self.work_bytes;
        if let Some(from) = job.waits_from_mut() {
            from.get_or_insert(work_bytes);
        }
        self.starved.push_back((token, job));
    }

    /// A job joins that has waited for space, or has not.
    pub(crate) fn feed(&mut self, waits_from: &mut Option<u64>) {
        if waits_from.take().is_some() {
            self.fed_at_work_bytes = self.work_bytes;
        }
    }

    /// A turn begins, and is counted as work. Refuses what has waited for too much of it: all, if
    /// none was fed, or what others have overtaken for long.
    fn refuse_overdue(&mut self, world: &World, most: u64) -> Vec<Answer> {
        if self.starved.is_empty() {
            return Vec::new();
        }
        self.work_bytes += BLOCK_BYTES;
        let now = self.work_bytes;
        let waited = |job: &Job| job.waits_from().map_or(0, |from| now - from);
        let longest = self.starved.iter().map(|(_, job)| waited(job)).max().unwrap_or(0);
        if longest.min(now - self.fed_at_work_bytes) > most {
            return self.refuse_starved(world);
        }
        if longest <= OVERTAKEN_MAX * most {
            return Vec::new();
        }
        let starved = std::mem::take(&mut self.starved).into_iter();
        let (overdue, starved): (VecDeque<_>, _) =
            starved.partition(|(_, job)| waited(job) > OVERTAKEN_MAX * most);
        self.starved = starved;
        let refuse = |(token, job)| Answer::Reply(token, Err(self.no_space(world, &job)));
        overdue.into_iter().map(refuse).collect()
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
            self.room_for(world, job) == Room::Found
        };
        let (ready, starved): (VecDeque<_>, _) =
            starved.into_iter().partition(|(_, job)| found(job));
        self.starved = starved;
        ready.into_iter().rev().for_each(|job| self.overflow.push_front(job));
    }

    /// Nothing can be brought back: refuses all that waits for space.
    fn refuse_starved(&mut self, world: &World) -> Vec<Answer> {
        self.exhausted_at = Some(Exhausted {
            live_bytes: self.state.segments.live_log_bytes(),
            log_bytes: self.written.log_bytes,
        });
        let starved = std::mem::take(&mut self.starved);
        let refuse = |(token, job)| Answer::Reply(token, Err(self.no_space(world, &job)));
        starved.into_iter().map(refuse).collect()
    }

    /// All memory has changed, and no checkpoint finds room to write it: what waits for memory
    /// waits for space as well. A flush changes nothing, so it goes on.
    fn refuse_for_memory(&mut self, world: &World) -> Vec<Answer> {
        if !world.memory.is_full() {
            return Vec::new();
        }
        let mut answers = Vec::new();
        for (token, job) in std::mem::take(&mut self.overflow) {
            let submitted = match job {
                Job::Flush => self.join(world, token, job),
                _ => Submitted::Done(Err(self.no_space(world, &job))),
            };
            answers.extend(submitted.answer(token));
        }
        answers
    }

    /// A job is refused because there is no space: the error that answers it.
    pub(crate) fn no_space(&mut self, world: &World, job: &Job) -> VolumeError {
        match job {
            Job::Edit(edit) | Job::Stage(edit) => self.let_go(world, edit, VolumeError::NoSpace),
            _ => VolumeError::NoSpace,
        }
    }
}

impl Job {
    /// How many blocks of data it brings, at most.
    pub(crate) fn data_blocks(&self) -> usize {
        match self {
            Self::Edit(edit) => edit.data_blocks(),
            Self::Stage(edit) => edit.staging.frames.len(),
            Self::Relocate(relocation) => relocation.payload_blocks(),
            Self::Entries { .. } | Self::Flush => 0,
        }
    }

    /// The work that had been done when it began to wait for space, if it does.
    fn waits_from(&self) -> Option<u64> {
        match self {
            Self::Edit(edit) | Self::Stage(edit) => edit.waits_from,
            Self::Entries { waits_from, .. } => *waits_from,
            Self::Relocate(_) | Self::Flush => None,
        }
    }

    /// As [`Job::waits_from`], to be set; nothing for what never waits.
    fn waits_from_mut(&mut self) -> Option<&mut Option<u64>> {
        match self {
            Self::Edit(edit) | Self::Stage(edit) => Some(&mut edit.waits_from),
            Self::Entries { waits_from, .. } => Some(waits_from),
            Self::Relocate(_) | Self::Flush => None,
        }
    }

    /// A bound on what its entries take in a record.
    fn entries_bytes_max(&self) -> usize {
        match self {
            Self::Edit(edit) => crate::record::entries_bytes_max(edit),
            Self::Stage(edit) => 64 + edit.staging.frames.len() * 64,
            Self::Relocate(Relocation { entries, .. }) | Self::Entries { entries, .. } => {
                entries.iter().map(Entry::encoded_bytes).sum()
            }
            Self::Flush => 0,
        }
    }
}

/// Whether as much as an edit stores, at most, dies when it is applied: what was there before is
/// named by nothing else.
fn is_replacement(world: &World, edit: &Edit) -> bool {
    edit.steps.iter().all(|step| {
        let Step::Put(put) = step else { return false };
        let Some(map) = world.map_of(put.volume) else { return false };
        let wanted = put.stored_blocks() as u64 * u64::from(format::geometry::UNITS_PER_BLOCK);
        let mut dying = 0;
        let range: BlockRange = put.range();
        (range.start.0..range.end().0).any(|block| {
            dying += dying_units(world, &map, block).unwrap_or(0);
            dying >= wanted
        }) || wanted == 0
    })
}

/// Units of 64 bytes that die if a block becomes something else.
fn dying_units(world: &World, map: &VolumeRow, block: u64) -> Option<u64> {
    let (mut entry, mut offset) = (map.root, block);
    for level in (1..=map.level).rev() {
        let MapEntry::Node(id) = entry else { return None };
        let row = world.nodes.row(&world.medium, id).ok()?;
        if row.reference_count != 1 {
            return None;
        }
        let below = world.span_blocks(level - 1);
        let node = world.nodes.get(&world.medium, id, level).ok()?;
        entry = node.get((offset / below) as usize);
        offset %= below;
    }
    let MapEntry::Chunk(id) = entry else { return None };
    let row = world.chunk(id).ok()?;
    (row.reference_count == 1 && row.original.is_none()).then(|| u64::from(row.share_units()))
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

    /// The most work for what waits while nothing is fed.
    pub(crate) fn work_bytes_max(&self) -> u64 {
        self.world.medium.geometry().pool_bytes().min(WORK_BYTES_MAX)
    }

    /// Begins a turn for what waits for space: see invariants 3 and 4.
    pub(crate) fn refuse_overdue(&self) {
        let most = self.work_bytes_max();
        let answers = self.writer.lock().refuse_overdue(&self.world, most);
        if !answers.is_empty() {
            self.answer(answers);
            self.hand_over();
        }
    }

    /// No checkpoint finds room: refuses what waits for the memory that one would bring back.
    pub(crate) fn refuse_for_memory(&self) {
        let answers = self.writer.lock().refuse_for_memory(&self.world);
        self.answer(answers);
        self.hand_over();
    }

    /// Refuses what waits for space, because there is none to be had.
    pub(crate) fn refuse_starving(&self) {
        let answers = self.writer.lock().refuse_starved(&self.world);
        self.answer(answers);
        self.hand_over();
    }
}
