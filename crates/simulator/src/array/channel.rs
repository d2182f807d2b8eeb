//! A front end's channel to the simulated disk.
//!
//! What the front end queues and submits proceeds only by [`Way::step`], one step of one request at
//! a time, in any order: requests end in any order, and as late as the world decides. Below are the
//! same [`Transfers`] that a ring has, with their retries and flushes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use block::{BLOCK_BYTES, Frame, FrameMut};
use format::Place;
use segments::{Buffers, Channel, Completion, Persist, Shared};
use sys::Transfers;

use crate::disk::SimDisk;
use crate::rng::Rng;

/// The kind of a request.
enum Asked {
    Read(Vec<FrameMut>),
    Append(Vec<Frame>, Persist),
}

/// The requests of one front end in flight.
pub struct Way {
    disk: Arc<SimDisk>,
    segments: Shared,
    /// Queued and not submitted.
    queued: RefCell<VecDeque<(u64, u64, Asked)>>,
    transfers: RefCell<Transfers>,
    ended: RefCell<Vec<Completion>>,
    /// Whether the front end has not yet been notified that something has ended.
    signalled: Cell<bool>,
    /// How often requests were submitted to the kernel.
    submits: Cell<u64>,
}

impl Way {
    /// Creates a channel to the segments of a store on this disk.
    pub fn new(disk: Arc<SimDisk>, segments: Shared) -> Rc<Self> {
        let (queued, transfers, ended, signalled, submits) = Default::default();
        Rc::new(Self { disk, segments, queued, transfers, ended, signalled, submits })
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.transfers.borrow().in_flight()
    }

    /// Returns how often requests were submitted, one or several at once: each is a system call.
    pub fn submits(&self) -> u64 {
        self.submits.get()
    }

    /// Does one step of one request, chosen randomly.
    pub fn step(&self, rng: &mut Rng) {
        let transfers = &mut *self.transfers.borrow_mut();
        let mut out = Vec::new();
        if transfers.ready_count() == 0 || rng.chance(50) {
            transfers.wake_all(self.disk.retrying(), &mut out);
        }
        let ready = transfers.ready_count() as u64;
        if ready > 0 {
            transfers.step(self.disk.retrying(), rng.below(ready) as usize, &mut out);
        }
        if !out.is_empty() {
            self.signalled.set(true);
            let ended = &mut *self.ended.borrow_mut();
            for completion in out {
                ended.insert(rng.below(ended.len() as u64 + 1) as usize, completion);
            }
        }
    }

    /// Returns whether a poller has something to report.
    pub fn has_signal(&self) -> bool {
        self.signalled.get()
    }

    /// Returns whether something has ended since the last call, as a poller would report.
    pub fn take_signal(&self) -> bool {
        self.signalled.take()
    }

    /// Returns the offset of a place on the disk. A request that leaves its segment would reach
    /// other data.
    fn offset_bytes(&self, place: Place, frame_count: usize) -> u64 {
        let start = self.segments.locate(Place { offset_units: 0, ..place });
        let at = self.segments.locate(place);
        let next = self.segments.locate(Place { segment: place.segment + 1, offset_units: 0 });
        let end = at + frame_count as u64 * BLOCK_BYTES;
        assert!(
            at >= start && end <= next,
            "{frame_count} frames at {place:?} do not fit in the segment"
        );
        at
    }

    fn queue(
        &self,
        name: u64,
        offset_bytes: u64,
        frame_count: usize,
        asked: Asked,
    ) -> io::Result<()> {
        self.disk.retrying().check_range(offset_bytes, frame_count)?;
        self.queued.borrow_mut().push_back((name, offset_bytes, asked));
        Ok(())
    }
}

/// The front end's end of a [`Way`].
pub struct SimChannel(pub Rc<Way>);

impl Channel for SimChannel {
    fn read(&mut self, user_data: u64, place: Place, frames: Vec<FrameMut>) -> io::Result<()> {
        let at = self.0.offset_bytes(place, frames.len());
        self.0.queue(user_data, at, frames.len(), Asked::Read(frames))
    }

    fn append(
        &mut self,
        user_data: u64,
        place: Place,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        let at = if frames.is_empty() { 0 } else { self.0.offset_bytes(place, frames.len()) };
        self.0.queue(user_data, at, frames.len(), Asked::Append(frames, persist))
    }

    fn check(&self, place: Place, frame_count: usize) -> io::Result<()> {
        let at = self.0.offset_bytes(place, frame_count);
        self.0.disk.retrying().check_range(at, frame_count)
    }

    fn submit(&mut self) -> io::Result<()> {
        let transfers = &mut *self.0.transfers.borrow_mut();
        let is_call = !self.0.queued.borrow().is_empty();
        self.0.submits.set(self.0.submits.get() + u64::from(is_call));
        for (name, at, asked) in self.0.queued.borrow_mut().drain(..) {
            let disk = self.0.disk.retrying();
            let begun = match asked {
                Asked::Read(frames) => transfers.read(disk, name, at, frames),
                Asked::Append(frames, persist) => transfers.write(disk, name, at, frames, persist),
            };
            if let Err(result) = begun {
                let buffers = Buffers::Read(Vec::new());
                let completion = Completion { user_data: name, buffers, result: Err(result) };
                self.0.ended.borrow_mut().push(completion);
            }
        }
        Ok(())
    }

    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        out.append(&mut self.0.ended.borrow_mut());
        Ok(())
    }

    fn poll_fds(&self) -> Vec<RawFd> {
        Vec::new()
    }

    fn next_retry(&self) -> Option<Duration> {
        None
    }

    fn has_ended(&self) -> bool {
        !self.0.ended.borrow().is_empty()
    }

    fn in_flight(&self) -> usize {
        let waiting = self.0.queued.borrow().len() + self.0.ended.borrow().len();
        waiting + self.0.transfers.borrow().in_flight()
    }

    fn end_retries(&self) {}

    fn notices(&self) -> Vec<String> {
        Vec::new()
    }
}
