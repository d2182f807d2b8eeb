//! The commands that a thread has under way.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use block::{CopySegment, DataOut, VolumeId, VolumeRequest};
use store::ReadOperation;

use super::command_set::{AnswerAfter, CommandSet, Commands, Nexus, Pending};
use super::counters::{Class, Copied, PathCounters};
use super::mailbox::Watch;
use super::throttle::{Bucket, Held};
use super::transport::{SessionId, TaskHandle};
use super::turn::{Parked, Reading};

/// From here on a write of zeros is one that WRITE SAME is for, in bytes: hosts zero disks in
/// pieces like that, and file systems write blocks of zeros that are shorter.
const ZEROS_MIN_BYTES: usize = 64 << 10;

/// A command under way.
pub(super) struct Task {
    /// Where its connection is in the thread's table; another one may be there by now.
    pub connection: usize,
    /// To answer it with.
    pub handle: TaskHandle,
    /// The session's nexus.
    pub nexus: Arc<Nexus>,
    /// The session.
    pub session: SessionId,
    /// The volume that it was sent to.
    pub volume: Option<VolumeId>,
    /// Whether it has memory for what it reads.
    pub has_memory: bool,
    /// Since when it waits for that.
    pub starved_since: Option<Duration>,
    /// What SCSI waits with, while the store has the request.
    pub pending: Option<Pending>,
    /// The first request of a long read that has to wait ([`super::gather`]).
    pub waiting: Option<VolumeRequest>,
    /// The next request, while it waits for a later turn of the thread ([`super::turn`]).
    pub parked: Option<Parked>,
    /// What it reads, while it does ([`super::turn`]).
    pub reading: Option<Reading>,
    /// The command, while it waits for the limits of its volume.
    pub held: Option<Box<Held>>,
    /// Whether it is the long read that its connection has under way.
    pub gathers: bool,
    /// What the store waits with, while the ring has the reads.
    pub operation: Option<Box<ReadOperation>>,
    /// How many of the reads have not ended.
    pub reads_left: usize,
    /// When they began.
    pub reads_began: Duration,
    /// Whether it was aborted: nobody wants its answer.
    pub aborted: bool,
    /// Who waits for its end.
    pub watches: Vec<Arc<Watch>>,
    /// What its COMPARE AND WRITE is called in the store.
    pub sent_as: Option<u64>,
    /// What it is counted as.
    pub class: Class,
    /// Where it is counted.
    pub path: Arc<PathCounters>,
    /// Bytes of the volume that it is about.
    pub bytes: u64,
    /// Zeros that it writes as if they were data: see [`PathCounters::count_zeros`].
    pub zero_bytes: u64,
    /// What of that it copies, by the volumes between which it does.
    pub copies: Vec<Copied>,
    /// When it came.
    pub started: Duration,
}

impl Task {
    /// Whether it is a copy of which nobody wants the rest.
    fn is_called_off(&self) -> bool {
        let pending = match &self.parked {
            Some(Parked::Request(_, pending)) => Some(pending),
            _ => self.pending.as_ref(),
        };
        pending.is_some_and(|pending| Commands::is_called_off(&self.nexus, pending))
    }

    /// Notes that it writes zeros which one WRITE SAME would have written, should it end well.
    pub(super) fn note_zeros(&mut self, data: &DataOut) {
        if data.len() >= ZEROS_MIN_BYTES && is_zero(data) {
            self.zero_bytes += data.len() as u64;
        }
    }

    /// Notes what it copies, should it end well.
    pub(super) fn note_copies(&mut self, segments: &[CopySegment]) {
        for segment in segments {
            let CopySegment { source, destination, .. } = *segment;
            let bytes = segment.count.bytes().unwrap_or(0);
            let is_same =
                |copy: &&mut Copied| (copy.source, copy.destination) == (source, destination);
            match self.copies.iter_mut().find(is_same) {
                Some(copy) => copy.bytes += bytes,
                None => self.copies.push(Copied { source, destination, bytes }),
            }
        }
    }
}

/// Whether all bytes are 0. What begins with another one costs a look.
fn is_zero(data: &DataOut) -> bool {
    // Pieces that the processor takes at once.
    let mut pieces = data.slices().flat_map(|slice| slice.chunks(64));
    pieces.all(|piece| piece.iter().fold(0, |all, byte| all | byte) == 0)
}

#[derive(Default)]
struct Entry {
    /// Goes up with each use, so that an old token never finds a new task.
    generation: u32,
    task: Option<Task>,
}

/// A table of tasks, whose places are used again.
#[derive(Default)]
pub(super) struct Tasks {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Tasks that were aborted while they were held, by their names.
    aborted_held: Vec<u64>,
}

impl Tasks {
    /// Adds a task and returns its place.
    pub(super) fn insert(&mut self, task: Task) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            (self.entries.len() - 1) as u32
        });
        let entry = &mut self.entries[index as usize];
        entry.generation = entry.generation.wrapping_add(1);
        entry.task = Some(task);
        index as usize
    }

    /// The name of the task at a place, which no other task will have for long.
    pub(super) fn name(&self, index: usize) -> u64 {
        (u64::from(self.entries[index].generation) << 32) | index as u64
    }

    /// The place of the task with this name, if it is still under way.
    pub(super) fn find(&self, name: u64) -> Option<usize> {
        let index = (name & 0xffff_ffff) as usize;
        let entry = self.entries.get(index)?;
        (u64::from(entry.generation) == name >> 32 && entry.task.is_some()).then_some(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Task> {
        self.entries.get_mut(index)?.task.as_mut()
    }

    pub(super) fn remove(&mut self, index: usize) -> Option<Task> {
        let task = self.entries.get_mut(index)?.task.take()?;
        self.free.push(index as u32);
        Some(task)
    }

    /// How many are under way.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Has the end of tasks watched. Of all of them those are meant that have an effect, or may
    /// have one yet. Long reads that wait are none of these, and may wait for long; SCSI ends those
    /// of a preempted nexus. Nor are commands that have not begun.
    pub(super) fn watch(&mut self, what: AnswerAfter, watch: &Arc<Watch>) {
        let tasks = self.entries.iter_mut().filter_map(|entry| entry.task.as_mut());
        let is_meant = |task: &&mut Task| match what {
            AnswerAfter::Nothing => false,
            AnswerAfter::All => task.waiting.is_none() && task.held.is_none(),
            AnswerAfter::CalledOff => task.is_called_off(),
        };
        for task in tasks.filter(is_meant) {
            task.watches.push(watch.clone());
        }
    }

    /// The volumes of all tasks under way that have one.
    pub(super) fn volumes(&self) -> HashMap<TaskHandle, VolumeId> {
        let tasks = self.entries.iter().filter_map(|entry| entry.task.as_ref());
        tasks.filter_map(|task| Some((task.handle, task.volume?))).collect()
    }

    /// Has the end of tasks watched that were aborted before, and have not ended: also of those
    /// whose connection is gone.
    pub(super) fn watch_aborted(&mut self, is_meant: impl Fn(&Task) -> bool, watch: &Arc<Watch>) {
        let tasks = self.entries.iter_mut().filter_map(|entry| entry.task.as_mut());
        for task in tasks.filter(|task| task.aborted && is_meant(task)) {
            task.watches.push(watch.clone());
        }
    }

    /// Marks tasks as aborted, to be watched. Costs one look at all of them, however many there
    /// are.
    pub(super) fn abort(&mut self, handles: &HashSet<TaskHandle>, watch: &Arc<Watch>) {
        if handles.is_empty() {
            return;
        }
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let Some(task) = entry.task.as_mut().filter(|task| handles.contains(&task.handle))
            else {
                continue;
            };
            task.aborted = true;
            task.watches.push(watch.clone());
            if task.held.is_some() {
                self.aborted_held.push((u64::from(entry.generation) << 32) | index as u64);
            }
        }
    }

    /// The tasks that were aborted since this was asked last while they were held.
    pub(super) fn take_aborted_held(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.aborted_held)
    }

    /// What the tasks that are held wait for, each of it as often as tasks do.
    pub(super) fn held_buckets(&self) -> Vec<Arc<Bucket>> {
        let tasks = self.entries.iter().filter_map(|entry| entry.task.as_ref());
        tasks.filter_map(|task| Some(task.held.as_ref()?.bucket.clone())).collect()
    }
}
