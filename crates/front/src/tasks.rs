//! The commands that a thread has in progress.

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

/// The shortest write of zeros that WRITE SAME is meant for, in bytes: hosts zero disks in such
/// pieces, and file systems write shorter blocks of zeros.
const ZEROS_MIN_BYTES: usize = 64 << 10;

/// A command in progress.
pub(super) struct Task {
    /// The slot of its connection in the thread's table; another connection may use it by now.
    pub connection: usize,
    /// The handle for the response.
    pub handle: TaskHandle,
    /// The session's nexus.
    pub nexus: Arc<Nexus>,
    /// The session.
    pub session: SessionId,
    /// The volume it was sent to.
    pub volume: Option<VolumeId>,
    /// Whether it has reserved memory for the data it reads.
    pub has_memory: bool,
    /// The time since when it waits for that memory.
    pub starved_since: Option<Duration>,
    /// The command's SCSI state while the store executes its request.
    pub pending: Option<Pending>,
    /// The first request of a long read that must wait ([`super::gather`]).
    pub waiting: Option<VolumeRequest>,
    /// The next request, while it is parked for a later turn of the thread ([`super::turn`]).
    pub parked: Option<Parked>,
    /// Counts its read, while it is in progress ([`super::turn`]).
    pub reading: Option<Reading>,
    /// The command, while it waits for the limits of its volume.
    pub held: Option<Box<Held>>,
    /// Whether it is the long read that its connection has in progress.
    pub gathers: bool,
    /// The store's state of the request while the ring performs its reads.
    pub operation: Option<Box<ReadOperation>>,
    /// The number of reads that have not completed.
    pub reads_left: usize,
    /// When they were started.
    pub reads_began: Duration,
    /// Whether it was aborted, so that no response is sent.
    pub aborted: bool,
    /// The watches that its end drops.
    pub watches: Vec<Arc<Watch>>,
    /// The store's name of its COMPARE AND WRITE.
    pub sent_as: Option<u64>,
    /// The class under which it is counted.
    pub class: Class,
    /// The counters that count it.
    pub path: Arc<PathCounters>,
    /// The number of the volume's bytes that it concerns.
    pub bytes: u64,
    /// Zeros that it writes as data: see [`PathCounters::count_zeros`].
    pub zero_bytes: u64,
    /// The bytes that it copies, by source and destination volume.
    pub copies: Vec<Copied>,
    /// When it arrived.
    pub started: Duration,
}

impl Task {
    /// Returns whether it is a cancelled copy.
    fn is_called_off(&self) -> bool {
        let pending = match &self.parked {
            Some(Parked::Request(_, pending)) => Some(pending),
            _ => self.pending.as_ref(),
        };
        pending.is_some_and(|pending| Commands::is_called_off(&self.nexus, pending))
    }

    /// Notes zeros that one WRITE SAME could have written, to be counted if the command succeeds.
    pub(super) fn note_zeros(&mut self, data: &DataOut) {
        if data.len() >= ZEROS_MIN_BYTES && is_zero(data) {
            self.zero_bytes += data.len() as u64;
        }
    }

    /// Notes the bytes it copies, to be counted if the command succeeds.
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

/// Returns whether all bytes are 0. Cheap if the first one is not.
fn is_zero(data: &DataOut) -> bool {
    // Chunks that the processor can compare at once.
    let mut pieces = data.slices().flat_map(|slice| slice.chunks(64));
    pieces.all(|piece| piece.iter().fold(0, |all, byte| all | byte) == 0)
}

#[derive(Default)]
struct Entry {
    /// Incremented with each use, so that an old token never finds a new task.
    generation: u32,
    task: Option<Task>,
}

/// A table of tasks with reusable slots.
#[derive(Default)]
pub(super) struct Tasks {
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Tasks that were aborted while they were held, by name.
    aborted_held: Vec<u64>,
}

impl Tasks {
    /// Adds a task and returns its index.
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

    /// Returns the name of the task at an index, which is not reused for a long time.
    pub(super) fn name(&self, index: usize) -> u64 {
        (u64::from(self.entries[index].generation) << 32) | index as u64
    }

    /// Returns the index of the task with this name, if it is still in progress.
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

    /// Returns the number of tasks in progress.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Adds a watch to tasks. `All` selects those that have an effect, or may still have one: not
    /// long reads that wait, which may take long and which SCSI ends if their nexus is preempted,
    /// nor commands that have not begun.
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

    /// Returns the volumes of all tasks in progress that have one.
    pub(super) fn volumes(&self) -> HashMap<TaskHandle, VolumeId> {
        let tasks = self.entries.iter().filter_map(|entry| entry.task.as_ref());
        tasks.filter_map(|task| Some((task.handle, task.volume?))).collect()
    }

    /// Adds a watch to tasks that were aborted before and have not ended, including those whose
    /// connection is gone.
    pub(super) fn watch_aborted(&mut self, is_meant: impl Fn(&Task) -> bool, watch: &Arc<Watch>) {
        let tasks = self.entries.iter_mut().filter_map(|entry| entry.task.as_mut());
        for task in tasks.filter(|task| task.aborted && is_meant(task)) {
            task.watches.push(watch.clone());
        }
    }

    /// Marks tasks as aborted, and adds a watch to them. Scans the table once, however many there
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

    /// Returns the tasks that were aborted while they were held, since the last call.
    pub(super) fn take_aborted_held(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.aborted_held)
    }

    /// Returns the buckets that held tasks wait for, once for each task.
    pub(super) fn held_buckets(&self) -> Vec<Arc<Bucket>> {
        let tasks = self.entries.iter().filter_map(|entry| entry.task.as_ref());
        tasks.filter_map(|task| Some(task.held.as_ref()?.bucket.clone())).collect()
    }
}
