//! A disk over calls that transfer a part, are refused temporarily, or fail.

use std::fmt;
use std::io;
use std::time::Duration;

use block::{FRAME_BYTES, Frame, FrameMut};

use crate::calls::Calls;
use crate::counts::DiskSnapshot;
use crate::disk::{Disk, Persist};
use crate::flushes::Overlap;
use crate::retry::Patience;
#[cfg(test)]
use crate::retry::Retries;
use crate::transfer::{Core, Next, Step, Transfer};

/// How often to check whether the flushes have ended that overlap a successful one.
const OVERLAP_PAUSE: Duration = Duration::from_micros(100);
/// How many times, for about 10 s. Then the flush counts as failed: the thread that should have
/// collected the others may be waiting for this one.
const OVERLAP_PAUSES_MAX: u32 = 100_000;

/// A [`Disk`] over [`Calls`]: continues partial transfers, retries temporary errors, and interprets
/// failed flushes. Callers block; [`crate::Transfers`] do the same for callers that do not.
pub struct RetryingDisk<C> {
    calls: C,
    core: Core,
}

impl<C> fmt::Debug for RetryingDisk<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingDisk").field("retries", &self.core.retries).finish_non_exhaustive()
    }
}

impl<C: Calls> RetryingDisk<C> {
    /// Creates a disk over these calls, of which none has failed yet.
    pub fn new(calls: C) -> Self {
        Self { calls, core: Core::default() }
    }

    /// Forgets failures, like a process that opens the disk: they then do not shorten retries.
    pub fn forget_failures(&self) {
        self.core.retries.passed(0);
        self.core.flushes.note_for_all(&Ok(()));
    }

    /// Returns the calls.
    pub fn calls(&self) -> &C {
        &self.calls
    }

    pub(crate) fn calls_mut(&mut self) -> &mut C {
        &mut self.calls
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    #[cfg(test)]
    pub(crate) fn retries(&self) -> &Retries {
        &self.core.retries
    }

    /// Calls `report`, with one sentence each, when the device begins to refuse writes, accepts
    /// them again, or one was given up.
    pub fn report_to(&self, report: impl Fn(&str) + Send + Sync + 'static) {
        self.core.retries.report_to(Box::new(report));
    }

    /// Calls `fenced` when the device refuses something because it is reserved for others
    /// (`EBADE`), before the failure is reported to a caller.
    pub fn when_fenced(&self, fenced: impl Fn() + Send + Sync + 'static) {
        self.core.retries.when_fenced(Box::new(fenced));
    }

    /// Ends retries, because the owner is stopping: from here on refused writes fail.
    pub fn end_retries(&self) {
        self.core.retries.end();
    }

    /// Refuses a range that is not in whole frames within the disk. Writing past the end would
    /// extend a file.
    pub fn check_range(&self, offset_bytes: u64, frame_count: usize) -> io::Result<()> {
        let len = (frame_count * FRAME_BYTES) as u64;
        let has = self.calls.len_bytes();
        let end = offset_bytes.checked_add(len).filter(|end| *end <= has);
        if end.is_none() || !offset_bytes.is_multiple_of(FRAME_BYTES as u64) {
            return Err(invalid(format!(
                "{len} bytes at {offset_bytes} are not in whole frames of a disk of {has} bytes"
            )));
        }
        Ok(())
    }

    /// Does the same as [`RetryingDisk::check_range`] for a write that begins now.
    pub(crate) fn admit_write(&self, offset_bytes: u64, frame_count: usize) -> io::Result<()> {
        self.check_range(offset_bytes, frame_count)?;
        if frame_count > 0 {
            self.calls.before_write(offset_bytes, (frame_count * FRAME_BYTES) as u64);
        }
        Ok(())
    }

    /// Flushes, once, for writes that began when `before` flushes had failed.
    pub(crate) fn flush_since(&self, before: u64) -> io::Result<()> {
        let flushes = &self.core.flushes;
        let ticket = flushes.begin();
        let result = self.core.counters.flushes.count(|| self.calls.sync().map(|()| 0));
        #[cfg(test)]
        let result = match self.core.retries.fault_of(Some(Step::Sync)) {
            Some(fault) => Err(io::Error::from_raw_os_error(fault)),
            None => result,
        };
        let overlap = flushes.end(ticket, result.as_ref().err());
        result.inspect_err(|error| self.core.retries.look_for_fence(error))?;
        self.wait_for(overlap)?;
        flushes.judge(before)
    }

    /// Waits until the flushes have ended that overlap a successful one.
    fn wait_for(&self, overlap: Overlap) -> io::Result<()> {
        for _ in 0..OVERLAP_PAUSES_MAX {
            if self.core.flushes.has_passed(overlap) {
                return Ok(());
            }
            self.calls.sleep(OVERLAP_PAUSE);
        }
        Err(io::Error::from_raw_os_error(libc::EIO))
    }

    /// Executes a transfer completely.
    fn run(
        &self,
        mut transfer: Transfer,
        mut call: impl FnMut(&C, Step, usize) -> io::Result<usize>,
    ) -> io::Result<()> {
        loop {
            let Some(step) = transfer.step() else { return Ok(()) };
            transfer.begin(&self.core);
            let result = match step {
                Step::Sync => self.calls.sync().map(|()| 0),
                step => call(&self.calls, step, transfer.done_bytes()),
            };
            let mut next = transfer.ended(result, &self.core);
            while let Next::Overlapped(overlap) = next {
                self.wait_for(overlap)?;
                next = transfer.judge(overlap, &self.core);
            }
            match next {
                Next::Step | Next::Overlapped(_) => {}
                Next::Again(pause) => self.sleep(pause),
                Next::Ended(result) => return result,
            }
        }
    }

    fn sleep(&self, pause: Duration) {
        self.core.retries.sleep(pause, |slice| self.calls.sleep(slice));
    }

    fn run_read(
        &self,
        offset_bytes: u64,
        frames: &mut [FrameMut],
        patience: Patience,
    ) -> io::Result<()> {
        self.check_range(offset_bytes, frames.len())?;
        let transfer = Transfer::read(offset_bytes, frames.len(), patience);
        self.run(transfer, |calls, _, done| calls.read(offset_bytes, frames, done))
    }

    fn run_write(&self, offset_bytes: u64, frames: &[Frame], persist: Persist) -> io::Result<()> {
        self.admit_write(offset_bytes, frames.len())?;
        if let Some(pause) = self.core.pause_before(persist) {
            self.sleep(pause);
        }
        let transfer = Transfer::write(&self.core, offset_bytes, frames.len(), persist);
        self.run(transfer, |calls, step, done| {
            let dsync = step == Step::Write { dsync: true };
            calls.write(offset_bytes, frames, done, dsync)
        })
    }
}

impl<C: Calls> Disk for RetryingDisk<C> {
    fn len_bytes(&self) -> u64 {
        self.calls.len_bytes()
    }

    fn grow(&self, len_bytes: u64) -> io::Result<()> {
        if !len_bytes.is_multiple_of(FRAME_BYTES as u64) {
            return Err(invalid(format!("{len_bytes} bytes is not a multiple of 4096")));
        }
        self.calls.grow(len_bytes)
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.run_read(offset_bytes, frames, Patience::None)
    }

    fn read_patiently(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.run_read(offset_bytes, frames, Patience::Place)
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.run_write(offset_bytes, frames, Persist::Nothing)
    }

    fn flush(&self) -> io::Result<()> {
        self.run_write(0, &[], Persist::All)
    }

    fn flush_failures(&self) -> u64 {
        self.core.flushes.failed()
    }

    fn discard(&self, offset_bytes: u64, len_bytes: u64) -> io::Result<bool> {
        if !len_bytes.is_multiple_of(FRAME_BYTES as u64) {
            return Err(invalid(format!("{len_bytes} bytes is not a multiple of 4096")));
        }
        self.check_range(offset_bytes, (len_bytes / FRAME_BYTES as u64) as usize)?;
        let done = self.calls.discard(offset_bytes, len_bytes);
        done.inspect_err(|error| self.core.retries.look_for_fence(error))
    }

    fn has_given_up(&self) -> bool {
        self.core.retries.has_given_up()
    }

    fn is_refusing(&self) -> bool {
        self.core.retries.is_refusing()
    }

    fn set_redundant(&self, redundant: bool) {
        self.core.retries.set_redundant(redundant);
    }

    fn retry_count(&self) -> u64 {
        self.core.retries.count()
    }

    fn counts(&self) -> DiskSnapshot {
        self.core.counters.snapshot()
    }

    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut refused = 0;
        loop {
            let before = self.core.flushes.failed();
            // What fails there was retried often enough.
            write()?;
            let Err(error) = self.flush_since(before) else {
                self.core.retries.passed(refused);
                return Ok(());
            };
            refused += 1;
            let pause = self.core.retries.refused(&error, refused, Patience::Device);
            self.sleep(pause.ok_or(error)?);
        }
    }

    fn write_durable(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.run_write(offset_bytes, frames, Persist::Itself)
    }

    fn write_as(&self, offset_bytes: u64, frames: &[Frame], persist: Persist) -> io::Result<()> {
        self.run_write(offset_bytes, frames, persist)
    }
}

pub(crate) fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock, Weak};

    use super::*;
    use crate::transfers::Transfers;

    /// Calls that flush before each write, like one that waits for zeros below it.
    #[derive(Default)]
    struct Waiting(OnceLock<Weak<RetryingDisk<Waiting>>>);

    impl Calls for Waiting {
        fn len_bytes(&self) -> u64 {
            1 << 20
        }

        fn grow(&self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn before_write(&self, _: u64, _: u64) {
            let disk = self.0.get().and_then(Weak::upgrade).unwrap();
            disk.flush().unwrap();
        }

        fn read(&self, _: u64, frames: &mut [FrameMut], skip_bytes: usize) -> io::Result<usize> {
            Ok(frames.len() * FRAME_BYTES - skip_bytes)
        }

        fn write(&self, _: u64, frames: &[Frame], skip: usize, _: bool) -> io::Result<usize> {
            Ok(frames.len() * FRAME_BYTES - skip)
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn sleep(&self, _: Duration) {}
    }

    /// A write that waited for another flush, while it was itself in flight for that flush,
    /// deadlocked both.
    #[test]
    fn a_write_does_not_begin_before_the_flush_that_it_waits_for_ends() {
        let disk = Arc::new(RetryingDisk::new(Waiting::default()));
        disk.calls().0.set(Arc::downgrade(&disk)).unwrap();
        let frames = [Frame::zeros()];
        disk.write_durable(0, &frames).unwrap();
        disk.write_as(0, &frames, Persist::All).unwrap();
        let (mut transfers, mut out) = (Transfers::default(), Vec::new());
        for persist in [Persist::Itself, Persist::All] {
            transfers.write(&disk, 0, 0, frames.to_vec(), persist).unwrap();
        }
        while transfers.ready_count() > 0 {
            transfers.step(&disk, 0, &mut out);
        }
        assert!(out.len() == 2 && out.iter().all(|ended| ended.result.is_ok()));
    }
}
