//! One thread's way to the medium.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use block::{Frame, FrameMut};
use format::Place;
use sys::{Completion, Persist};

/// One thread's requests, and their completions. Must stay on the thread that made it.
///
/// What was queued is started by [`Channel::submit`], and what has ended is collected by
/// [`Channel::complete`], in any order. Neither waits. The thread sleeps in a poller, which hears
/// of what has ended ([`Channel::poll_fds`]); one without a poller sleeps in [`Channel::wait`].
///
/// Places are as those of [`crate::Segments`]: whole blocks, inside of a segment.
pub trait Channel {
    /// Queues a read of `frames` from `place` on.
    ///
    /// # Errors
    /// If the medium has no such place (any more); the frames are dropped then.
    fn read(&mut self, user_data: u64, place: Place, frames: Vec<FrameMut>) -> io::Result<()>;

    /// Queues an append of `frames` (perhaps none, then `place` says nothing) at `place`, which
    /// ends when what `persist` says is on the medium.
    ///
    /// # Errors
    /// If the medium has no such place (any more).
    fn append(
        &mut self,
        user_data: u64,
        place: Place,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()>;

    /// Whether so many frames from `place` on are there.
    ///
    /// # Errors
    /// If they are not.
    fn check(&self, place: Place, frame_count: usize) -> io::Result<()>;

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

    /// Waits until something that was submitted has ended, or is to be gone on with; returns at
    /// once where nothing is under way. For who may wait, such as recovery.
    ///
    /// # Errors
    /// If the kernel refuses the call itself, or nobody can wait for this medium.
    fn wait(&mut self) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "its requests end when others say so"))
    }

    /// The descriptors that signal (edge-triggered) that something has ended, or is to be gone on
    /// with.
    fn poll_fds(&self) -> Vec<RawFd>;

    /// When to call [`Channel::complete`] although no descriptor has signalled.
    fn next_retry(&self) -> Option<Duration>;

    /// Whether requests have ended without a signal of a descriptor.
    fn has_ended(&self) -> bool;

    /// How many requests were queued and are not collected yet.
    fn in_flight(&self) -> usize;

    /// From here on a write that the medium refuses has failed, of all channels: the owner stops.
    fn end_retries(&self);

    /// What an administrator should know about it, one sentence each; mostly nothing.
    fn notices(&self) -> Vec<String>;
}
