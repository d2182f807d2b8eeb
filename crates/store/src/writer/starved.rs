//! Jobs that wait for space.
//!
//! A pool in which hosts overwrite their data is full of dead bytes that reclaim recovers. So a job
//! that finds no free segment waits as long as there is something to reclaim; it is refused when
//! there is nothing ([`crate::Store::maintain`] decides that). `room` says how much must stay free
//! for what. Reads never wait.
//!
//! No job waits forever. What is done to free space is counted as *work*
//! ([`work_bytes`](crate::space::supply::Supply::work_bytes)): the bytes that reclaim moves and
//! checkpoints write, and a block for each turn, so that a turn which writes nothing counts as
//! well. While dropped nodes are still to be freed only the turns count, because space is about to
//! come. Let `W` be [`crate::Store::work_bytes_max`].
//!
//! Invariants:
//! 1. A job begins to wait once: until it joins the open record it keeps the amount of work from
//!    that moment, however often it finds room and loses it again, or is read again in between. The
//!    same holds for what it needs space for (`need`), unless it finds room as a replacement and is
//!    no longer one.
//! 2. Whether a job is admitted is decided where it joins, and only a job that has joined counts as
//!    admitted; that there seemed to be room for it does not count.
//! 3. After `W` of work in which no job was admitted, all are refused. So of the jobs that wait,
//!    one is admitted in each `W`, or none is left. New data that finds no room waits for a quarter
//!    of that, and for it only new data counts as admitted.
//! 4. A job that others overtake is refused after [`OVERTAKEN_MAX`] times as much.
//! 5. However many jobs wait, only as many are checked as one hold of the writer's lock has time
//!    for ([`ASKED_MAX`]), the others in turn.
//!
//! Each turn of [`crate::Store::maintain`] begins with 3 and 4, so no turn can keep a job waiting
//! longer, regardless of its work and its end.

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

/// How many times `W` a job waits that others overtake because they need less.
const OVERTAKEN_MAX: u64 = 4;
/// The maximum number of jobs that are checked for room at once: about a millisecond.
const ASKED_MAX: usize = 4096;

/// Whether there is room for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Found,
    /// Not yet, but dead bytes may be reclaimed.
    Awaited(Need),
    /// None, and nothing to reclaim.
    None,
}

impl Writer {
    /// Returns whether there is room for a job, and for its record. With `asked` the job already
    /// waits, and this checks whether it may try: blocks that were examined when it began to wait
    /// are not examined again.
    pub(crate) fn room_for(&mut self, world: &World, job: &Job, asked: bool) -> Room {
        let Some(want) = job.want(world) else { return Room::Found };
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
        // Data that replaces as much may use the reserve that is kept from hosts, because reclaim
        // recovers as much.
        let replaces = want == Want::Data && need == Need::Upkeep;
        if is_enough || replaces && self.leaves_enough(world, Want::Replacement, changes, false) {
            if is_paced_out { Room::Awaited(need) } else { Room::Found }
        } else if want != Want::End && self.is_exhausted(world, need) {
            Room::None
        } else {
            Room::Awaited(need)
        }
    }

    /// Returns whether there is room for a new block of a host.
    pub(crate) fn room_for_data(&mut self, world: &World) -> Room {
        if self.leaves_enough(world, Want::Data, 0, false) {
            Room::Found
        } else if self.is_exhausted(world, Need::NewData) {
            Room::None
        } else {
            Room::Awaited(Need::NewData)
        }
    }

    /// Returns whether the open record with so much more would fit the rest of the log's segment.
    fn fits_here(&self, blocks: usize, entries_bytes: usize) -> bool {
        let entries_bytes = self.open.entries_bytes + entries_bytes;
        let payload_blocks = self.open.payload_blocks() + blocks;
        self.next_record_rows(entries_bytes, payload_blocks) <= self.log.segment_rest_rows()
    }

    /// Returns whether reclaim has found nothing for this need, and hardly anything has died since:
    /// for new data, less than what makes a segment worth emptying.
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

    /// Lets a job wait for space, if it does not yet.
    pub(crate) fn starve(&mut self, token: Token, mut job: Job, need: Need) {
        let from_work_bytes = self.supply.work_bytes();
        if let Some(wait) = job.wait_mut() {
            wait.get_or_insert(Wait { from_work_bytes, need }).need = need;
        }
        self.queues.push_starved(token, job);
    }

    /// Records that a job joins, whether or not it has waited for space. If there was room for new
    /// data, there was room for everything else.
    pub(crate) fn feed(&mut self, wait: &mut Option<Wait>) {
        if let Some(wait) = wait.take() {
            self.supply.fed(wait.need);
        }
    }

    /// Begins a turn, which counts as work. Refuses jobs that have waited for too much work: all,
    /// if none was admitted, or those that others have overtaken for long.
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

    /// Returns for how much work jobs with this need wait. New data for which there is room waits
    /// only for its pace, which increases with the work.
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

    /// Lets jobs that wait for space join before all others, if there is space for them. If there
    /// are many, the first are checked, and go to the end if there is none.
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

    /// Refuses all jobs with this need, or with one for which less is reclaimed, because nothing
    /// can be reclaimed for it.
    pub(crate) fn refuse_starved(&mut self, world: &World, need: Need) -> Vec<Answer> {
        let exhausted = Exhausted {
            live_bytes: self.state.segments.live_log_bytes(),
            log_bytes: self.log.written().log_bytes,
        };
        self.supply.note_exhausted(need, exhausted);
        self.refuse_those(world, |job| job.wait().is_none_or(|wait| wait.need <= need))
    }

    /// Returns the need for which most is reclaimed among all jobs that wait for space.
    pub(crate) fn greatest_need(&self) -> Option<Need> {
        self.queues.starved().filter_map(Job::wait).map(|wait| wait.need).max()
    }

    /// Refuses jobs that wait for memory, which here also wait for space: all metadata in memory
    /// has changed, and no checkpoint finds room to write it. A flush changes nothing, so it
    /// continues.
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

    /// Refuses a job because there is no space: returns the error for it.
    pub(crate) fn no_space(&mut self, world: &World, job: &Job) -> VolumeError {
        match job {
            Job::Edit(edit) | Job::Stage(edit) => self.let_go(world, edit, VolumeError::NoSpace),
            _ => VolumeError::NoSpace,
        }
    }
}

impl Writer {
    /// Returns whether a host's write waits for the pace: after those that already wait, unless it
    /// was one of them.
    pub(crate) fn is_paced_out(&self, has_waited: bool) -> bool {
        let is_behind = !has_waited && self.queues.has_starved();
        self.pace.budget_bytes().is_some_and(|bytes| bytes <= 0 || is_behind)
    }

    /// Counts work done to free space.
    pub(crate) fn count_work(&mut self, bytes: u64) {
        // While dropped nodes are being freed, space is still to come: see `starved`.
        if self.state.pending.is_empty() {
            self.supply.count_work(bytes);
        }
    }
}

impl Job {
    /// Returns the maximum number of data blocks it writes.
    pub(crate) fn data_blocks(&self) -> usize {
        match self {
            Self::Edit(edit) => edit.data_blocks(),
            Self::Stage(edit) => edit.staging.frames.len(),
            Self::Relocate(relocation) => relocation.payload_blocks(),
            Self::Entries { .. } | Self::Flush => 0,
        }
    }

    /// Returns its wait for space, if it waits.
    fn wait(&self) -> Option<Wait> {
        match self {
            Self::Edit(edit) | Self::Stage(edit) => edit.wait,
            Self::Entries { wait, .. } => *wait,
            Self::Relocate(_) | Self::Flush => None,
        }
    }

    /// The same as [`Job::wait`], mutable; `None` for jobs that never wait.
    fn wait_mut(&mut self) -> Option<&mut Option<Wait>> {
        match self {
            Self::Edit(edit) | Self::Stage(edit) => Some(&mut edit.wait),
            Self::Entries { wait, .. } => Some(wait),
            Self::Relocate(_) | Self::Flush => None,
        }
    }

    /// Returns an upper bound of the size of its entries in a record.
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
