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

use super::device::Slot;
use super::members::{Members, Slots};
use super::mirrored::reading_order;
use crate::channel::Channel;
use crate::layout::Layout;

/// A device that has not taken an append so long after the others have is out.
const WRITE_LATE: Duration = Duration::from_millis(50);
/// A read that has taken so long is asked of another device too.
const READ_LATE: Duration = Duration::from_millis(20);
/// How often it is looked who is late.
const TICK: Duration = Duration::from_millis(10);
/// A device is out that was late with so many reads in a row.
const LATE_READS_MAX: u32 = 16;

/// Which lanes: a bit for each.
type Lanes = u64;

/// A ring to one device.
struct Lane {
    slot: Arc<Slot>,
    ring: Ring,
    /// Behind the ring, which waits for them when it is dropped.
    under_way: UnderWay,
    /// Reads in a row that were late.
    late_reads: u32,
}

/// Requests of one lane that have not ended: they keep a device that went out from being taken
/// back.
struct UnderWay {
    slot: Arc<Slot>,
    count: u32,
}

/// What somebody waits for.
enum Request {
    Append {
        user_data: u64,
        /// Lanes that have not ended.
        under_way: Lanes,
        /// Those among them that the answer waits for.
        owed: Lanes,
        /// When the first has ended well.
        taken: Option<Instant>,
        frames: Vec<Frame>,
        error: Option<io::Error>,
        is_answered: bool,
    },
    Read {
        user_data: u64,
        under_way: Lanes,
        /// Lanes that were asked.
        tried: Lanes,
        offset_bytes: u64,
        frame_count: usize,
        /// When the last lane was asked.
        asked: Instant,
        is_answered: bool,
    },
}

/// A thread's way to the devices of a pool.
pub(super) struct MirrorChannel {
    members: Arc<Members>,
    layout: Arc<Layout>,
    entries: u32,
    event: Arc<Event>,
    /// The members as they were last looked at, and when that was.
    slots: Slots,
    generation: u64,
    /// Never fewer: a lane's number is that of its requests.
    lanes: Vec<Lane>,
    requests: Vec<Option<Request>>,
    free: Vec<u32>,
    done: Vec<Completion>,
    ended: Vec<Completion>,
    /// Requests that were not answered.
    waiting: usize,
    looked: Instant,
}

impl MirrorChannel {
    pub(super) fn new(
        members: Arc<Members>,
        layout: Arc<Layout>,
        entries: u32,
    ) -> io::Result<Self> {
        let (slots, generation) = (members.slots(), 0);
        let has_no_file =
            |slot: &Arc<Slot>| slot.device.as_ref().is_some_and(|device| device.file.is_none());
        if slots.iter().any(has_no_file) {
            let text = "there are no channels to these disks";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let mut channel = Self {
            members,
            layout,
            entries,
            event: Arc::new(Event::new()?),
            slots,
            generation,
            lanes: Vec::new(),
            requests: Vec::new(),
            free: Vec::new(),
            done: Vec::new(),
            ended: Vec::new(),
            waiting: 0,
            looked: Instant::now(),
        };
        channel.look_at_members();
        Ok(channel)
    }

    /// Devices may have come or gone.
    fn look_at_members(&mut self) {
        let generation = self.members.generation();
        if generation == self.generation {
            return;
        }
        (self.generation, self.slots) = (generation, self.members.slots());
        for slot in self.slots.iter() {
            let file = slot.device.as_ref().and_then(|device| device.file.clone());
            let is_known = self.lanes.iter().any(|lane| Arc::ptr_eq(&lane.slot, slot));
            if let Some(file) = file
                && !is_known
                && self.lanes.len() < Lanes::BITS as usize
            {
                let ring = Ring::signalling(file, self.entries, &self.event);
                let under_way = UnderWay { slot: slot.clone(), count: 0 };
                self.lanes.push(Lane { slot: slot.clone(), ring, under_way, late_reads: 0 });
            }
        }
    }

    fn lane_of(&self, slot: &Arc<Slot>) -> Option<usize> {
        self.lanes.iter().position(|lane| Arc::ptr_eq(&lane.slot, slot))
    }

    fn keep(&mut self, request: Request) -> u32 {
        self.waiting += 1;
        match self.free.pop() {
            Some(index) => {
                self.requests[index as usize] = Some(request);
                index
            }
            None => {
                self.requests.push(Some(request));
                (self.requests.len() - 1) as u32
            }
        }
    }

    /// Where a read goes that some lanes were asked for already.
    fn lane_to_read(&self, offset_bytes: u64, tried: Lanes) -> Option<usize> {
        reading_order(&self.slots, offset_bytes)
            .filter(|slot| slot.readable().is_some())
            .filter_map(|slot| self.lane_of(slot))
            .find(|lane| tried & (1 << lane) == 0)
    }

    /// Asks one more lane for what a read wants; `false` if there is none.
    fn ask(&mut self, index: u32, mut frames: Vec<FrameMut>) -> io::Result<bool> {
        let (at, count, tried) = match &self.requests[index as usize] {
            Some(Request::Read { offset_bytes, frame_count, tried, .. }) => {
                (*offset_bytes, *frame_count, *tried)
            }
            _ => return Ok(false),
        };
        let Some(number) = self.lane_to_read(at, tried) else { return Ok(false) };
        frames.resize_with(count, FrameMut::stale);
        self.lanes[number].read(name_of(index, number), at, frames)?;
        if let Some(Request::Read { under_way, tried, asked, .. }) =
            &mut self.requests[index as usize]
        {
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
        lane.under_way.ended_one();
        let bit = 1 << number;
        match (&mut self.requests[index as usize], completion.buffers) {
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
        self.forget_if_ended(index);
    }

    /// A device does not give what a read wants: another one does, or it is on its way, or the read
    /// has failed.
    fn read_failed(&mut self, index: u32, buffers: Buffers, error: io::Error) {
        let Buffers::Read(frames) = buffers else { return };
        let Some(Request::Read { offset_bytes, tried, .. }) = &self.requests[index as usize] else {
            return;
        };
        let has_other = self.lane_to_read(*offset_bytes, *tried).is_some();
        let (asked, given) = if has_other { (frames, Vec::new()) } else { (Vec::new(), frames) };
        if has_other && self.ask(index, asked).is_ok() {
            return;
        }
        let Some(Request::Read { user_data, under_way, is_answered, .. }) =
            &mut self.requests[index as usize]
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
            &mut self.requests[index as usize]
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
    fn answer_append(&mut self, index: u32) {
        if let Some(Request::Append { user_data, owed: 0, frames, error, is_answered, .. }) =
            &mut self.requests[index as usize]
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
        self.waiting -= 1;
        self.done.push(completion);
    }

    fn forget_if_ended(&mut self, index: u32) {
        let request = &mut self.requests[index as usize];
        let is_over = match request {
            Some(
                Request::Append { under_way, is_answered, .. }
                | Request::Read { under_way, is_answered, .. },
            ) => *under_way == 0 && *is_answered,
            None => false,
        };
        if is_over {
            *request = None;
            self.free.push(index);
        }
    }

    /// Looks who is late. What has ended was collected before, so that a thread that was paused
    /// itself takes nobody for late.
    fn look_for_late(&mut self) {
        let now = Instant::now();
        if self.waiting == 0 || now.duration_since(self.looked) < TICK {
            return;
        }
        self.looked = now;
        for index in 0..self.requests.len() as u32 {
            match &self.requests[index as usize] {
                Some(Request::Append { owed, taken: Some(taken), .. })
                    if *owed != 0 && now.duration_since(*taken) > WRITE_LATE =>
                {
                    self.do_without(index, *owed);
                }
                Some(Request::Read { asked, under_way, is_answered: false, .. })
                    if now.duration_since(*asked) > READ_LATE =>
                {
                    let late = *under_way;
                    self.read_is_late(index, late);
                }
                _ => {}
            }
        }
    }

    /// These lanes have not taken an append that others have.
    fn do_without(&mut self, index: u32, late: Lanes) {
        for number in (0..self.lanes.len()).filter(|number| late & (1 << number) != 0) {
            let text = format!("a write took {} ms longer than elsewhere", WRITE_LATE.as_millis());
            let failed = io::Error::new(io::ErrorKind::TimedOut, text);
            let is_out = self.members.fail(&self.lanes[number].slot, failed).is_ok();
            if is_out && let Some(Request::Append { owed, .. }) = &mut self.requests[index as usize]
            {
                *owed &= !(1 << number);
            }
        }
        self.answer_append(index);
    }

    fn read_is_late(&mut self, index: u32, late: Lanes) {
        // The first that is asked twice is late; from there on others have it.
        if let Ok(true) = self.ask(index, Vec::new()) {
            for number in (0..self.lanes.len()).filter(|number| late & (1 << number) != 0) {
                let lane = &mut self.lanes[number];
                lane.late_reads += 1;
                if lane.late_reads >= LATE_READS_MAX {
                    let text = format!("{LATE_READS_MAX} reads in a row were late");
                    // The last one that is in stays.
                    let error = io::Error::new(io::ErrorKind::TimedOut, text);
                    let _ = self.members.fail(&lane.slot, error);
                }
            }
        }
    }
}

/// What a lane's part of a request is called in its ring.
fn name_of(index: u32, lane: usize) -> u64 {
    u64::from(index) | (lane as u64) << 32
}

fn parts_of(name: u64) -> (u32, usize) {
    (name as u32, (name >> 32) as usize)
}

impl Lane {
    fn read(&mut self, name: u64, offset_bytes: u64, frames: Vec<FrameMut>) -> io::Result<()> {
        self.ring.read(name, offset_bytes, frames)?;
        self.under_way.began_one();
        Ok(())
    }

    fn write(
        &mut self,
        name: u64,
        offset_bytes: u64,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        self.ring.write(name, offset_bytes, frames, persist)?;
        self.under_way.began_one();
        Ok(())
    }
}

impl UnderWay {
    fn began_one(&mut self) {
        self.count += 1;
        self.slot.in_flight.fetch_add(1, Ordering::AcqRel);
    }

    fn ended_one(&mut self) {
        self.count -= 1;
        self.slot.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.slot.in_flight.fetch_sub(self.count, Ordering::AcqRel);
    }
}

impl Channel for MirrorChannel {
    fn read(&mut self, user_data: u64, place: Place, frames: Vec<FrameMut>) -> io::Result<()> {
        self.look_at_members();
        let offset_bytes = self.layout.offset_bytes(place, frames.len());
        let (under_way, tried, frame_count) = (0, 0, frames.len());
        let (asked, is_answered) = (Instant::now(), false);
        let index = self.keep(Request::Read {
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
            self.requests[index as usize] = None;
            self.free.push(index);
            self.waiting -= 1;
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
        let index = self.keep(Request::Append {
            user_data,
            under_way: 0,
            owed: 0,
            taken: None,
            frames: Vec::new(),
            error: None,
            is_answered: false,
        });
        let (mut asked, mut refused) = (0, None);
        for number in 0..self.lanes.len() {
            let lane = &mut self.lanes[number];
            if lane.slot.written().is_none() {
                continue;
            }
            match lane.write(name_of(index, number), offset_bytes, frames.clone(), persist) {
                Ok(()) => asked |= 1 << number,
                Err(error) => {
                    refused = self.members.fail(&lane.slot, error).err().or(refused);
                }
            }
        }
        if let Some(Request::Append { under_way, owed, error, .. }) =
            &mut self.requests[index as usize]
        {
            (*under_way, *owed, *error) = (asked, asked, refused);
        }
        if asked != 0 {
            return Ok(());
        }
        let Some(Some(Request::Append { error, .. })) = self.requests.get_mut(index as usize)
        else {
            unreachable!("it was kept just now");
        };
        let error = error.take().unwrap_or_else(|| io::Error::other("no device is in"));
        self.requests[index as usize] = None;
        self.free.push(index);
        self.waiting -= 1;
        Err(error)
    }

    fn check(&self, place: Place, frame_count: usize) -> io::Result<()> {
        let offset_bytes = self.layout.offset_or_start(place, frame_count);
        let mut readable = self.lanes.iter().filter(|lane| lane.slot.is_in());
        readable.try_for_each(|lane| lane.ring.check_range(offset_bytes, frame_count))
    }

    fn submit(&mut self) -> io::Result<()> {
        self.lanes.iter_mut().try_for_each(|lane| lane.ring.submit())
    }

    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        let mut ended = std::mem::take(&mut self.ended);
        for lane in &mut self.lanes {
            lane.ring.complete(&mut ended)?;
        }
        ended.drain(..).for_each(|completion| self.part_ended(completion));
        self.ended = ended;
        self.look_for_late();
        out.append(&mut self.done);
        self.submit()
    }

    fn wait(&mut self) -> io::Result<()> {
        if self.waiting > 0 && !self.has_ended() {
            self.event.wait(self.next_retry().unwrap_or(TICK));
        }
        Ok(())
    }

    fn poll_fds(&self) -> Vec<RawFd> {
        vec![self.event.poll_fd()]
    }

    fn next_retry(&self) -> Option<Duration> {
        let retries = self.lanes.iter().filter_map(|lane| lane.ring.next_retry());
        let tick = (self.waiting > 0).then(|| TICK.saturating_sub(self.looked.elapsed()));
        retries.chain(tick).min()
    }

    fn has_ended(&self) -> bool {
        !self.done.is_empty() || self.lanes.iter().any(|lane| lane.ring.has_ended())
    }

    fn in_flight(&self) -> usize {
        self.waiting + self.done.len()
    }

    fn end_retries(&self) {
        self.lanes.iter().for_each(|lane| lane.ring.end_retries());
    }

    fn notices(&self) -> Vec<String> {
        self.lanes.first().map(|lane| lane.ring.notices().to_vec()).unwrap_or_default()
    }
}
