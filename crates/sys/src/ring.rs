//! Asynchronous disk transfers of a thread: io_uring.
//!
//! Each front-end thread has its own ring. It queues transfers, starts all of them with one system
//! call ([`Ring::submit`]), and collects those that have ended ([`Ring::complete`]). The ring owns
//! the memory of a transfer while the kernel may access it. Its descriptor becomes readable when
//! something has ended, so that one `epoll_wait` covers sockets and disk.
//!
//! If the kernel or a seccomp filter refuses io_uring, the same calls do the transfers sequentially
//! in [`Ring::submit`], and [`Ring::notices`] says so.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use block::{Frame, FrameMut};
use io_uring::{IoUring, opcode, squeue, types};

use crate::disk::Persist;
use crate::event::Event;
use crate::file::FileDisk;
use crate::iovec;
use crate::setup::build;
use crate::transfer::Step;
use crate::transfers::{Buffers, Completion, Transfers, UnderWay};

/// One thread's access to a disk. It must stay on the thread that created it.
pub struct Ring {
    disk: Arc<FileDisk>,
    transfers: Transfers,
    /// Without it, each step is done directly.
    uring: Option<Uring>,
    /// What has ended and was not collected yet.
    done: Vec<Completion>,
    notices: Vec<String>,
    /// The kernel ties the ring to one thread.
    not_send: PhantomData<*const ()>,
}

impl Ring {
    /// Creates a ring for the calling thread, with at most `entries` transfers in the kernel at
    /// once; more wait in the ring. If io_uring is refused the transfers block (see
    /// [`Ring::notices`]).
    pub fn new(disk: Arc<FileDisk>, entries: u32) -> Self {
        let uring = Event::new().and_then(|event| Uring::new(&disk, entries, Arc::new(event)));
        Self::over(disk, uring)
    }

    /// The same, signalling by `event`, which other rings of this thread may share.
    pub fn signalling(disk: Arc<FileDisk>, entries: u32, event: &Arc<Event>) -> Self {
        let uring = Uring::new(&disk, entries, event.clone());
        Self::over(disk, uring)
    }

    fn over(disk: Arc<FileDisk>, uring: io::Result<Uring>) -> Self {
        let mut ring = Self::blocking(disk);
        match uring {
            Ok(uring) => ring.uring = Some(uring),
            Err(error) => ring.notices.push(format!(
                "the kernel refuses io_uring ({error}): each disk transfer blocks its front-end \
                 thread, which costs speed (allow io_uring_setup in the sandbox, or use Linux 5.10 \
                 or newer)"
            )),
        }
        ring
    }

    /// Creates a ring that does its transfers sequentially, without io_uring.
    pub fn blocking(disk: Arc<FileDisk>) -> Self {
        let (transfers, done, notices) = (Transfers::default(), Vec::new(), Vec::new());
        Self { disk, transfers, uring: None, done, notices, not_send: PhantomData }
    }

    /// Returns messages for the administrator about this ring, one sentence each; usually none.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Returns a descriptor that signals (edge-triggered) that something has ended; `None` if
    /// everything has ended when [`Ring::submit`] returns.
    pub fn poll_fd(&self) -> Option<RawFd> {
        self.uring.as_ref().map(|uring| uring.event.poll_fd())
    }

    /// Returns when to call [`Ring::complete`] although nothing has ended: a refused write is then
    /// retried.
    pub fn next_retry(&self) -> Option<Duration> {
        self.transfers.next_retry()
    }

    /// Ends retries on all rings of the disk, because the owner is stopping: from here on refused
    /// writes fail.
    pub fn end_retries(&self) {
        self.disk.end_retries();
    }

    /// Returns whether transfers have ended that the descriptor does not signal.
    pub fn has_ended(&self) -> bool {
        self.uring.is_none() && (self.transfers.ready_count() > 0 || !self.done.is_empty())
    }

    /// Returns how many transfers were queued and are not collected yet.
    pub fn in_flight(&self) -> usize {
        self.transfers.in_flight() + self.done.len()
    }

    /// Checks that this many frames from `offset_bytes` on are whole frames within the disk.
    ///
    /// # Errors
    /// If they are not.
    pub fn check_range(&self, offset_bytes: u64, frame_count: usize) -> io::Result<()> {
        self.disk.check_range(offset_bytes, frame_count)
    }

    /// Queues a read of `frames` from `offset_bytes` on.
    ///
    /// # Errors
    /// If the range is not within the disk; the frames are then dropped.
    pub fn read(
        &mut self,
        user_data: u64,
        offset_bytes: u64,
        frames: Vec<FrameMut>,
    ) -> io::Result<()> {
        self.transfers.read(&self.disk, user_data, offset_bytes, frames)
    }

    /// Queues a write of `frames` (perhaps none) from `offset_bytes` on. It ends when what
    /// `persist` requests is durable.
    ///
    /// # Errors
    /// If the range is not within the disk.
    pub fn write(
        &mut self,
        user_data: u64,
        offset_bytes: u64,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        self.transfers.write(&self.disk, user_data, offset_bytes, frames, persist)
    }

    /// Starts what was queued.
    ///
    /// # Errors
    /// If the kernel refuses the call itself; what was queued stays queued.
    pub fn submit(&mut self) -> io::Result<()> {
        let Self { disk, transfers, uring, done, .. } = self;
        if let Some(uring) = uring {
            return uring.submit(disk, transfers);
        }
        while transfers.ready_count() > 0 {
            transfers.step(disk, 0, done);
        }
        Ok(())
    }

    /// Waits until a submitted transfer ends or can continue; returns at once if none is in flight.
    /// For callers that may block.
    ///
    /// # Errors
    /// If the kernel refuses the call itself.
    pub fn wait(&mut self) -> io::Result<()> {
        match &mut self.uring {
            Some(uring) if uring.in_kernel > 0 => uring.wait(),
            _ => {
                // A refused transfer is retried after a pause.
                std::thread::sleep(self.next_retry().unwrap_or_default());
                Ok(())
            }
        }
    }

    /// Adds what has ended to `out`. Costs no system call if there is nothing.
    ///
    /// # Errors
    /// If the kernel refuses the call itself.
    pub fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        if let Some(uring) = &mut self.uring {
            uring.collect(&self.disk, &mut self.transfers, out)?;
        }
        out.append(&mut self.done);
        if self.transfers.has_waiting() {
            self.transfers.wake(&self.disk, out);
        }
        if self.transfers.ready_count() > 0 { self.submit() } else { Ok(()) }
    }
}

/// The kernel's side of a ring.
struct Uring {
    uring: IoUring,
    event: Arc<Event>,
    fd: RawFd,
    /// The vectors of each slot's current step. Kept for its next one.
    iovecs: Vec<Vec<libc::iovec>>,
    /// The number of steps in the kernel.
    in_kernel: u32,
    entries: u32,
}

impl Uring {
    fn new(disk: &FileDisk, entries: u32, event: Arc<Event>) -> io::Result<Self> {
        let uring = build(entries)?;
        uring.submitter().register_eventfd(event.poll_fd())?;
        uring.submitter().register_files(&[disk.raw_fd()])?;
        Ok(Self { uring, event, fd: disk.raw_fd(), iovecs: Vec::new(), in_kernel: 0, entries })
    }

    fn submit(&mut self, disk: &FileDisk, transfers: &mut Transfers) -> io::Result<()> {
        // There is more than one turn only when the submission queue is full; what is in the kernel
        // is bounded by the size of the completion queue, so that this can't overflow.
        while transfers.ready_count() > 0 && self.in_kernel < self.entries {
            self.push_ready(disk, transfers);
            self.enter()?;
        }
        Ok(())
    }

    fn push_ready(&mut self, disk: &FileDisk, transfers: &mut Transfers) {
        self.iovecs.resize_with(transfers.slots.len(), Vec::new);
        let mut submission = self.uring.submission();
        while self.in_kernel < self.entries && !submission.is_full() {
            let Some(index) = transfers.ready.pop_front() else { break };
            let slot = &mut transfers.slots[index as usize];
            let entry = next_step(slot, &mut self.iovecs[index as usize]);
            let entry = entry.user_data(u64::from(index));
            // SAFETY: the vectors and the frames that the entry points to belong to the slot, whose
            // transfer is neither moved out nor changed before the entry's completion was taken
            // from the queue; `Ring`'s `Drop` waits for that too.
            if unsafe { submission.push(&entry) }.is_err() {
                transfers.ready.push_front(index);
                break;
            }
            if let Some(under_way) = slot {
                under_way.transfer.begin(disk.core());
            }
            self.in_kernel += 1;
        }
    }

    fn enter(&mut self) -> io::Result<()> {
        match self.uring.submit() {
            Ok(_) => Ok(()),
            // Not now: the entries stay in the queue for the next call.
            Err(error) if is_transient(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits for the kernel to end one step.
    fn wait(&mut self) -> io::Result<()> {
        if !self.uring.completion().is_empty() {
            return Ok(());
        }
        match self.uring.submit_and_wait(1) {
            Ok(_) => Ok(()),
            Err(error) if is_transient(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes completions from the kernel.
    fn collect(
        &mut self,
        disk: &FileDisk,
        transfers: &mut Transfers,
        out: &mut Vec<Completion>,
    ) -> io::Result<()> {
        let submission = self.uring.submission();
        let calls = submission.taskrun() || submission.cq_overflow() || !submission.is_empty();
        drop(submission);
        if calls {
            self.enter()?;
        }
        while let Some((index, result)) = self.next_ended() {
            transfers.step_ended(disk.core(), index, result, out);
        }
        Ok(())
    }

    fn next_ended(&mut self) -> Option<(u32, io::Result<usize>)> {
        let entry = self.uring.completion().next()?;
        self.in_kernel -= 1;
        let result = usize::try_from(entry.result())
            .map_err(|_| io::Error::from_raw_os_error(-entry.result()));
        Some((entry.user_data() as u32, result))
    }
}

/// Returns the kernel's next step for a transfer: a part of its bytes, or the flush after them.
fn next_step(slot: &mut Option<UnderWay>, iovecs: &mut Vec<libc::iovec>) -> squeue::Entry {
    let file = types::Fixed(0);
    let Some(UnderWay { transfer, buffers, .. }) = slot else {
        return opcode::Nop::new().build();
    };
    let done = transfer.done_bytes();
    let offset = transfer.offset_bytes() + done as u64;
    match (transfer.step(), buffers) {
        (Some(Step::Sync), _) => {
            opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build()
        }
        (Some(Step::Read), Buffers::Read(frames)) => {
            iovec::for_read(iovecs, frames, done);
            opcode::Readv::new(file, iovecs.as_ptr(), iovecs.len() as u32).offset(offset).build()
        }
        (Some(Step::Write { dsync }), Buffers::Write(frames)) => {
            iovec::for_write(iovecs, frames, done);
            opcode::Writev::new(file, iovecs.as_ptr(), iovecs.len() as u32)
                .offset(offset)
                .rw_flags(if dsync { libc::RWF_DSYNC } else { 0 })
                .build()
        }
        _ => opcode::Nop::new().build(),
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

impl Drop for Ring {
    fn drop(&mut self) {
        let Some(uring) = &mut self.uring else { return };
        while uring.in_kernel > 0 {
            match uring.uring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if is_transient(&error) => {}
                Err(error) => {
                    // Whoever waits for the end of its flushes considers them failed.
                    self.transfers.abandon_all(&self.disk, &error);
                    // The kernel may still write to this memory: it must never be reused.
                    std::mem::forget(std::mem::take(&mut self.transfers));
                    std::mem::forget(std::mem::take(&mut uring.iovecs));
                    return;
                }
            }
            while let Some((index, result)) = uring.next_ended() {
                self.transfers.abandon(&self.disk, index, result);
            }
        }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match &self.uring {
            Some(uring) => format!("io_uring on descriptor {}", uring.fd),
            None => "blocking".into(),
        };
        f.debug_struct("Ring").field("kind", &kind).field("in_flight", &self.in_flight()).finish()
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
