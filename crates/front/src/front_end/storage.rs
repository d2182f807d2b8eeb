//! Reads and commits on a front end's channel to the medium.

use std::time::Duration;

use block::{FRAME_BYTES, FrameMut, VolumeReply};
use segments::{Buffers, Completion};
use store::{Commit, ReadOperation, Started};

use super::FrontEnd;
use crate::device::DeviceCounters;
use crate::mailbox;

/// The tag of this thread's first commit on the channel; the following ones are consecutive. The
/// tag of a read is its task and its index in the operation; there are never so many tasks.
const COMMITS: u64 = (u32::MAX as u64) << 32;

/// A commit in progress.
pub(super) struct Writing {
    commit: Commit,
    began: Duration,
}

/// The most steps of a chain of requests that complete at once, per turn.
const CHAIN_MAX: usize = 4;
/// How long a turn processes disk completions: each costs up to some 50 µs of verification and
/// decompression, and up to hundreds complete at once. Shorter turns waste more time on the fixed
/// cost of a turn (docs/testing.md, "Over iSCSI").
const DISK_TIME: Duration = Duration::from_micros(60);
/// Returns the bytes of this many frames.
fn bytes_of(frames: usize) -> u64 {
    (frames * FRAME_BYTES) as u64
}

impl FrontEnd {
    /// Returns whether there are unprocessed completions on the channel.
    pub(super) fn has_disk_work(&self) -> bool {
        self.channel.has_ended() || !self.completions.is_empty()
    }

    /// Processes disk completions ([`FrontEnd::collect`]), commits, and requests that complete at
    /// once because of them. The number of steps is bounded, because a long copy is a chain of such
    /// steps, and so is the time, because commands that need no disk wait. The rest is processed in
    /// the next turn ([`FrontEnd::has_work`]).
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

    /// Collects disk completions.
    pub(super) fn collect(&mut self) {
        if let Err(error) = self.channel.complete(&mut self.completed) {
            panic!("can't collect completions from the kernel: {error}");
        }
        self.completions.extend(self.completed.drain(..));
    }

    /// Processes disk completions, at least one. Returns whether the time is used up.
    fn work_off_completions(&mut self) -> bool {
        while let Some(completion) = self.completions.pop_front() {
            self.transfer_ended(completion);
            if self.is_late() {
                return true;
            }
        }
        false
    }

    /// Returns whether the turn's time for disk completions is used up.
    pub(super) fn is_late(&self) -> bool {
        self.shared.clock.now() >= self.now + DISK_TIME
    }

    /// Submits queued requests to the kernel.
    pub(super) fn submit(&mut self) {
        self.has_queued = false;
        if let Err(error) = self.channel.submit() {
            panic!("can't submit requests to the kernel: {error}");
        }
    }

    /// Takes a commit and writes it, if there is one and the device may get another. Returns
    /// whether there was one.
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
                tracing::error!("a commit can't be started: {error}");
                self.device().writes.end(false, 0, Duration::ZERO);
                self.shared.store.finish_commit(commit, Err(error));
            }
        }
    }

    /// Starts the reads of a task's request.
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
                    tracing::error!("a read can't be started: {error}");
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

    /// Handles the completion of a request to the medium.
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
                // Write the next commit first, so that the device works while this one is applied.
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
