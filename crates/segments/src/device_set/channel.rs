//! One thread's non-blocking access to several devices: a ring for each, and the handling of
//! devices that fail or are late.
//!
//! Invariants:
//! 1. An append completes when each device that it went to has it, or is out in durable labels.
//! 2. Memory that the kernel may access stays with its ring until that request has completed, even
//!    if another device has completed it long before.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use block::{Frame, FrameMut};
use format::Place;
use smallvec::SmallVec;
use sys::{Buffers, Completion, Event, Persist, Ring};

use super::access::{LOOKS_MAX, no_member};
use super::device::{Device, Slot};
use super::lanes::{Lane, Lanes, Line, Request, Requests, name_of};
use super::members::{Members, Slots};
use super::placement::{At, Held, Share, are_known};
use crate::channel::Channel;

/// How often to check for late devices.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// Opens a line to a device, if it is of a kind that has lines.
type Lay = Box<dyn Fn(&Device) -> Option<Box<dyn Line>>>;

/// One thread's channel to the devices of a pool.
pub(super) struct SetChannel {
    pub(super) members: Arc<Members>,
    lay: Lay,
    event: Arc<Event>,
    /// The members when they were last looked at, and their generation.
    pub(super) slots: Slots,
    generation: u64,
    /// Never shrinks, because requests refer to lanes by their index.
    pub(super) lanes: Vec<Lane>,
    pub(super) requests: Requests,
    done: Vec<Completion>,
    ended: Vec<Completion>,
    pub(super) looked: Instant,
}

impl SetChannel {
    pub(super) fn new(members: Arc<Members>, entries: u32) -> io::Result<Self> {
        let has_no_file =
            |slot: &Arc<Slot>| slot.device.as_ref().is_some_and(|device| device.file.is_none());
        if members.slots().iter().any(has_no_file) {
            let text = "these disks do not support channels";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let event = Arc::new(Event::new()?);
        let signal = event.clone();
        let lay = move |device: &Device| -> Option<Box<dyn Line>> {
            let file = device.file.clone()?;
            Some(Box::new(Ring::signalling(file, entries, &signal)))
        };
        Ok(Self::over(members, event, Box::new(lay)))
    }

    fn over(members: Arc<Members>, event: Arc<Event>, lay: Lay) -> Self {
        let (slots, generation) = (members.slots(), 0);
        let mut channel = Self {
            members,
            lay,
            event,
            slots,
            generation,
            lanes: Vec::new(),
            requests: Requests::default(),
            done: Vec::new(),
            ended: Vec::new(),
            looked: Instant::now(),
        };
        channel.look_at_members();
        channel
    }

    /// Updates the lanes if devices were added or removed.
    pub(super) fn look_at_members(&mut self) {
        let generation = self.members.generation();
        if generation == self.generation {
            return;
        }
        (self.generation, self.slots) = (generation, self.members.slots());
        for slot in self.slots.clone().iter() {
            if self.lane_of(slot).is_some() {
                continue;
            }
            let line = slot.device.as_ref().and_then(|device| (self.lay)(device));
            let Some(line) = line else { continue };
            let lane = Lane::new(slot.clone(), line);
            match self.lanes.iter().position(|lane| lane.is_idle_of_none(&self.slots)) {
                Some(idle) => self.lanes[idle] = lane,
                None => self.lanes.push(lane),
            }
        }
        assert!(self.lanes.len() <= Lanes::BITS as usize, "a lane has a bit");
    }

    /// Returns each device's share of an append, for the current members.
    fn shares(&mut self, place: Place, frames: &[Frame]) -> io::Result<Vec<Share>> {
        for _ in 0..LOOKS_MAX {
            self.look_at_members();
            let shares = self.members.placement().shares(place, frames, &self.slots)?;
            if are_known(&shares, &self.slots) {
                return Ok(shares);
            }
            std::thread::yield_now();
        }
        Err(no_member())
    }

    pub(super) fn lane_of(&self, slot: &Arc<Slot>) -> Option<usize> {
        self.lanes.iter().position(|lane| Arc::ptr_eq(&lane.slot, slot))
    }

    pub(super) fn append_ended(&mut self, index: u32, bit: Lanes, result: io::Result<()>) {
        let Some(Request::Append { under_way, owed, ended_well, enough, taken, error, .. }) =
            self.requests.get(index)
        else {
            return;
        };
        *under_way &= !bit;
        if *owed & bit == 0 {
            return;
        }
        *owed &= !bit;
        match result {
            Ok(()) => {
                *ended_well += 1;
                if *ended_well == *enough {
                    *taken = Some(Instant::now());
                }
            }
            Err(failed) => {
                let slot = &self.lanes[bit.trailing_zeros() as usize].slot;
                // Only the error of the last device is the pool's.
                if let Err(last) = self.members.fail(slot, failed) {
                    error.get_or_insert(last);
                }
            }
        }
        self.answer_append(index);
    }

    /// Completes an append that no longer waits for a lane.
    pub(super) fn answer_append(&mut self, index: u32) {
        if let Some(Request::Append { user_data, owed: 0, frames, error, is_answered, .. }) =
            self.requests.get(index)
            && !*is_answered
        {
            *is_answered = true;
            let buffers = Buffers::Write(std::mem::take(frames));
            let result = error.take().map_or(Ok(()), Err);
            let user_data = *user_data;
            self.answer(Completion { user_data, buffers, result });
        }
    }

    pub(super) fn answer(&mut self, completion: Completion) {
        self.requests.waiting -= 1;
        self.done.push(completion);
    }
}

impl Channel for SetChannel {
    fn read(&mut self, user_data: u64, place: Place, frames: Vec<FrameMut>) -> io::Result<()> {
        self.begin_read(user_data, place, frames)
    }

    fn append(
        &mut self,
        user_data: u64,
        place: Place,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        self.members.begin()?;
        let shares = self.shares(place, &frames)?;
        let index = self.requests.keep(Request::Append {
            user_data,
            under_way: 0,
            owed: 0,
            ended_well: 0,
            enough: self.members.placement().enough_of(shares.len()),
            taken: None,
            frames,
            error: None,
            is_answered: false,
        });
        let (mut asked, mut refused) = (0, None);
        let slots = self.slots.clone();
        for Share { at: At { position, offset_bytes }, frames } in shares {
            let slot = &slots[position];
            if slot.written().is_none() {
                continue;
            }
            let lane = self.lane_of(slot);
            debug_assert!(
                lane.is_none_or(|lane| asked & (1 << lane) == 0),
                "one share for each device"
            );
            let written = match lane {
                Some(lane) => {
                    let name = name_of(index, lane, (0, 0));
                    self.lanes[lane].write(name, offset_bytes, frames, persist)
                }
                None => Err(io::Error::other("the device has no channel")),
            };
            match written {
                Ok(()) => asked |= lane.map_or(0, |lane| 1 << lane),
                Err(error) => refused = self.members.fail(slot, error).err().or(refused),
            }
        }
        if let Some(Request::Append { under_way, owed, error, .. }) = self.requests.get(index) {
            (*under_way, *owed, *error) = (asked, asked, refused);
        }
        if asked != 0 {
            return Ok(());
        }
        let error = match self.requests.get(index) {
            Some(Request::Append { error, .. }) => error.take(),
            _ => None,
        };
        let error = error.unwrap_or_else(|| io::Error::other("no device is in"));
        self.requests.take_back(index);
        Err(error)
    }

    fn check(&self, place: Place, frame_count: usize) -> io::Result<()> {
        if frame_count == 0 {
            return Ok(());
        }
        for run in self.members.placement().runs(place, frame_count, &self.slots)? {
            let copies = match &run.held {
                Held::Copies(copies) => copies.clone(),
                Held::Column(rows, column) => SmallVec::from_iter([self.at_column(*rows, *column)]),
            };
            for At { position, offset_bytes } in copies {
                let Some(slot) = self.slots.get(position).filter(|slot| slot.is_in()) else {
                    continue;
                };
                if let Some(lane) = self.lane_of(slot) {
                    self.lanes[lane].line.check_range(offset_bytes, run.frames.len())?;
                }
            }
        }
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        self.lanes.iter_mut().try_for_each(|lane| lane.line.submit())
    }

    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        let mut ended = std::mem::take(&mut self.ended);
        for lane in &mut self.lanes {
            lane.line.complete(&mut ended)?;
        }
        ended.drain(..).for_each(|completion| self.part_ended(completion));
        self.ended = ended;
        self.look_for_late();
        out.append(&mut self.done);
        self.submit()
    }

    fn wait(&mut self) -> io::Result<()> {
        if self.requests.waiting > 0 && !self.has_ended() {
            self.event.wait(self.next_retry().unwrap_or(TICK));
        }
        Ok(())
    }

    fn poll_fds(&self) -> Vec<RawFd> {
        vec![self.event.poll_fd()]
    }

    fn next_retry(&self) -> Option<Duration> {
        let retries = self.lanes.iter().filter_map(|lane| lane.line.next_retry());
        let tick = (self.requests.waiting > 0).then(|| TICK.saturating_sub(self.looked.elapsed()));
        retries.chain(tick).min()
    }

    fn has_ended(&self) -> bool {
        !self.done.is_empty() || self.lanes.iter().any(|lane| lane.line.has_ended())
    }

    fn in_flight(&self) -> usize {
        self.requests.waiting + self.done.len()
    }

    fn end_retries(&self) {
        self.lanes.iter().for_each(|lane| lane.line.end_retries());
    }

    fn notices(&self) -> Vec<String> {
        self.lanes.first().map(|lane| lane.line.notices().to_vec()).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
