//! One thread's lines to the devices of a pool, and the requests that use several of them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use block::{Frame, FrameMut};
use sys::{Completion, Persist, Ring};

use smallvec::SmallVec;

use super::device::Slot;
use super::placement::Run;

/// One thread's access to one device: a [`Ring`].
pub(super) trait Line {
    fn read(&mut self, name: u64, offset_bytes: u64, frames: Vec<FrameMut>) -> io::Result<()>;
    fn write(
        &mut self,
        name: u64,
        offset_bytes: u64,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()>;
    fn check_range(&self, offset_bytes: u64, frame_count: usize) -> io::Result<()>;
    fn submit(&mut self) -> io::Result<()>;
    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()>;
    fn next_retry(&self) -> Option<Duration>;
    fn has_ended(&self) -> bool;
    fn end_retries(&self);
    fn notices(&self) -> &[String];
}

impl Line for Ring {
    fn read(&mut self, name: u64, offset_bytes: u64, frames: Vec<FrameMut>) -> io::Result<()> {
        self.read(name, offset_bytes, frames)
    }

    fn write(
        &mut self,
        name: u64,
        offset_bytes: u64,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        self.write(name, offset_bytes, frames, persist)
    }

    fn check_range(&self, offset_bytes: u64, frame_count: usize) -> io::Result<()> {
        self.check_range(offset_bytes, frame_count)
    }

    fn submit(&mut self) -> io::Result<()> {
        self.submit()
    }

    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        self.complete(out)
    }

    fn next_retry(&self) -> Option<Duration> {
        self.next_retry()
    }

    fn has_ended(&self) -> bool {
        self.has_ended()
    }

    fn end_retries(&self) {
        self.end_retries();
    }

    fn notices(&self) -> &[String] {
        self.notices()
    }
}

/// A set of lanes: a bit for each.
pub(super) type Lanes = u64;

/// A line to a member of the pool.
pub(super) struct Lane {
    pub(super) slot: Arc<Slot>,
    pub(super) line: Box<dyn Line>,
    /// After the line, which waits for them when it is dropped.
    under_way: UnderWay,
    /// The number of successive late reads.
    pub(super) late_reads: u32,
}

/// The requests of one lane in flight, or a blocking call: as long as there are any, a device that
/// went out is not taken back.
pub(super) struct UnderWay {
    slot: Arc<Slot>,
    count: u32,
}

/// A request of a caller.
pub(super) enum Request {
    Append {
        user_data: u64,
        /// Lanes with a part in flight.
        under_way: Lanes,
        /// Those of them that the answer waits for.
        owed: Lanes,
        /// How many have succeeded, and since when these are enough, so that the others are late.
        ended_well: usize,
        enough: usize,
        taken: Option<Instant>,
        frames: Vec<Frame>,
        error: Option<io::Error>,
        is_answered: bool,
    },
    Read {
        user_data: u64,
        runs: SmallVec<[ReadRun; 1]>,
        is_answered: bool,
    },
}

/// Blocks of a read that are contiguous on their devices.
pub(super) struct ReadRun {
    pub(super) run: Run,
    /// Lanes with a part in flight.
    pub(super) under_way: Lanes,
    /// Lanes that were tried.
    pub(super) tried: Lanes,
    /// When the last lane was tried.
    pub(super) asked: Instant,
    /// The data, once it was read.
    pub(super) frames: Option<Vec<FrameMut>>,
    /// The data of the same rows from other devices, by column, if it is to be reconstructed.
    pub(super) others: Option<Vec<Option<Vec<Frame>>>>,
}

impl ReadRun {
    pub(super) fn new(run: Run) -> Self {
        let (under_way, tried, frames, others) = Default::default();
        Self { run, under_way, tried, asked: Instant::now(), frames, others }
    }
}

/// Requests by number; numbers are reused.
#[derive(Default)]
pub(super) struct Requests {
    table: Vec<Option<Request>>,
    free: Vec<u32>,
    /// The number of requests in flight.
    pub(super) waiting: usize,
}

impl Requests {
    /// Stores a request until it has completed; returns its number.
    pub(super) fn keep(&mut self, request: Request) -> u32 {
        self.waiting += 1;
        match self.free.pop() {
            Some(index) => {
                self.table[index as usize] = Some(request);
                index
            }
            None => {
                self.table.push(Some(request));
                (self.table.len() - 1) as u32
            }
        }
    }

    pub(super) fn numbers(&self) -> std::ops::Range<u32> {
        0..self.table.len() as u32
    }

    pub(super) fn get(&mut self, index: u32) -> Option<&mut Request> {
        self.table[index as usize].as_mut()
    }

    /// Removes a request that could not be started: its caller gets the error directly.
    pub(super) fn take_back(&mut self, index: u32) {
        self.waiting -= 1;
        self.forget(index);
    }

    /// Removes a completed request, once no line has a part of it.
    pub(super) fn forget_if_ended(&mut self, index: u32) {
        let is_over = self.get(index).is_some_and(|request| match request {
            Request::Append { under_way, is_answered, .. } => *under_way == 0 && *is_answered,
            Request::Read { runs, is_answered, .. } => {
                *is_answered && runs.iter().all(|run| run.under_way == 0)
            }
        });
        if is_over {
            self.forget(index);
        }
    }

    fn forget(&mut self, index: u32) {
        self.table[index as usize] = None;
        self.free.push(index);
    }
}

/// Returns the name of a lane's part of a request in its ring; for reads it includes the run and
/// the column.
pub(super) fn name_of(index: u32, lane: usize, (run, column): (usize, usize)) -> u64 {
    debug_assert!(lane < 1 << 8 && column < 1 << 8 && run < 1 << 16);
    u64::from(index) | (lane as u64) << 32 | (column as u64) << 40 | (run as u64) << 48
}

/// Returns the request, the lane, the run and the column of a name.
pub(super) fn parts_of(name: u64) -> (u32, usize, usize, usize) {
    (name as u32, (name >> 32) as usize & 0xff, (name >> 48) as usize, (name >> 40) as usize & 0xff)
}

impl Lane {
    pub(super) fn new(slot: Arc<Slot>, line: Box<dyn Line>) -> Self {
        let under_way = UnderWay { slot: slot.clone(), count: 0 };
        Self { slot, line, under_way, late_reads: 0 }
    }

    /// Returns whether nothing is in flight and the device is not among these.
    pub(super) fn is_idle_of_none(&self, slots: &[Arc<Slot>]) -> bool {
        self.under_way.count == 0 && !slots.iter().any(|slot| Arc::ptr_eq(slot, &self.slot))
    }

    /// Counts a request that has ended.
    pub(super) fn ended_one(&mut self) {
        self.under_way.ended_one();
    }

    pub(super) fn read(
        &mut self,
        name: u64,
        offset_bytes: u64,
        frames: Vec<FrameMut>,
    ) -> io::Result<()> {
        self.line.read(name, offset_bytes, frames)?;
        self.under_way.began_one();
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        name: u64,
        offset_bytes: u64,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        self.line.write(name, offset_bytes, frames, persist)?;
        self.under_way.began_one();
        Ok(())
    }
}

impl UnderWay {
    /// Counts one request, until this is dropped.
    pub(super) fn one(slot: &Arc<Slot>) -> Self {
        let mut under_way = Self { slot: slot.clone(), count: 0 };
        under_way.began_one();
        under_way
    }

    fn began_one(&mut self) {
        self.count += 1;
        self.slot.in_flight.fetch_add(1, Ordering::AcqRel);
    }

    fn ended_one(&mut self) {
        self.count -= 1;
        self.slot.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.slot.in_flight.fetch_sub(self.count, Ordering::AcqRel);
    }
}
