//! Disk transfers that a thread starts and comes back for: io_uring.
//!
//! Each front-end thread has a ring of its own. It queues transfers, starts all of them with one
//! system call ([`Ring::submit`]), and collects those that have ended ([`Ring::complete`]). The
//! ring owns the memory of a transfer while the kernel may touch it. Its descriptor becomes
//! readable when something has ended, so that one `epoll_wait` covers sockets and disk.
//!
//! Where the kernel or a seccomp filter refuses io_uring the same calls do the transfers one after
//! the other in [`Ring::submit`], and [`Ring::notices`] says so.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use block::{FRAME_BYTES, Frame, FrameMut};
use io_uring::IoUring;

use crate::disk::Persist;
use crate::file::FileDisk;
use crate::iovec::IOVECS_MAX;
use crate::setup::build;
use crate::transfer::{Performed, Progress, Queued, Slot, Transfer, next_step, perform};

/// The memory of a transfer.
#[derive(Debug)]
pub enum Buffers {
    /// Filled by a read.
    Read(Vec<FrameMut>),
    /// Given to a write.
    Write(Vec<Frame>),
}

impl Buffers {
    pub(crate) fn len_bytes(&self) -> usize {
        FRAME_BYTES
            * match self {
                Self::Read(frames) => frames.len(),
                Self::Write(frames) => frames.len(),
            }
    }
}

/// A transfer that has ended.
#[derive(Debug)]
pub struct Completion {
    /// What the caller called it.
    pub user_data: u64,
    /// Its memory. After a failed read the bytes are unspecified.
    pub buffers: Buffers,
    /// Whether all of it was done; of a durable write, whether it is durable.
    pub result: io::Result<()>,
}

/// One thread's way to a disk. Must stay on the thread that made it.
pub struct Ring {
    disk: Arc<FileDisk>,
    engine: Engine,
    notices: Vec<String>,
    /// The kernel ties the ring to one thread.
    not_send: PhantomData<*const ()>,
}

enum Engine {
    Uring(Box<Uring>),
    Blocking {
        queued: VecDeque<Queued>,
        done: VecDeque<Completion>,
        /// What was refused, and when it is tried again.
        later: Vec<(Instant, Queued)>,
    },
}

impl Ring {
    /// A ring on the calling thread, with at most `entries` transfers in the kernel at once; more
    /// wait in the ring. Where io_uring is refused the transfers block (see [`Ring::notices`]).
    pub fn new(disk: Arc<FileDisk>, entries: u32) -> Self {
        match Uring::new(&disk, entries) {
            Ok(uring) => Self {
                disk,
                engine: Engine::Uring(Box::new(uring)),
                notices: Vec::new(),
                not_send: PhantomData,
            },
            Err(error) => {
                let mut ring = Self::blocking(disk);
                ring.notices.push(format!(
                    "the kernel refuses io_uring ({error}): each disk transfer blocks its \
                     front-end thread, which costs speed (allow io_uring_setup in the sandbox, or \
                     use Linux 5.10 or newer)"
                ));
                ring
            }
        }
    }

    /// A ring that does its transfers one after the other, without io_uring.
    pub fn blocking(disk: Arc<FileDisk>) -> Self {
        let (queued, done, later) = (VecDeque::new(), VecDeque::new(), Vec::new());
        let engine = Engine::Blocking { queued, done, later };
        Self { disk, engine, notices: Vec::new(), not_send: PhantomData }
    }

    /// What an administrator should know about this ring, one sentence each; mostly nothing.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// A descriptor that signals (edge-triggered) that something has ended; `None` where all has
    /// ended when [`Ring::submit`] returns.
    pub fn poll_fd(&self) -> Option<RawFd> {
        match &self.engine {
            Engine::Uring(uring) => Some(uring.event.as_raw_fd()),
            Engine::Blocking { .. } => None,
        }
    }

    /// When to call [`Ring::complete`] although nothing has ended: a write that the device refused
    /// is tried again then.
    pub fn next_retry(&self) -> Option<Duration> {
        let next = match &self.engine {
            Engine::Uring(uring) => uring.later.iter().map(|(at, _)| *at).min(),
            Engine::Blocking { later, .. } => later.iter().map(|(at, _)| *at).min(),
        };
        next.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// From here on a write that the device refuses has failed, of all rings on the disk: the owner
    /// stops.
    pub fn end_retries(&self) {
        self.disk.end_retries();
    }

    /// Whether transfers have ended that the descriptor does not tell of.
    pub fn has_ended(&self) -> bool {
        match &self.engine {
            Engine::Uring(_) => false,
            Engine::Blocking { queued, done, .. } => !queued.is_empty() || !done.is_empty(),
        }
    }

    /// How many transfers were queued and are not collected yet.
    pub fn in_flight(&self) -> usize {
        match &self.engine {
            Engine::Uring(uring) => uring.slots.len() - uring.free.len(),
            Engine::Blocking { queued, done, later } => queued.len() + done.len() + later.len(),
        }
    }

    /// Queues a read of `frames` from `offset_bytes` on.
    ///
    /// # Errors
    /// If the range is not inside the disk; the frames are dropped then.
    pub fn read(
        &mut self,
        user_data: u64,
        offset_bytes: u64,
        frames: Vec<FrameMut>,
    ) -> io::Result<()> {
        self.disk.check_range(offset_bytes, frames.len())?;
        self.queue(Queued {
            user_data,
            offset_bytes,
            buffers: Buffers::Read(frames),
            persist: Persist::Nothing,
            refused: 0,
            patience: self.disk.retries().patience(),
        });
        Ok(())
    }

    /// Queues a write of `frames` (perhaps none) from `offset_bytes` on, which ends when what
    /// `persist` says is on the medium.
    ///
    /// # Errors
    /// If the range is not inside the disk.
    pub fn write(
        &mut self,
        user_data: u64,
        offset_bytes: u64,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        self.disk.check_range(offset_bytes, frames.len())?;
        // The blocking engine goes through `Disk`, which does this itself.
        if matches!(self.engine, Engine::Uring(_)) {
            let len_bytes = (frames.len() * FRAME_BYTES) as u64;
            self.disk.units().before_write(offset_bytes, len_bytes);
        }
        let buffers = Buffers::Write(frames);
        let patience = self.disk.retries().patience();
        self.queue(Queued { user_data, offset_bytes, buffers, persist, refused: 0, patience });
        Ok(())
    }

    fn queue(&mut self, transfer: Queued) {
        match &mut self.engine {
            Engine::Uring(uring) => uring.queue(transfer),
            Engine::Blocking { queued, later, .. } => {
                match self.disk.pause_before(transfer.persist) {
                    Some(pause) => later.push((Instant::now() + pause, transfer)),
                    None => queued.push_back(transfer),
                }
            }
        }
    }

    /// Starts what was queued.
    ///
    /// # Errors
    /// If the kernel refuses the call itself; what was queued stays queued.
    pub fn submit(&mut self) -> io::Result<()> {
        match &mut self.engine {
            Engine::Uring(uring) => uring.submit(),
            Engine::Blocking { queued, done, later } => {
                for transfer in queued.drain(..) {
                    match perform(&self.disk, transfer) {
                        Performed::Ended(completion) => done.push_back(completion),
                        Performed::Refused(at, transfer) => later.push((at, transfer)),
                    }
                }
                Ok(())
            }
        }
    }

    /// Adds to `out` what has ended. Costs no system call while nothing has.
    ///
    /// # Errors
    /// If the kernel refuses the call itself.
    pub fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        match &mut self.engine {
            Engine::Uring(uring) => uring.complete(out),
            Engine::Blocking { done, queued, later } => {
                out.extend(done.drain(..));
                let now = Instant::now();
                queued.extend(later.extract_if(.., |(at, _)| *at <= now).map(|(_, again)| again));
                if queued.is_empty() { Ok(()) } else { self.submit() }
            }
        }
    }
}

struct Uring {
    disk: Arc<FileDisk>,
    uring: IoUring,
    event: OwnedFd,
    fd: RawFd,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots whose next step is to be given to the kernel.
    ready: VecDeque<u32>,
    /// Slots whose transfer was refused, and when it is tried again.
    later: Vec<(Instant, u32)>,
    /// Steps that are in the kernel.
    in_kernel: u32,
    entries: u32,
}

impl Uring {
    fn new(disk: &Arc<FileDisk>, entries: u32) -> io::Result<Self> {
        let uring = build(entries)?;
        // SAFETY: no memory is passed; the result is checked before it is used.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if event < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made, and nobody else has it.
        let event = unsafe { OwnedFd::from_raw_fd(event) };
        uring.submitter().register_eventfd(event.as_raw_fd())?;
        uring.submitter().register_files(&[disk.raw_fd()])?;
        Ok(Self {
            disk: disk.clone(),
            uring,
            event,
            fd: disk.raw_fd(),
            slots: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            later: Vec::new(),
            in_kernel: 0,
            entries,
        })
    }

    fn queue(&mut self, queued: Queued) {
        let pause = self.disk.pause_before(queued.persist);
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        // A flag on the write covers that write alone, and there is room for it on one call only.
        let one_call = (1..=IOVECS_MAX * FRAME_BYTES).contains(&queued.buffers.len_bytes());
        let dsync = queued.persist == Persist::Itself && one_call;
        self.slots[index as usize].transfer = Some(Transfer {
            user_data: queued.user_data,
            offset_bytes: queued.offset_bytes,
            done_bytes: 0,
            dsync,
            sync_after: queued.persist != Persist::Nothing && !dsync,
            flushes_all: queued.persist == Persist::All,
            refused: queued.refused,
            patience: queued.patience,
            flushes_failed: self.disk.flushes().failed(),
            buffers: queued.buffers,
        });
        match pause {
            Some(pause) => self.later.push((Instant::now() + pause, index)),
            None => self.ready.push_back(index),
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        // More than one turn only when the submission queue is full; what is in the kernel is
        // bounded by the completion queue's size, so that this can't overflow.
        while !self.ready.is_empty() && self.in_kernel < self.entries {
            self.push_ready();
            self.enter()?;
        }
        Ok(())
    }

    fn push_ready(&mut self) {
        let mut submission = self.uring.submission();
        while self.in_kernel < self.entries && !submission.is_full() {
            let Some(index) = self.ready.pop_front() else { break };
            let entry = next_step(&mut self.slots[index as usize]).user_data(u64::from(index));
            // SAFETY: the vectors and the frames that the entry names belong to the slot, whose
            // transfer is neither moved out nor changed before the entry's completion was taken
            // from the queue; `Drop` waits for that too.
            if unsafe { submission.push(&entry) }.is_err() {
                self.ready.push_front(index);
                break;
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

    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        let submission = self.uring.submission();
        if submission.taskrun() || submission.cq_overflow() || !submission.is_empty() {
            drop(submission);
            self.enter()?;
        } else {
            drop(submission);
        }
        loop {
            let Some((index, result)) =
                self.uring.completion().next().map(|entry| (entry.user_data(), entry.result()))
            else {
                break;
            };
            self.in_kernel -= 1;
            self.step_ended(index as u32, result, out);
        }
        if !self.later.is_empty() {
            let now = Instant::now();
            self.ready
                .extend(self.later.extract_if(.., |(at, _)| *at <= now).map(|(_, slot)| slot));
        }
        self.submit()
    }

    /// Goes on with a transfer, or ends it.
    fn step_ended(&mut self, index: u32, result: i32, out: &mut Vec<Completion>) {
        let slot = &mut self.slots[index as usize];
        let Some(transfer) = &mut slot.transfer else { return };
        #[cfg(test)]
        let result = match &transfer.buffers {
            Buffers::Write(_) => transfer.fault(self.disk.retries()).map_or(result, |fault| -fault),
            Buffers::Read(_) => self.disk.retries().read_fault().map_or(result, |fault| -fault),
        };
        let result = match transfer.ended(result, self.disk.flushes()) {
            Progress::More => return self.ready.push_back(index),
            Progress::Ended(result) => result,
        };
        let refused = (transfer.refused, transfer.patience);
        if (result.is_ok() || transfer.may_begin_again())
            && let Some(pause) = self.disk.retries().ended(&transfer.buffers, &result, refused)
        {
            transfer.begin_again(self.disk.flushes());
            return self.later.push((Instant::now() + pause, index));
        }
        if let Some(Transfer { user_data, buffers, .. }) = slot.transfer.take() {
            out.push(Completion { user_data, buffers, result });
            self.free.push(index);
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

impl Drop for Uring {
    fn drop(&mut self) {
        self.ready.clear();
        while self.in_kernel > 0 {
            match self.uring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if is_transient(&error) => {}
                Err(_) => {
                    // The kernel may still write to this memory: it must never be used again.
                    std::mem::forget(std::mem::take(&mut self.slots));
                    return;
                }
            }
            self.in_kernel -= (self.uring.completion().count() as u32).min(self.in_kernel);
        }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match &self.engine {
            Engine::Uring(uring) => format!("io_uring on descriptor {}", uring.fd),
            Engine::Blocking { .. } => "blocking".into(),
        };
        f.debug_struct("Ring").field("kind", &kind).field("in_flight", &self.in_flight()).finish()
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
