//! Reads and commits on a front end's channel to the medium.

use std::time::Duration;

use block::{FRAME_BYTES, FrameMut, VolumeReply};
use segments::{Buffers, Completion};
use store::{Commit, ReadOperation, Started};

use super::FrontEnd;
use crate::device::DeviceCounters;
use crate::mailbox;

/// What the channel calls this thread's first commit, the second is the next. A read is called by
/// its task and its place in the operation; there are never so many tasks.
const COMMITS: u64 = (u32::MAX as u64) << 32;

/// A commit that is being written.
pub(super) struct Writing {
    commit: Commit,
    began: Duration,
}

/// Steps of a chain of requests that end at once, in a turn.
const CHAIN_MAX: usize = 4;
/// How long a turn goes on with requests to the disk that have ended: each costs up to some 50 µs
/// of checking and unpacking, and up to hundreds end at once. With shorter turns more of the time
/// goes into what each turn costs (docs/testing.md, "Over iSCSI").
const DISK_TIME: Duration = Duration::from_micros(60);
/// The bytes of so many frames.
fn bytes_of(frames: usize) -> u64 {
    (frames * FRAME_BYTES) as u64
}

impl FrontEnd {
    /// Whether something has ended on the channel that was not gone on with.
    pub(super) fn has_disk_work(&self) -> bool {
        self.channel.has_ended() || !self.completions.is_empty()
    }

    /// Goes on with what ended on the disk ([`FrontEnd::collect`]) and in commits, and with what
    /// ends at once by that; not without end, as a long copy is a chain of such steps, and not for
    /// long, as others wait whose commands need no disk. What is left of that is had in the next
    /// turn ([`FrontEnd::has_work`]).
    pub(super) fn work_off_disk(&mut self) {
        for step in 0..CHAIN_MAX {
            if step > 0 {
                self.collect();
            }
            let nothing = self.completions.is_empty();
            let is_late = self.work_off_completions();
            let mut outcomes = std::mem::take(&mut self.outcomes);
            mailbox::take_own_outcomes(&mut outcomes);
            let done = nothing && outcomes.is_empty();
            for (id, outcome) in outcomes.drain(..) {
                self.request_ended(id, outcome);
            }
            self.outcomes = outcomes;
            if done || is_late {
                return;
            }
        }
    }

    /// Takes what has ended on the disk.
    pub(super) fn collect(&mut self) {
        if let Err(error) = self.channel.complete(&mut self.completed) {
            panic!("can't take transfers from the kernel: {error}");
        }
        self.completions.extend(self.completed.drain(..));
    }

    /// One request to the disk that has ended after the other, and at least one. Returns whether
    /// the turn has taken as long as it may.
    fn work_off_completions(&mut self) -> bool {
        while let Some(completion) = self.completions.pop_front() {
            self.transfer_ended(completion);
            if self.is_late() {
                return true;
            }
        }
        false
    }

    /// Whether this turn has taken as long as what has ended on the disk may take.
    pub(super) fn is_late(&self) -> bool {
        self.shared.clock.now() >= self.now + DISK_TIME
    }

    /// Gives the kernel what was queued.
    pub(super) fn submit(&mut self) {
        self.has_queued = false;
        if let Err(error) = self.channel.submit() {
            panic!("can't give transfers to the kernel: {error}");
        }
    }

    /// Takes what there is to write, if the device may get another commit.
    /// Returns whether there was something.
    pub(super) fn start_commit(&mut self) -> bool {
        if !std::mem::take(&mut self.may_commit) {
            return false;
        }
        let mut some = false;
        while let Some(commit) = self.shared.store.take_commit() {
            self.write_commit(commit);
            some = true;
        }
        some
    }

    fn write_commit(&mut self, mut commit: Commit) {
        let frames = std::mem::take(&mut commit.frames);
        let slot = self.commits.iter().position(Option::is_none).unwrap_or_else(|| {
            self.commits.push(None);
            self.commits.len() - 1
        });
        let name = COMMITS + slot as u64;
        let began = self.shared.clock.now();
        self.device().writes.begin();
        match self.channel.append(name, commit.place, frames, commit.persist) {
            Ok(()) => self.commits[slot] = Some(Writing { commit, began }),
            Err(error) => {
                tracing::error!("a commit can't be written: {error}");
                self.device().writes.end(false, 0, Duration::ZERO);
                self.shared.store.finish_commit(commit, Err(error));
            }
        }
    }

    /// Performs the reads of a task's request.
    pub(super) fn start_reads(&mut self, index: usize, mut operation: Box<ReadOperation>) {
        let mut left = 0;
        let began = self.shared.clock.now();
        for (place, read) in operation.reads.iter_mut().enumerate() {
            let frames = std::mem::take(&mut read.frames);
            let count = frames.len();
            let name = (index as u64) << 32 | place as u64;
            self.device().reads.begin();
            match self.channel.read(name, read.place, frames) {
                Ok(()) => {
                    self.has_queued = true;
                    left += 1;
                }
                Err(error) => {
                    tracing::error!("a read can't be done: {error}");
                    self.device().reads.end(false, 0, Duration::ZERO);
                    read.failed = true;
                    read.frames = (0..count).map(|_| FrameMut::stale()).collect();
                }
            }
        }
        let Some(task) = self.tasks.get_mut(index) else { return };
        task.operation = Some(operation);
        task.reads_left = left;
        task.reads_began = began;
        if left == 0 {
            self.resume_reads(index);
        }
    }

    /// A request to the medium has ended.
    pub(super) fn transfer_ended(&mut self, completion: Completion) {
        let Completion { user_data, buffers, result } = completion;
        match buffers {
            Buffers::Write(frames) => {
                let slot = user_data as u32 as usize;
                let Some(writing) = self.commits.get_mut(slot).and_then(Option::take) else {
                    return;
                };
                let Writing { mut commit, began } = writing;
                let latency = self.shared.clock.now().saturating_sub(began);
                self.device().writes.end(result.is_ok(), bytes_of(frames.len()), latency);
                commit.frames = frames;
                if let Err(error) = &result {
                    tracing::error!("the device failed to write: {error}");
                }
                // First the next one, so that the device works while this one is applied.
                if let Some(next) = self.shared.store.hand_on_commit(commit, result) {
                    self.write_commit(next);
                    self.submit();
                }
                self.shared.store.settle_commits();
                self.may_commit = true;
                mailbox::send_outcomes(&self.shared.mailboxes);
                if self.shared.store.maintenance_due() {
                    self.shared.maintenance.wake();
                }
            }
            Buffers::Read(frames) => {
                let (index, place) = ((user_data >> 32) as usize, user_data as u32 as usize);
                let now = self.shared.clock.now();
                let began = self.tasks.get_mut(index).map_or(now, |task| task.reads_began);
                let latency = now.saturating_sub(began);
                self.device().reads.end(result.is_ok(), bytes_of(frames.len()), latency);
                let Some(task) = self.tasks.get_mut(index) else { return };
                let operation = task.operation.as_mut();
                if let Some(read) = operation.and_then(|o| o.reads.get_mut(place)) {
                    read.frames = frames;
                    if let Err(error) = result {
                        tracing::error!("the device failed to read: {error}");
                        read.failed = true;
                    }
                }
                task.reads_left -= 1;
                if task.reads_left == 0 {
                    self.resume_reads(index);
                }
            }
        }
    }

    fn device(&self) -> &DeviceCounters {
        self.shared.counters.device_of(self.index)
    }

    fn resume_reads(&mut self, index: usize) {
        let token = self.token(index);
        let Some(operation) = self.tasks.get_mut(index).and_then(|task| task.operation.take())
        else {
            return;
        };
        let started: Started = self.shared.store.resume(operation, token);
        self.may_commit |=
            !matches!(started, Started::Read(_) | Started::Done(Ok(VolumeReply::Data(_))));
        self.request_started(index, started);
    }
}
