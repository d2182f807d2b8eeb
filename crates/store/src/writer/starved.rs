//! Jobs that wait for space.
//!
//! A pool in which hosts write over what they have written is full of dead bytes that reclaim
//! brings back. So a job that finds no free segment waits as long as there is something to bring
//! back; it is refused when there is nothing ([`crate::Store::maintain`] decides that). How much
//! must stay free for what, says `room`. Reads never wait.
//!
//! No job waits for ever. What is done to win space is counted as *work*
//! ([`work_bytes`](crate::space::supply::Supply::work_bytes)): the bytes that reclaim moves and
//! that checkpoints write, and a block for each turn, so that a turn which writes nothing counts as
//! well. While dropped nodes are still to be freed only the turns count: space is about to come.
//! Let `W` be [`crate::Store::work_bytes_max`].
//!
//! Invariants:
//! 1. A job begins to wait once: it keeps the work of that moment until it joins the open record,
//!    however often it finds room and loses it again, or is read again in between. So it does what
//!    it needs space for (`need`), unless it finds room as a replacement and is none any more.
//! 2. Whether a job gets in is decided where it joins, and only a job that has joined counts as
//!    fed. That there seems to be room for it counts for nothing.
//! 3. After `W` of work in which no job was fed all are refused. So, of those that wait, one is fed
//!    in each `W`, or none is left. New data that finds no room waits for a quarter of that, and
//!    only what new data joined feeds it.
//! 4. A job that others overtake is refused after [`OVERTAKEN_MAX`] times as much.
//! 5. However many wait, those are asked that one hold of the writer's lock has time for
//!    ([`ASKED_MAX`]), the others in turn.
//!
//! Each turn of [`crate::Store::maintain`] begins with 3 and 4, so whatever a turn does, and
//! however it ends, it can't keep a job for longer.

use block::{BLOCK_BYTES, VolumeError};
use format::Entry;

use crate::Token;
use crate::log::relocation::Relocation;
use crate::space::need::{Need, Wait};
use crate::space::supply::Exhausted;
use crate::world::World;
use crate::writer::Writer;
use crate::writer::job::{Answer, Job, Submitted};
use crate::writer::queues::Jobs;
use crate::writer::room::Want;

/// How many times that much a job waits which others overtake, as they need less.
const OVERTAKEN_MAX: u64 = 4;
/// How many jobs are asked at once whether there is room for them: about a millisecond.
const ASKED_MAX: usize = 4096;

/// Whether there is room for what a job brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Found,
    /// Not yet, but dead bytes may be brought back.
    Awaited(Need),
    /// None, nor anything to bring back.
    None,
}

impl Writer {
    /// Whether there is room for a job, and for its record. `asked`: it waits, and is asked for
    /// whether it may try; then nothing is looked at that was when it began to.
    pub(crate) fn room_for(&mut self, world: &World, job: &Job, asked: bool) -> Room {
        let Some(want) = job.want() else { return Room::Found };
        let (blocks, changes) = (job.data_blocks(), job.changes_blocks(world));
        let fits_here = want != Want::Data && self.fits_here(blocks, job.entries_bytes_max());
        let is_enough = self.leaves_enough(world, want, changes, fits_here);
        let is_paced_out = want == Want::Data && self.is_paced_out(job.wait().is_some());
        if is_enough && !is_paced_out {
            return Room::Found;
        }
        let need = match job.wait() {
            Some(wait) if asked || wait.need == Need::NewData => wait.need,
            _ => self.look_at_need(world, job),
        };
        // What takes the place of as much may have what is kept back from hosts, as what reclaim
        // wins makes up for it.
        let replaces = want == Want::Data && need == Need::Upkeep;
        if is_enough || replaces && self.leaves_enough(world, Want::Replacement, changes, false) {
            if is_paced_out { Room::Awaited(need) } else { Room::Found }
        } else if want != Want::End && self.is_exhausted(world, need) {
            Room::None
        } else {
            Room::Awaited(need)
        }
    }

    /// Whether there is room for a new block of a host.
    pub(crate) fn room_for_data(&mut self, world: &World) -> Room {
        if self.leaves_enough(world, Want::Data, 0, false) {
            Room::Found
        } else if self.is_exhausted(world, Need::NewData) {
            Room::None
        } else {
            Room::Awaited(Need::NewData)
        }
    }

    /// Whether the open record would fit what is left of the log's segment with so much more.
    fn fits_here(&self, blocks: usize, entries_bytes: usize) -> bool {
        let entries_bytes = self.open.entries_bytes + entries_bytes;
        let payload_blocks = self.open.payload_blocks() + blocks;
        self.next_record_rows(entries_bytes, payload_blocks) <= self.log.segment_rest_rows()
    }

    /// Whether reclaim has found nothing to bring back for this, and hardly anything has died
    /// since: for new data less than what makes a segment worth emptying.
    fn is_exhausted(&mut self, world: &World, need: Need) -> bool {
        let Some(then) = self.supply.exhausted(need) else { return false };
        if self.is_checkpoint_due_for_room(world) {
            return false;
        }
        let segment_bytes = self.log.segment_bytes();
        let died_bytes = then.live_bytes.saturating_sub(self.state.segments.live_log_bytes());
        let is_little = match need {
            Need::NewData => died_bytes < segment_bytes / need.least_dead_divisor(),
            Need::Upkeep => died_bytes == 0,
        };
        is_little && self.log.written().log_bytes < then.log_bytes + self.eighth_segment_bytes()
    }

    /// A job waits for space from now on, if it does not yet.
    pub(crate) fn starve(&mut self, token: Token, mut job: Job, need: Need) {
        let from_work_bytes = self.supply.work_bytes();
        if let Some(wait) = job.wait_mut() {
            wait.get_or_insert(Wait { from_work_bytes, need }).need = need;
        }
        self.queues.push_starved(token, job);
    }

    /// A job joins that has waited for space, or has not. Where there was room for new data, there
    /// was for all else.
    pub(crate) fn feed(&mut self, wait: &mut Option<Wait>) {
        if let Some(wait) = wait.take() {
            self.supply.fed(wait.need);
        }
    }

    /// A turn begins, and is counted as work. Refuses what has waited for too much of it: all, if
    /// none was fed, or what others have overtaken for long.
    pub(crate) fn refuse_overdue(&mut self, world: &World, work_bytes_max: u64) -> Vec<Answer> {
        if !self.queues.has_starved() {
            return Vec::new();
        }
        self.supply.count_work(BLOCK_BYTES);
        let mut answers = Vec::new();
        for need in Need::ALL {
            let most = self.patience(world, need, work_bytes_max);
            answers.extend(self.refuse_overdue_of(world, need, most));
        }
        answers
    }

    /// How much work what waits for this waits for. New data for which there is room waits for its
    /// pace only, and that comes with the work.
    fn patience(&mut self, world: &World, need: Need, work_bytes_max: u64) -> u64 {
        let is_paced = need == Need::NewData && self.leaves_enough(world, Want::Data, 0, false);
        if is_paced { work_bytes_max } else { work_bytes_max / need.work_divisor() }
    }

    fn refuse_overdue_of(&mut self, world: &World, need: Need, most: u64) -> Vec<Answer> {
        let now = self.supply.work_bytes();
        let waited = |job: &Job| {
            let wait = job.wait().filter(|wait| wait.need == need);
            wait.map_or(0, |wait| now - wait.from_work_bytes)
        };
        let longest = self.queues.starved().map(waited).max().unwrap_or(0);
        if longest.min(self.supply.work_bytes_since_fed(need)) > most {
            return self.refuse_starved(world, need);
        }
        if longest <= OVERTAKEN_MAX * most {
            return Vec::new();
        }
        self.refuse_those(world, |job| waited(job) > OVERTAKEN_MAX * most)
    }

    fn refuse_those(&mut self, world: &World, refused: impl Fn(&Job) -> bool) -> Vec<Answer> {
        let starved = self.queues.take_starved().into_iter();
        let (refused, starved): (Jobs, Jobs) = starved.partition(|(_, job)| refused(job));
        self.queues.put_back_starved(starved);
        let refuse = |(token, job)| Answer::Reply(token, Err(self.no_space(world, &job)));
        refused.into_iter().map(refuse).collect()
    }

    /// Lets jobs that wait for space join before all others, if there is some for them. Of many the
    /// first are asked, and go to the end if there is none.
    pub(crate) fn revive_starved(&mut self, world: &World) {
        let mut starved = self.queues.take_starved();
        let asked: Vec<_> = starved.drain(..starved.len().min(ASKED_MAX)).collect();
        let mut budget_bytes = self.pace.budget_bytes();
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
            self.room_for(world, job, true) == Room::Found
        };
        let (ready, others): (Vec<_>, Vec<_>) = asked.into_iter().partition(|(_, job)| found(job));
        starved.extend(others);
        self.queues.put_back_starved(starved);
        self.queues.let_go_first(ready);
    }

    /// Nothing can be brought back for this, nor for what less is done for: refuses all of it.
    pub(crate) fn refuse_starved(&mut self, world: &World, need: Need) -> Vec<Answer> {
        let exhausted = Exhausted {
            live_bytes: self.state.segments.live_log_bytes(),
            log_bytes: self.log.written().log_bytes,
        };
        self.supply.note_exhausted(need, exhausted);
        self.refuse_those(world, |job| job.wait().is_none_or(|wait| wait.need <= need))
    }

    /// For what most is done of all that waits for space.
    pub(crate) fn greatest_need(&self) -> Option<Need> {
        self.queues.starved().filter_map(Job::wait).map(|wait| wait.need).max()
    }

    /// All memory has changed, and no checkpoint finds room to write it: what waits for memory
    /// waits for space as well. A flush changes nothing, so it goes on.
    pub(crate) fn refuse_for_memory(&mut self, world: &World) -> Vec<Answer> {
        if !world.memory.is_full() {
            return Vec::new();
        }
        let mut answers = Vec::new();
        for (token, job) in self.queues.take_put_off() {
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

impl Writer {
    /// Whether a host's write waits for the pace: behind those that do, unless it was one of them.
    pub(crate) fn is_paced_out(&self, has_waited: bool) -> bool {
        let is_behind = !has_waited && self.queues.has_starved();
        self.pace.budget_bytes().is_some_and(|bytes| bytes <= 0 || is_behind)
    }

    /// So much was done to win space.
    pub(crate) fn count_work(&mut self, bytes: u64) {
        // While dropped nodes are being freed, space is still to come: see `starved`.
        if self.state.pending.is_empty() {
            self.supply.count_work(bytes);
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

    /// Its wait for space, if it does wait.
    fn wait(&self) -> Option<Wait> {
        match self {
            Self::Edit(edit) | Self::Stage(edit) => edit.wait,
            Self::Entries { wait, .. } => *wait,
            Self::Relocate(_) | Self::Flush => None,
        }
    }

    /// As [`Job::wait`], to be set; nothing for what never waits.
    fn wait_mut(&mut self) -> Option<&mut Option<Wait>> {
        match self {
            Self::Edit(edit) | Self::Stage(edit) => Some(&mut edit.wait),
            Self::Entries { wait, .. } => Some(wait),
            Self::Relocate(_) | Self::Flush => None,
        }
    }

    /// A bound on what its entries take in a record.
    fn entries_bytes_max(&self) -> usize {
        match self {
            Self::Edit(edit) => crate::edits::entries::entries_bytes_max(edit),
            Self::Stage(edit) => 64 + edit.staging.frames.len() * 64,
            Self::Relocate(Relocation { entries, .. }) | Self::Entries { entries, .. } => {
                entries.iter().map(Entry::encoded_bytes).sum()
            }
            Self::Flush => 0,
        }
    }
}
