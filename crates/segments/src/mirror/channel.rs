//! A thread's way to several devices: a ring to each, and what becomes of those that fail or are
//! late.
//!
//! Invariants:
//! 1. An append ends when each device that it went to has it, or is out in durable labels.
//! 2. Memory that the kernel may touch stays with its ring until that request has ended, also if
//!    its answer was given long before, by another device.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use block::{Frame, FrameMut};
use format::Place;
use sys::{Buffers, Completion, Event, Persist, Ring};

use super::access::reading_order;
use super::device::{Device, Slot};
use super::lanes::{Lane, Lanes, Line, Request, Requests, name_of, parts_of};
use super::members::{Members, Slots};
use crate::channel::Channel;
use crate::layout::Layout;

/// How often it is looked who is late.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// Lays a line to a device, if there are any to such.
type Lay = Box<dyn Fn(&Device) -> Option<Box<dyn Line>>>;

/// A thread's way to the devices of a pool.
pub(super) struct MirrorChannel {
    pub(super) members: Arc<Members>,
    layout: Arc<Layout>,
    lay: Lay,
    event: Arc<Event>,
    /// The members as they were last looked at, and when that was.
    slots: Slots,
    generation: u64,
    /// Never fewer: a lane's number is that of its requests.
    pub(super) lanes: Vec<Lane>,
    pub(super) requests: Requests,
    done: Vec<Completion>,
    ended: Vec<Completion>,
    pub(super) looked: Instant,
}

impl MirrorChannel {
    pub(super) fn new(
        members: Arc<Members>,
        layout: Arc<Layout>,
        entries: u32,
    ) -> io::Result<Self> {
        let has_no_file =
            |slot: &Arc<Slot>| slot.device.as_ref().is_some_and(|device| device.file.is_none());
        if members.slots().iter().any(has_no_file) {
            let text = "there are no channels to these disks";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let event = Arc::new(Event::new()?);
        let signal = event.clone();
        let lay = move |device: &Device| -> Option<Box<dyn Line>> {
            let file = device.file.clone()?;
            Some(Box::new(Ring::signalling(file, entries, &signal)))
        };
        Ok(Self::over(members, layout, event, Box::new(lay)))
    }

    fn over(members: Arc<Members>, layout: Arc<Layout>, event: Arc<Event>, lay: Lay) -> Self {
        let (slots, generation) = (members.slots(), 0);
        let mut channel = Self {
            members,
            layout,
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

    /// Devices may have come or gone.
    fn look_at_members(&mut self) {
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

    fn lane_of(&self, slot: &Arc<Slot>) -> Option<usize> {
        self.lanes.iter().position(|lane| Arc::ptr_eq(&lane.slot, slot))
    }

    /// Where a read goes that some lanes were asked for already.
    fn lane_to_read(&self, offset_bytes: u64, tried: Lanes) -> Option<usize> {
        reading_order(&self.slots, offset_bytes)
            .filter(|slot| slot.readable().is_some())
            .filter_map(|slot| self.lane_of(slot))
            .find(|lane| tried & (1 << lane) == 0)
    }

    /// Asks one more lane for what a read wants; `false` if there is none.
    pub(super) fn ask(&mut self, index: u32, mut frames: Vec<FrameMut>) -> io::Result<bool> {
        let (at, count, tried) = match self.requests.get(index) {
            Some(Request::Read { offset_bytes, frame_count, tried, .. }) => {
                (*offset_bytes, *frame_count, *tried)
            }
            _ => return Ok(false),
        };
        let Some(number) = self.lane_to_read(at, tried) else { return Ok(false) };
        frames.resize_with(count, FrameMut::stale);
        self.lanes[number].read(name_of(index, number), at, frames)?;
        if let Some(Request::Read { under_way, tried, asked, .. }) = self.requests.get(index) {
            *under_way |= 1 << number;
            *tried |= 1 << number;
            *asked = Instant::now();
        }
        Ok(true)
    }

    /// One lane has ended its part of a request.
    fn part_ended(&mut self, completion: Completion) {
        let (index, number) = parts_of(completion.user_data);
        let lane = &mut self.lanes[number];
        lane.ended_one();
        let bit = 1 << number;
        match (self.requests.get(index), completion.buffers) {
            (Some(Request::Append { .. }), Buffers::Write(given)) => {
                self.append_ended(index, bit, completion.result, given);
            }
            (Some(Request::Read { is_answered, under_way, user_data, .. }), buffers) => {
                *under_way &= !bit;
                let user_data = *user_data;
                match completion.result {
                    _ if *is_answered => {}
                    Ok(()) => {
                        lane.late_reads = 0;
                        *is_answered = true;
                        self.answer(Completion { user_data, buffers, result: Ok(()) });
                    }
                    Err(error) => {
                        lane.slot.read_errors.fetch_add(1, Ordering::Relaxed);
                        self.read_failed(index, buffers, error);
                    }
                }
            }
            _ => debug_assert!(false, "no request has such a part"),
        }
        self.requests.forget_if_ended(index);
    }

    /// A device does not give what a read wants: another one does, or it is on its way, or the read
    /// has failed.
    fn read_failed(&mut self, index: u32, buffers: Buffers, error: io::Error) {
        let Buffers::Read(frames) = buffers else { return };
        let Some(Request::Read { offset_bytes, tried, .. }) = self.requests.get(index) else {
            return;
        };
        let (offset_bytes, tried) = (*offset_bytes, *tried);
        let has_other = self.lane_to_read(offset_bytes, tried).is_some();
        let (asked, given) = if has_other { (frames, Vec::new()) } else { (Vec::new(), frames) };
        if has_other && self.ask(index, asked).is_ok() {
            return;
        }
        let Some(Request::Read { user_data, under_way, is_answered, .. }) =
            self.requests.get(index)
        else {
            return;
        };
        if *under_way == 0 && !*is_answered {
            *is_answered = true;
            let (user_data, buffers) = (*user_data, Buffers::Read(given));
            self.answer(Completion { user_data, buffers, result: Err(error) });
        }
    }

    fn append_ended(&mut self, index: u32, bit: Lanes, result: io::Result<()>, given: Vec<Frame>) {
        let Some(Request::Append { under_way, owed, taken, frames, error, .. }) =
            self.requests.get(index)
        else {
            return;
        };
        *under_way &= !bit;
        if *owed & bit == 0 {
            return;
        }
        *owed &= !bit;
        if frames.is_empty() {
            *frames = given;
        }
        match result {
            Ok(()) => _ = taken.get_or_insert_with(Instant::now),
            Err(failed) => {
                let slot = &self.lanes[bit.trailing_zeros() as usize].slot;
                // Only the last one's error is the pool's.
                if let Err(last) = self.members.fail(slot, failed) {
                    error.get_or_insert(last);
                }
            }
        }
        self.answer_append(index);
    }

    /// Answers an append, if nothing is owed any more.
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

    fn answer(&mut self, completion: Completion) {
        self.requests.waiting -= 1;
        self.done.push(completion);
    }
}

impl Channel for MirrorChannel {
    fn read(&mut self, user_data: u64, place: Place, frames: Vec<FrameMut>) -> io::Result<()> {
        self.look_at_members();
        let offset_bytes = self.layout.offset_bytes(place, frames.len());
        let (under_way, tried, frame_count) = (0, 0, frames.len());
        let (asked, is_answered) = (Instant::now(), false);
        let index = self.requests.keep(Request::Read {
            user_data,
            under_way,
            tried,
            offset_bytes,
            frame_count,
            asked,
            is_answered,
        });
        let is_asked = self.ask(index, frames).and_then(|is_asked| match is_asked {
            true => Ok(()),
            false => Err(io::Error::other("no device is in")),
        });
        is_asked.inspect_err(|_| {
            self.requests.take_back(index);
        })
    }

    fn append(
        &mut self,
        user_data: u64,
        place: Place,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        self.members.begin()?;
        self.look_at_members();
        let offset_bytes = self.layout.offset_or_start(place, frames.len());
        let index = self.requests.keep(Request::Append {
            user_data,
            under_way: 0,
            owed: 0,
            taken: None,
            frames: Vec::new(),
            error: None,
            is_answered: false,
        });
        let (mut asked, mut refused) = (0, None);
        for slot in self.slots.clone().iter().filter(|slot| slot.written().is_some()) {
            let lane = self.lane_of(slot);
            let written = match lane {
                Some(lane) => {
                    let name = name_of(index, lane);
                    self.lanes[lane].write(name, offset_bytes, frames.clone(), persist)
                }
                None => Err(io::Error::other("there is no way to it")),
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
        let offset_bytes = self.layout.offset_or_start(place, frame_count);
        let mut readable = self.lanes.iter().filter(|lane| lane.slot.is_in());
        readable.try_for_each(|lane| lane.line.check_range(offset_bytes, frame_count))
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
