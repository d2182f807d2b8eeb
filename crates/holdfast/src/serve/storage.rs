//! Reads and commits on the thread's ring.

use std::sync::atomic::Ordering;

use block::FrameMut;
use store::{Commit, ReadOperation, Started};
use sys::{Buffers, Completion};

use super::front::FrontEnd;
use super::sessions::DeviceCounters;

/// What the ring calls this thread's first commit, the second is the next. A read is called by its
/// task and its place in the operation; there are never so many tasks.
const COMMITS: u64 = (u32::MAX as u64) << 32;

impl FrontEnd {
    /// Takes what there is to write, if the device may get another commit.
    pub(super) fn start_commit(&mut self) {
        while let Some(commit) = self.shared.store.take_commit() {
            self.write_commit(commit);
        }
    }

    fn write_commit(&mut self, mut commit: Commit) {
        let frames = std::mem::take(&mut commit.frames);
        let slot = self.commits.iter().position(Option::is_none).unwrap_or_else(|| {
            self.commits.push(None);
            self.commits.len() - 1
        });
        let name = COMMITS + slot as u64;
        match self.ring.write(name, commit.offset_bytes, frames, commit.flush) {
            Ok(()) => self.commits[slot] = Some(commit),
            Err(error) => {
                tracing::error!("a commit can't be written: {error}");
                self.device().failed_writes.fetch_add(1, Ordering::Relaxed);
                self.shared.store.finish_commit(commit, Err(error));
            }
        }
    }

    /// Performs the reads of a task's request.
    pub(super) fn start_reads(&mut self, index: usize, mut operation: Box<ReadOperation>) {
        let mut left = 0;
        for (place, read) in operation.reads.iter_mut().enumerate() {
            let frames = std::mem::take(&mut read.frames);
            let count = frames.len();
            let name = (index as u64) << 32 | place as u64;
            match self.ring.read(name, read.offset_bytes, frames) {
                Ok(()) => left += 1,
                Err(error) => {
                    tracing::error!("a read can't be done: {error}");
                    self.device().failed_reads.fetch_add(1, Ordering::Relaxed);
                    read.failed = true;
                    read.frames = (0..count).map(|_| FrameMut::stale()).collect();
                }
            }
        }
        let Some(task) = self.tasks.get_mut(index) else { return };
        task.operation = Some(operation);
        task.reads_left = left;
        if left == 0 {
            self.resume_reads(index);
        }
    }

    /// A transfer of the ring has ended.
    pub(super) fn transfer_ended(&mut self, completion: Completion) {
        let Completion { user_data, buffers, result } = completion;
        match buffers {
            Buffers::Write(frames) => {
                let slot = user_data as u32 as usize;
                let Some(mut commit) = self.commits.get_mut(slot).and_then(Option::take) else {
                    return;
                };
                commit.frames = frames;
                if let Err(error) = &result {
                    tracing::error!("the device failed to write: {error}");
                    self.device().failed_writes.fetch_add(1, Ordering::Relaxed);
                }
                // First the next one, so that the device works while this one is applied.
                if let Some(next) = self.shared.store.hand_on_commit(commit, result) {
                    self.write_commit(next);
                    self.submit();
                }
                self.shared.store.settle_commits();
                if self.shared.store.maintenance_due() {
                    self.shared.checkpoint_bell.ring();
                }
            }
            Buffers::Read(frames) => {
                let (index, place) = ((user_data >> 32) as usize, user_data as u32 as usize);
                if result.is_err() {
                    self.device().failed_reads.fetch_add(1, Ordering::Relaxed);
                }
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
        &self.shared.counters.device
    }

    fn resume_reads(&mut self, index: usize) {
        let token = self.token(index);
        let Some(operation) = self.tasks.get_mut(index).and_then(|task| task.operation.take())
        else {
            return;
        };
        let started: Started = self.shared.store.resume(operation, token);
        self.request_started(index, started);
    }
}
