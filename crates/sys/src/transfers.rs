//! Concurrent transfers, step by step.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use block::{Frame, FrameMut};

use crate::calls::Calls;
use crate::disk::Persist;
use crate::flushes::Overlap;
use crate::retry::Patience;
use crate::retrying::RetryingDisk;
use crate::transfer::{Core, Next, Step, Transfer};

/// How often to check whether the flushes have ended that overlap a successful one.
const OVERLAP_PAUSE: Duration = Duration::from_millis(1);

/// The memory of a transfer.
#[derive(Debug)]
pub enum Buffers {
    /// Filled by a read.
    Read(Vec<FrameMut>),
    /// The data of a write.
    Write(Vec<Frame>),
}

/// A transfer that has ended.
#[derive(Debug)]
pub struct Completion {
    /// The caller's name for it.
    pub user_data: u64,
    /// Its memory. After a failed read the bytes are unspecified.
    pub buffers: Buffers,
    /// Whether all of it was done; for a durable write, whether it is durable.
    pub result: io::Result<()>,
}

pub(crate) struct UnderWay {
    user_data: u64,
    pub(crate) transfer: Transfer,
    pub(crate) buffers: Buffers,
}

/// Transfers of one disk in flight. The owner has each of their steps done, in any order
/// ([`Transfers::step`]): a ring without io_uring, and the simulator. A ring with io_uring gives
/// the steps to the kernel.
#[derive(Default)]
pub struct Transfers {
    pub(crate) slots: Vec<Option<UnderWay>>,
    free: Vec<u32>,
    /// Slots whose next step is due.
    pub(crate) ready: VecDeque<u32>,
    /// Slots whose transfer was refused, or must wait, and until when.
    later: Vec<(Instant, u32)>,
    /// Slots whose flush has succeeded while others were in flight, and which.
    overlapped: Vec<(Overlap, u32)>,
}

impl Transfers {
    /// Queues a read of `frames` from `offset_bytes` on.
    ///
    /// # Errors
    /// If the range is not within the disk; the frames are then dropped.
    pub fn read<C: Calls>(
        &mut self,
        disk: &RetryingDisk<C>,
        user_data: u64,
        offset_bytes: u64,
        frames: Vec<FrameMut>,
    ) -> io::Result<()> {
        disk.check_range(offset_bytes, frames.len())?;
        let transfer = Transfer::read(offset_bytes, frames.len(), Patience::Place);
        self.queue(UnderWay { user_data, transfer, buffers: Buffers::Read(frames) }, None);
        Ok(())
    }

    /// Queues a write of `frames` (perhaps none) from `offset_bytes` on. It ends when what
    /// `persist` requests is durable.
    ///
    /// # Errors
    /// If the range is not within the disk.
    pub fn write<C: Calls>(
        &mut self,
        disk: &RetryingDisk<C>,
        user_data: u64,
        offset_bytes: u64,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        disk.admit_write(offset_bytes, frames.len())?;
        let pause = disk.core().pause_before(persist);
        let transfer = Transfer::write(disk.core(), offset_bytes, frames.len(), persist);
        self.queue(UnderWay { user_data, transfer, buffers: Buffers::Write(frames) }, pause);
        Ok(())
    }

    fn queue(&mut self, under_way: UnderWay, pause: Option<Duration>) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[index as usize] = Some(under_way);
        match pause {
            Some(pause) => self.later.push((Instant::now() + pause, index)),
            None => self.ready.push_back(index),
        }
    }

    /// Returns how many have not ended.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether some of them wait, for a time or for others.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.later.is_empty() || !self.overlapped.is_empty()
    }

    /// Returns how many of them can do a step.
    pub fn ready_count(&self) -> usize {
        self.ready.len()
    }

    /// Returns when to check again ([`Transfers::wake`]) although nothing has ended.
    pub(crate) fn next_retry(&self) -> Option<Duration> {
        let now = Instant::now();
        let later = self.later.iter().map(|(at, _)| at.saturating_duration_since(now)).min();
        let overlapped = (!self.overlapped.is_empty()).then_some(OVERLAP_PAUSE);
        later.into_iter().chain(overlapped).min()
    }

    /// Makes ready what has waited long enough, and adds to `out` what has ended by that.
    pub(crate) fn wake<C: Calls>(&mut self, disk: &RetryingDisk<C>, out: &mut Vec<Completion>) {
        let now = Instant::now();
        let due = self.later.extract_if(.., |(at, _)| *at <= now).map(|(_, index)| index);
        self.ready.extend(due);
        self.judge_overlapped(disk, out);
    }

    /// Does the same as if all had waited long enough: for a world with its own time.
    pub fn wake_all<C: Calls>(&mut self, disk: &RetryingDisk<C>, out: &mut Vec<Completion>) {
        self.ready.extend(self.later.drain(..).map(|(_, index)| index));
        self.judge_overlapped(disk, out);
    }

    fn judge_overlapped<C: Calls>(&mut self, disk: &RetryingDisk<C>, out: &mut Vec<Completion>) {
        for (overlap, index) in std::mem::take(&mut self.overlapped) {
            if let Some(under_way) = &mut self.slots[index as usize] {
                let next = under_way.transfer.judge(overlap, disk.core());
                self.go_on(index, next, out);
            }
        }
    }

    /// Does the next step of one of those that are ready (the first is 0), and adds the transfer to
    /// `out` if it has ended.
    ///
    /// # Panics
    /// If fewer are ready.
    pub fn step<C: Calls>(
        &mut self,
        disk: &RetryingDisk<C>,
        nth: usize,
        out: &mut Vec<Completion>,
    ) {
        let index = self.ready.remove(nth).expect("a transfer that is ready");
        let Some(under_way) = &mut self.slots[index as usize] else { return };
        under_way.transfer.begin(disk.core());
        let UnderWay { transfer, buffers, .. } = under_way;
        let (offset_bytes, done) = (transfer.offset_bytes(), transfer.done_bytes());
        let result = match (transfer.step(), buffers) {
            (Some(Step::Read), Buffers::Read(frames)) => {
                disk.calls().read(offset_bytes, frames, done)
            }
            (Some(Step::Write { dsync }), Buffers::Write(frames)) => {
                disk.calls().write(offset_bytes, frames, done, dsync)
            }
            (Some(Step::Sync), _) => disk.calls().sync().map(|()| 0),
            _ => Ok(0),
        };
        self.step_ended(disk.core(), index, result, out);
    }

    /// Handles the end of a slot's current step: continues the transfer, or ends it.
    pub(crate) fn step_ended(
        &mut self,
        core: &Core,
        index: u32,
        result: io::Result<usize>,
        out: &mut Vec<Completion>,
    ) {
        if let Some(under_way) = &mut self.slots[index as usize] {
            let next = under_way.transfer.ended(result, core);
            self.go_on(index, next, out);
        }
    }

    fn go_on(&mut self, index: u32, next: Next, out: &mut Vec<Completion>) {
        match next {
            Next::Step => self.ready.push_back(index),
            Next::Again(pause) => self.later.push((Instant::now() + pause, index)),
            Next::Overlapped(overlap) => self.overlapped.push((overlap, index)),
            Next::Ended(result) => {
                let under_way = self.slots[index as usize].take();
                out.extend(under_way.map(|under_way| {
                    let UnderWay { user_data, buffers, .. } = under_way;
                    Completion { user_data, buffers, result }
                }));
                self.free.push(index);
            }
        }
    }

    /// Drops a transfer without a waiting caller, whose step has ended.
    pub(crate) fn abandon<C: Calls>(
        &mut self,
        disk: &RetryingDisk<C>,
        index: u32,
        result: io::Result<usize>,
    ) {
        if let Some(under_way) = &mut self.slots[index as usize] {
            under_way.transfer.abandon(result, disk.core());
        }
    }

    /// Drops the current steps, whose ends will not be reported: they count as ended with this
    /// error.
    pub(crate) fn abandon_all<C: Calls>(&mut self, disk: &RetryingDisk<C>, error: &io::Error) {
        for under_way in self.slots.iter_mut().flatten() {
            let error = io::Error::new(error.kind(), error.to_string());
            under_way.transfer.abandon(Err(error), disk.core());
        }
    }
}
