//! One transfer, step by step: which call comes next, and what the end of a call means.
//!
//! The only place that decides it: for a ring with io_uring and without, for blocking callers, and
//! for the simulator, which simulates the calls.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use block::FRAME_BYTES;

use crate::counts::{DiskCounters, Timed, TransferCounters};
use crate::disk::Persist;
use crate::flushes::{Flushes, Overlap, Ticket};
use crate::iovec::IOVECS_MAX;
use crate::retry::{Patience, Retries};

/// What all transfers of a disk share.
pub(crate) struct Core {
    pub(crate) retries: Retries,
    pub(crate) flushes: Flushes,
    pub(crate) counters: DiskCounters,
    /// Whether a write can carry its own flush (`RWF_DSYNC`).
    dsync: AtomicBool,
}

impl Default for Core {
    fn default() -> Self {
        let (retries, flushes, counters) = Default::default();
        Self { retries, flushes, counters, dsync: AtomicBool::new(true) }
    }
}

impl Core {
    /// Returns how long to wait before a write begins that flushes others, if such flushes fail.
    pub(crate) fn pause_before(&self, persist: Persist) -> Option<Duration> {
        let pause = self.flushes.pause().filter(|_| persist == Persist::All);
        self.retries.pause(pause)
    }
}

/// A transfer in progress.
pub(crate) struct Transfer {
    offset_bytes: u64,
    len_bytes: usize,
    done_bytes: usize,
    is_write: bool,
    /// Whether each write carries its flush.
    dsync: bool,
    /// Whether a flush must follow the last write.
    sync_after: bool,
    /// Whether that flush also covers earlier writes.
    flushes_all: bool,
    /// How often the device has refused it, and how often it may.
    refused: u32,
    patience: Patience,
    /// How many flushes had failed when it began.
    flushes_failed: u64,
    /// The current call, if it flushes.
    ticket: Option<Ticket>,
    /// The current call, for counting.
    timed: Option<Timed>,
}

/// The next call of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Read,
    Write { dsync: bool },
    Sync,
}

#[cfg(test)]
impl Retries {
    /// Returns the error with which a test wants the next such call to end.
    pub(crate) fn fault_of(&self, step: Option<Step>) -> Option<i32> {
        let faults = match step? {
            Step::Read => &self.read_faults,
            Step::Write { .. } => &self.faults,
            Step::Sync => &self.flush_faults,
        };
        faults.lock().unwrap().pop_front()
    }
}

/// What follows the end of a call.
#[derive(Debug)]
pub(crate) enum Next {
    /// Another call.
    Step,
    /// All of it once more, after a pause.
    Again(Duration),
    /// Nothing, before these have ended ([`Transfer::judge`]).
    Overlapped(Overlap),
    Ended(io::Result<()>),
}

impl Transfer {
    pub(crate) fn read(offset_bytes: u64, frame_count: usize, patience: Patience) -> Self {
        Self {
            offset_bytes,
            len_bytes: frame_count * FRAME_BYTES,
            done_bytes: 0,
            is_write: false,
            dsync: false,
            sync_after: false,
            flushes_all: false,
            refused: 0,
            patience,
            flushes_failed: 0,
            ticket: None,
            timed: None,
        }
    }

    pub(crate) fn write(
        core: &Core,
        offset_bytes: u64,
        frame_count: usize,
        persist: Persist,
    ) -> Self {
        // A flag on the write covers only that write, and all of it must fit one call.
        let one_call = (1..=IOVECS_MAX).contains(&frame_count);
        let by_itself = persist == Persist::Itself && frame_count > 0;
        let dsync = by_itself && one_call && core.dsync.load(Ordering::Relaxed);
        Self {
            is_write: true,
            dsync,
            sync_after: by_itself && !dsync || persist == Persist::All,
            flushes_all: persist == Persist::All,
            flushes_failed: core.flushes.failed(),
            ..Self::read(offset_bytes, frame_count, core.retries.patience())
        }
    }

    pub(crate) fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    pub(crate) fn done_bytes(&self) -> usize {
        self.done_bytes
    }

    fn is_moved(&self) -> bool {
        self.done_bytes >= self.len_bytes
    }

    /// Returns the next call, if there is one: an empty transfer makes no call.
    pub(crate) fn step(&self) -> Option<Step> {
        match (self.is_moved(), self.is_write) {
            (false, false) => Some(Step::Read),
            (false, true) => Some(Step::Write { dsync: self.dsync }),
            (true, _) => self.sync_after.then_some(Step::Sync),
        }
    }

    /// Begins the next call.
    pub(crate) fn begin(&mut self, core: &Core) {
        if matches!(self.step(), Some(Step::Write { dsync: true } | Step::Sync)) {
            self.ticket = Some(core.flushes.begin());
        }
        self.timed = self.counters(core).map(TransferCounters::start);
    }

    /// Ends the call: with how many bytes it has transferred, or with an error.
    pub(crate) fn ended(&mut self, result: io::Result<usize>, core: &Core) -> Next {
        let step = self.step();
        #[cfg(test)]
        let result = match core.retries.fault_of(step) {
            Some(fault) => Err(io::Error::from_raw_os_error(fault)),
            None => result,
        };
        self.count(&result, core);
        // No caller checks whether a failed flush is to be retried.
        if let (Some(Step::Sync), Err(error)) = (step, &result) {
            core.retries.look_for_fence(error);
        }
        let after = self.after(step, result, core);
        let error = after.as_ref().and_then(|result| result.as_ref().err());
        let ticket = self.ticket.take();
        let overlap = ticket.map(|ticket| core.flushes.end(ticket, error));
        match (after, overlap) {
            (None, _) => Next::Step,
            (Some(Ok(())), Some(overlap)) if step == Some(Step::Sync) => self.judge(overlap, core),
            (Some(Ok(())), _) if self.dsync || step == Some(Step::Sync) => {
                self.judge_by_others(core)
            }
            // The result of a flush is not about a location.
            (Some(result), _) if step == Some(Step::Sync) => {
                self.conclude(result, Patience::Device, core)
            }
            (Some(result), _) => self.conclude(result, self.patience, core),
        }
    }

    /// Returns the counters for the next call.
    fn counters<'a>(&self, core: &'a Core) -> Option<&'a TransferCounters> {
        Some(match self.step()? {
            Step::Read => &core.counters.reads,
            Step::Write { .. } => &core.counters.writes,
            Step::Sync => &core.counters.flushes,
        })
    }

    /// Counts the end of the current call: with how many bytes, or with an error.
    fn count(&mut self, result: &io::Result<usize>, core: &Core) {
        if let (Some(timed), Some(counters)) = (self.timed.take(), self.counters(core)) {
            counters.stop(timed, result);
        }
    }

    /// Returns whether the call's end by itself is the end of the transfer.
    fn after(
        &mut self,
        step: Option<Step>,
        result: io::Result<usize>,
        core: &Core,
    ) -> Option<io::Result<()>> {
        let moved = match result {
            Ok(moved) => moved,
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => return None,
                // The filesystem has no flush within a write: a flush follows it.
                Some(libc::EOPNOTSUPP) if self.dsync => {
                    core.dsync.store(false, Ordering::Relaxed);
                    (self.dsync, self.sync_after) = (false, true);
                    return None;
                }
                _ => return Some(Err(error)),
            },
        };
        if matches!(step, None | Some(Step::Sync)) {
            return Some(Ok(()));
        }
        if moved == 0 {
            let text = "the device transferred no bytes";
            return Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, text)));
        }
        self.done_bytes += moved;
        self.step().is_none().then_some(Ok(()))
    }

    /// Handles the success of its flush: whether that counts, if it is known yet.
    pub(crate) fn judge(&mut self, overlap: Overlap, core: &Core) -> Next {
        match core.flushes.has_passed(overlap) {
            true => self.judge_by_others(core),
            false => Next::Overlapped(overlap),
        }
    }

    /// Ends it successfully, unless a flush has failed meanwhile, which says nothing against its
    /// location.
    fn judge_by_others(&mut self, core: &Core) -> Next {
        self.conclude(core.flushes.judge(self.flushes_failed), Patience::Device, core)
    }

    /// Ends the transfer, done or failed; it may then be retried.
    fn conclude(&mut self, result: io::Result<()>, patience: Patience, core: &Core) -> Next {
        let has_flushed = self.flushes_all && self.is_moved();
        if has_flushed {
            core.flushes.note_for_all(&result);
            // Not after such a flush: earlier writes must be written again first.
            if result.is_err() {
                return Next::Ended(result);
            }
        }
        let refused = (self.refused, patience);
        let Some(pause) = core.retries.ended(self.is_write, &result, refused) else {
            return Next::Ended(result);
        };
        self.refused += 1;
        self.done_bytes = 0;
        self.flushes_failed = core.flushes.failed();
        Next::Again(pause)
    }

    /// Drops it, because no caller waits for it any longer, after the current call has ended, if
    /// that was reported.
    pub(crate) fn abandon(&mut self, result: io::Result<usize>, core: &Core) {
        self.count(&result, core);
        if let Some(ticket) = self.ticket.take() {
            core.flushes.end(ticket, result.as_ref().err());
        }
    }
}
