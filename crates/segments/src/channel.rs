//! One thread's way to the medium.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use block::{Frame, FrameMut};
use sys::{Completion, Persist, Ring};

/// One thread's requests, and their completions. Must stay on the thread that made it.
///
/// What was queued is started by [`Channel::submit`], and what has ended is collected by
/// [`Channel::complete`], in any order. Neither waits. The thread sleeps in a poller, which hears
/// of what has ended ([`Channel::poll_fds`]).
pub trait Channel {
    /// Queues a read of `frames` from `offset_bytes` on.
    ///
    /// # Errors
    /// If the range is not inside the medium; the frames are dropped then.
    fn read(&mut self, user_data: u64, offset_bytes: u64, frames: Vec<FrameMut>) -> io::Result<()>;

    /// Queues a write of `frames` (perhaps none) from `offset_bytes` on, which ends when what
    /// `persist` says is on the medium.
    ///
    /// # Errors
    /// If the range is not inside the medium.
    fn write(
        &mut self,
        user_data: u64,
        offset_bytes: u64,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()>;

    /// Whether so many frames from `offset_bytes` on are inside the medium.
    ///
    /// # Errors
    /// If they are not.
    fn check_range(&self, offset_bytes: u64, frame_count: usize) -> io::Result<()>;

    /// Starts what was queued.
    ///
    /// # Errors
    /// If the kernel refuses the call itself; what was queued stays queued.
    fn submit(&mut self) -> io::Result<()>;

    /// Adds to `out` what has ended. Costs no system call while nothing has.
    ///
    /// # Errors
    /// If the kernel refuses the call itself.
    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()>;

    /// The descriptors that signal (edge-triggered) that something has ended, or is to be gone on
    /// with.
    fn poll_fds(&self) -> Vec<RawFd>;

    /// When to call [`Channel::complete`] although no descriptor has signalled.
    fn next_retry(&self) -> Option<Duration>;

    /// Whether requests have ended that no descriptor tells of.
    fn has_ended(&self) -> bool;

    /// How many requests were queued and are not collected yet.
    fn in_flight(&self) -> usize;

    /// From here on a write that the medium refuses has failed, of all channels: the owner stops.
    fn end_retries(&self);

    /// What an administrator should know about it, one sentence each; mostly nothing.
    fn notices(&self) -> Vec<String>;
}

impl Channel for Ring {
    fn read(&mut self, user_data: u64, offset_bytes: u64, frames: Vec<FrameMut>) -> io::Result<()> {
        Ring::read(self, user_data, offset_bytes, frames)
    }

    fn write(
        &mut self,
        user_data: u64,
        offset_bytes: u64,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        Ring::write(self, user_data, offset_bytes, frames, persist)
    }

    fn check_range(&self, offset_bytes: u64, frame_count: usize) -> io::Result<()> {
        Ring::check_range(self, offset_bytes, frame_count)
    }

    fn submit(&mut self) -> io::Result<()> {
        Ring::submit(self)
    }

    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        Ring::complete(self, out)
    }

    fn poll_fds(&self) -> Vec<RawFd> {
        self.poll_fd().into_iter().collect()
    }

    fn next_retry(&self) -> Option<Duration> {
        Ring::next_retry(self)
    }

    fn has_ended(&self) -> bool {
        Ring::has_ended(self)
    }

    fn in_flight(&self) -> usize {
        Ring::in_flight(self)
    }

    fn end_retries(&self) {
        Ring::end_retries(self);
    }

    fn notices(&self) -> Vec<String> {
        Ring::notices(self).to_vec()
    }
}
