//! One transfer of a ring, step by step: what the kernel is asked for, and what its answer means.

use std::io;
use std::time::Instant;

use io_uring::{opcode, squeue, types};

use crate::disk::{Disk, Persist};
use crate::file::FileDisk;
use crate::iovec;
use crate::retry::{Flushes, Patience};
use crate::ring::{Buffers, Completion};

/// A transfer that was asked for.
pub(crate) struct Queued {
    pub(crate) user_data: u64,
    pub(crate) offset_bytes: u64,
    pub(crate) buffers: Buffers,
    pub(crate) persist: Persist,
    /// How often the device has refused it, and how often it may.
    pub(crate) refused: u32,
    pub(crate) patience: Patience,
}

impl Queued {
    fn ended(self, result: io::Result<()>) -> Completion {
        Completion { user_data: self.user_data, buffers: self.buffers, result }
    }
}

/// What came of a transfer that was done on the spot.
pub(crate) enum Performed {
    Ended(Completion),
    /// It is tried again at this time.
    Refused(Instant, Queued),
}

/// Does a transfer without io_uring, once.
pub(crate) fn perform(disk: &FileDisk, mut transfer: Queued) -> Performed {
    let Queued { offset_bytes, persist, .. } = transfer;
    let result = match &mut transfer.buffers {
        Buffers::Read(frames) => disk.read(offset_bytes, frames),
        Buffers::Write(frames) if persist == Persist::All => {
            // What the flush should have kept is not only this write: it is not tried again here.
            let written = disk.put(offset_bytes, frames, Persist::Nothing);
            if written.is_ok() {
                disk.retries().passed(transfer.refused);
                return Performed::Ended(transfer.ended(disk.flush_at_once()));
            }
            written
        }
        Buffers::Write(frames) => disk.put(offset_bytes, frames, persist),
    };
    if let Some(pause) =
        disk.retries().ended(&transfer.buffers, &result, (transfer.refused, transfer.patience))
    {
        transfer.refused += 1;
        return Performed::Refused(Instant::now() + pause, transfer);
    }
    Performed::Ended(transfer.ended(result))
}

/// A transfer in the kernel, or waiting for room there.
pub(crate) struct Transfer {
    pub(crate) user_data: u64,
    pub(crate) offset_bytes: u64,
    pub(crate) buffers: Buffers,
    pub(crate) done_bytes: usize,
    /// Whether each write carries its flush.
    pub(crate) dsync: bool,
    /// Whether a flush must follow the last write.
    pub(crate) sync_after: bool,
    /// Whether that flush is for earlier writes as well.
    pub(crate) flushes_all: bool,
    /// How often the device has refused it, and how often it may.
    pub(crate) refused: u32,
    pub(crate) patience: Patience,
    /// How many flushes had failed when it began.
    pub(crate) flushes_failed: u64,
}

#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) transfer: Option<Transfer>,
    /// Kept for the next transfer of the slot.
    pub(crate) iovecs: Vec<libc::iovec>,
}

/// What follows a step of a transfer.
pub(crate) enum Progress {
    More,
    Ended(io::Result<()>),
}

impl Transfer {
    fn is_moved(&self) -> bool {
        self.done_bytes >= self.buffers.len_bytes()
    }

    /// Whether its next step, or the one that has just ended, is a flush.
    fn is_flush(&self) -> bool {
        self.is_moved() && self.sync_after
    }

    /// What follows the end of a step: as [`Transfer::after`], with what a failed flush means for
    /// this transfer and for others.
    pub(crate) fn ended(&mut self, result: i32, flushes: &Flushes) -> Progress {
        let was_flush = self.is_flush();
        match self.after(result) {
            Progress::Ended(result) if was_flush => {
                let result = flushes.judge(result, self.flushes_failed);
                if self.flushes_all {
                    flushes.note_for_all(&result);
                }
                Progress::Ended(result)
            }
            Progress::Ended(Err(error)) => {
                if self.dsync {
                    flushes.note(&error);
                }
                Progress::Ended(Err(error))
            }
            other => other,
        }
    }

    /// Begins again.
    pub(crate) fn begin_again(&mut self, flushes: &Flushes) {
        self.refused += 1;
        self.done_bytes = 0;
        self.flushes_failed = flushes.failed();
    }

    /// Whether all of it can be done once more, as if it had not begun. Not behind a flush that is
    /// for earlier writes, too: those are to be written again first.
    pub(crate) fn may_begin_again(&self) -> bool {
        !(self.flushes_all && self.is_moved())
    }

    /// The error that a test wants this step to end with.
    #[cfg(test)]
    pub(crate) fn fault(&self, retries: &crate::retry::Retries) -> Option<i32> {
        if self.is_flush() { retries.flush_fault() } else { retries.fault() }
    }

    /// What follows the end of a step with `result`: bytes, or a negative error number.
    pub(crate) fn after(&mut self, result: i32) -> Progress {
        if result < 0 {
            return match -result {
                libc::EINTR | libc::EAGAIN => Progress::More,
                // The filesystem has no flush within a write: a flush follows it.
                libc::EOPNOTSUPP if self.dsync => {
                    (self.dsync, self.sync_after) = (false, true);
                    Progress::More
                }
                error => Progress::Ended(Err(io::Error::from_raw_os_error(error))),
            };
        }
        if self.is_moved() {
            return Progress::Ended(Ok(())); // that was the flush
        }
        if result == 0 {
            let text = "the device moved no bytes";
            return Progress::Ended(Err(io::Error::new(io::ErrorKind::UnexpectedEof, text)));
        }
        self.done_bytes += result as usize;
        if !self.is_moved() || self.sync_after { Progress::More } else { Progress::Ended(Ok(())) }
    }
}

/// The kernel's next step for a transfer: a part of its bytes, or the flush behind them.
pub(crate) fn next_step(slot: &mut Slot) -> squeue::Entry {
    let file = types::Fixed(0);
    let Some(transfer) = &mut slot.transfer else { return opcode::Nop::new().build() };
    let offset = transfer.offset_bytes + transfer.done_bytes as u64;
    if transfer.is_flush() {
        return opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build();
    }
    match &mut transfer.buffers {
        Buffers::Read(frames) => {
            iovec::for_read(&mut slot.iovecs, frames, transfer.done_bytes);
            let count = slot.iovecs.len() as u32;
            opcode::Readv::new(file, slot.iovecs.as_ptr(), count).offset(offset).build()
        }
        Buffers::Write(frames) => {
            iovec::for_write(&mut slot.iovecs, frames, transfer.done_bytes);
            let count = slot.iovecs.len() as u32;
            let flags = if transfer.dsync { libc::RWF_DSYNC } else { 0 };
            opcode::Writev::new(file, slot.iovecs.as_ptr(), count)
                .offset(offset)
                .rw_flags(flags)
                .build()
        }
    }
}
