//! Non-blocking access to the medium, for one thread.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use block::{Frame, FrameMut};
use format::Place;
use sys::{Completion, Persist};

/// One thread's requests, and their completions. It must stay on the thread that created it.
///
/// [`Channel::submit`] starts what was queued, and [`Channel::complete`] collects completions, in
/// any order. Neither blocks. The thread sleeps in a poller that watches [`Channel::poll_fds`]; a
/// thread without a poller sleeps in [`Channel::wait`].
///
/// Places are those of [`crate::Segments`]: whole blocks within a segment.
pub trait Channel {
    /// Queues a read of `frames` from `place` on.
    ///
    /// # Errors
    /// If the medium does not have this place (any longer); the frames are then dropped.
    fn read(&mut self, user_data: u64, place: Place, frames: Vec<FrameMut>) -> io::Result<()>;

    /// Queues an append of `frames` (if there are none, `place` is ignored) at `place`. It
    /// completes when what `persist` requests is durable.
    ///
    /// # Errors
    /// If the medium does not have this place (any longer).
    fn append(
        &mut self,
        user_data: u64,
        place: Place,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()>;

    /// Checks that `frame_count` frames from `place` on exist.
    ///
    /// # Errors
    /// If they don't.
    fn check(&self, place: Place, frame_count: usize) -> io::Result<()>;

    /// Starts what was queued.
    ///
    /// # Errors
    /// If the kernel refuses the call itself; what was queued stays queued.
    fn submit(&mut self) -> io::Result<()>;

    /// Adds completions to `out`. Costs no system call if there are none.
    ///
    /// # Errors
    /// If the kernel refuses the call itself.
    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()>;

    /// Waits until a submitted request completes or can continue; returns at once if none is in
    /// flight. For callers that may block, such as recovery.
    ///
    /// # Errors
    /// If the kernel refuses the call itself, or the medium does not support waiting.
    fn wait(&mut self) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this medium does not support waiting"))
    }

    /// Returns the descriptors that signal (edge-triggered) that a request has completed or can
    /// continue.
    fn poll_fds(&self) -> Vec<RawFd>;

    /// Returns when to call [`Channel::complete`] even if no descriptor has signalled.
    fn next_retry(&self) -> Option<Duration>;

    /// Returns whether requests have completed without a signal of a descriptor.
    fn has_ended(&self) -> bool;

    /// Returns how many requests were queued and not yet collected.
    fn in_flight(&self) -> usize;

    /// Ends retries on all channels, because the owner is stopping: from here on a refused write
    /// fails.
    fn end_retries(&self);

    /// Returns messages for the administrator, one sentence each; usually none.
    fn notices(&self) -> Vec<String>;
}
