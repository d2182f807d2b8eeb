//! A medium that adds a given latency to each request: for tests and benchmarks.
//!
//! It imitates a distant medium. A request is delayed before it is started, and all delayed
//! requests wait in parallel, as on a network: 64 that were queued together take one latency, not
//! 64. A channel waits with a timer in its poller; a caller that may block sleeps.
//!
//! Invariants:
//! 1. A request is passed on once, after its latency, in the order in which it was queued.
//! 2. A request that the medium below refuses at once is refused at once, and never delayed.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use block::{Frame, FrameMut};
use format::Place;
use sys::{Clock, Completion, Disk, Persist, Timer};

use crate::channel::Channel;

/// A delayed request.
enum Held {
    Read { user_data: u64, place: Place, frames: Vec<FrameMut> },
    Append { user_data: u64, place: Place, frames: Vec<Frame>, persist: Persist },
}

/// A channel that delays its requests.
pub struct SlowChannel {
    below: Box<dyn Channel>,
    latency: Duration,
    clock: Clock,
    timer: Timer,
    /// The expiry of the timer.
    set_to: Option<Duration>,
    /// Delayed requests and when to pass them on, in order of time.
    held: VecDeque<(Duration, Held)>,
}

impl SlowChannel {
    /// Delays requests through `below` by `latency`.
    ///
    /// # Errors
    /// If the system has no more timers.
    pub fn new(below: Box<dyn Channel>, latency: Duration) -> io::Result<Self> {
        let (clock, timer, held) = (Clock::start(), Timer::new()?, VecDeque::new());
        Ok(Self { below, latency, clock, timer, set_to: None, held })
    }

    /// Returns how many of the requests in flight are delayed.
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    fn hold(&mut self, request: Held) {
        let due = self.clock.now() + self.latency;
        debug_assert!(self.held.back().is_none_or(|(before, _)| *before <= due));
        self.held.push_back((due, request));
    }

    /// Passes on requests that have waited long enough, and sets the timer to the next.
    fn pass_on(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        while self.held.front().is_some_and(|(due, _)| *due <= now) {
            let Some((_, request)) = self.held.pop_front() else { break };
            match request {
                Held::Read { user_data, place, frames } => {
                    self.below.read(user_data, place, frames)?;
                }
                Held::Append { user_data, place, frames, persist } => {
                    self.below.append(user_data, place, frames, persist)?;
                }
            }
        }
        if let Some(due) = self.held.front().map(|(due, _)| *due)
            && self.set_to != Some(due)
        {
            self.timer.set(due.saturating_sub(self.clock.now()))?;
            self.set_to = Some(due);
        }
        Ok(())
    }
}

impl Channel for SlowChannel {
    fn read(&mut self, user_data: u64, place: Place, frames: Vec<FrameMut>) -> io::Result<()> {
        self.check(place, frames.len())?;
        self.hold(Held::Read { user_data, place, frames });
        Ok(())
    }

    fn append(
        &mut self,
        user_data: u64,
        place: Place,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        self.check(place, frames.len())?;
        self.hold(Held::Append { user_data, place, frames, persist });
        Ok(())
    }

    fn check(&self, place: Place, frame_count: usize) -> io::Result<()> {
        self.below.check(place, frame_count)
    }

    fn submit(&mut self) -> io::Result<()> {
        self.pass_on()?;
        self.below.submit()
    }

    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        self.submit()?;
        self.below.complete(out)
    }

    fn wait(&mut self) -> io::Result<()> {
        match self.held.front() {
            Some((due, _)) if self.below.in_flight() == 0 => {
                std::thread::sleep(due.saturating_sub(self.clock.now()));
                Ok(())
            }
            _ => self.below.wait(),
        }
    }

    fn poll_fds(&self) -> Vec<RawFd> {
        let mut fds = self.below.poll_fds();
        fds.push(self.timer.poll_fd());
        fds
    }

    fn next_retry(&self) -> Option<Duration> {
        self.below.next_retry()
    }

    fn has_ended(&self) -> bool {
        self.below.has_ended()
    }

    fn in_flight(&self) -> usize {
        self.below.in_flight() + self.held.len()
    }

    fn end_retries(&self) {
        self.below.end_retries();
    }

    fn notices(&self) -> Vec<String> {
        self.below.notices()
    }
}

impl fmt::Debug for SlowChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SlowChannel");
        shown.field("latency", &self.latency).field("held", &self.held.len());
        shown.finish_non_exhaustive()
    }
}

/// A disk that sleeps before each request, for callers that may block.
pub struct SlowDisk {
    below: Arc<dyn Disk>,
    latency: Duration,
}

impl SlowDisk {
    /// Delays requests to `below` by `latency`.
    pub fn new(below: Arc<dyn Disk>, latency: Duration) -> Self {
        Self { below, latency }
    }

    fn wait(&self) -> &dyn Disk {
        std::thread::sleep(self.latency);
        &*self.below
    }
}

impl Disk for SlowDisk {
    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn grow(&self, len_bytes: u64) -> io::Result<()> {
        self.wait().grow(len_bytes)
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.wait().read(offset_bytes, frames)
    }

    fn read_patiently(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.wait().read_patiently(offset_bytes, frames)
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.wait().write(offset_bytes, frames)
    }

    fn flush(&self) -> io::Result<()> {
        self.wait().flush()
    }

    fn discard(&self, offset_bytes: u64, len_bytes: u64) -> io::Result<bool> {
        self.wait().discard(offset_bytes, len_bytes)
    }

    fn flush_failures(&self) -> u64 {
        self.below.flush_failures()
    }

    /// The writes of `write` go through this disk and sleep there; the flush sleeps here.
    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        self.wait().write_and_flush(write)
    }

    fn has_given_up(&self) -> bool {
        self.below.has_given_up()
    }

    fn is_refusing(&self) -> bool {
        self.below.is_refusing()
    }

    fn set_redundant(&self, redundant: bool) {
        self.below.set_redundant(redundant);
    }

    fn give_way(&self) -> bool {
        self.below.give_way()
    }

    fn retry_count(&self) -> u64 {
        self.below.retry_count()
    }

    fn counts(&self) -> sys::DiskSnapshot {
        self.below.counts()
    }

    fn write_durable(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.wait().write_durable(offset_bytes, frames)
    }

    fn write_as(&self, offset_bytes: u64, frames: &[Frame], persist: Persist) -> io::Result<()> {
        self.wait().write_as(offset_bytes, frames, persist)
    }
}

#[cfg(test)]
#[path = "slow_tests.rs"]
mod tests;
