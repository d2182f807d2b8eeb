//! Reads by a thread: from the device that has the data, or reconstructed from others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use block::FrameMut;
use format::Place;
use format::geometry::PARITY_COLUMNS;
use smallvec::SmallVec;
use sys::{Buffers, Completion};

use super::access::is_out;
use super::channel::SetChannel;
use super::lanes::{Lanes, ReadRun, Request, name_of, parts_of};
use super::placement::{At, Held, Rows, make};
use super::table::Table;

impl SetChannel {
    pub(super) fn begin_read(
        &mut self,
        user_data: u64,
        place: Place,
        frames: Vec<FrameMut>,
    ) -> io::Result<()> {
        self.look_at_members();
        let runs = self.members.placement().runs(place, frames.len(), &self.slots)?;
        let counts: SmallVec<[usize; 1]> = runs.iter().map(|run| run.frames.len()).collect();
        let runs = runs.into_iter().map(ReadRun::new).collect();
        let index = self.requests.keep(Request::Read { user_data, runs, is_answered: false });
        let (mut frames, mut asked) = (frames, Ok(true));
        for (run, count) in counts.into_iter().enumerate() {
            let rest = frames.split_off(count);
            let own = std::mem::replace(&mut frames, rest);
            asked = asked.and_then(|all| Ok(self.ask((index, run), own)? && all));
        }
        let error = match asked {
            Ok(true) => return Ok(()),
            Ok(false) => io::Error::other("too few devices are in"),
            Err(error) => error,
        };
        // The caller does not wait for a read that could not be queued.
        if let Some(Request::Read { is_answered, .. }) = self.requests.get(index) {
            *is_answered = true;
        }
        self.requests.waiting -= 1;
        self.requests.forget_if_ended(index);
        Err(error)
    }

    /// Reads from one more lane, or from several for reconstruction; returns `false` if there is
    /// none.
    pub(super) fn ask(
        &mut self,
        (index, number): (u32, usize),
        frames: Vec<FrameMut>,
    ) -> io::Result<bool> {
        let Some(Request::Read { runs, .. }) = self.requests.get(index) else { return Ok(false) };
        let (run, tried) = (runs[number].run.clone(), runs[number].tried);
        match &run.held {
            Held::Copies(copies) => {
                let found =
                    copies.iter().find_map(|at| Some((*at, self.lane_to_read(*at, tried)?)));
                let Some((at, lane)) = found else { return Ok(false) };
                self.ask_lane((index, number), (lane, at, 0), frames).map(|()| true)
            }
            Held::Column(rows, column) => {
                let at = self.at_column(*rows, *column);
                match self.lane_to_read(at, tried) {
                    Some(lane) => {
                        let own = (lane, at, *column);
                        self.ask_lane((index, number), own, frames).map(|()| true)
                    }
                    None => self.ask_others((index, number), (*rows, *column)),
                }
            }
        }
    }

    /// Returns the current location of rows of a column.
    pub(super) fn at_column(&self, rows: Rows, column: usize) -> At {
        let placement = self.members.placement();
        let at = |table: Arc<Table>| placement.at(&table, rows, column, &self.slots);
        placement.table().map_or(At { position: usize::MAX, offset_bytes: 0 }, at)
    }

    /// Reads from as many other lanes as needed, or from one more.
    fn ask_others(
        &mut self,
        (index, number): (u32, usize),
        (rows, column): (Rows, usize),
    ) -> io::Result<bool> {
        let table = self.members.placement().table();
        let Some(shards) = table.and_then(|table| table.columns(rows.segment)) else {
            return Ok(false);
        };
        let needed = shards - PARITY_COLUMNS as usize;
        let Some(Request::Read { runs, .. }) = self.requests.get(index) else { return Ok(false) };
        let read = &mut runs[number];
        let (tried, is_begun) = (read.tried, read.others.is_some());
        let others = (0..shards).filter(|other| *other != column);
        let lanes: Vec<(usize, At, usize)> = others
            .filter_map(|other| {
                let at = self.at_column(rows, other);
                Some((self.lane_to_read(at, tried)?, at, other))
            })
            .collect();
        let wanted = if is_begun { 1 } else { needed };
        if lanes.len() < wanted {
            return Ok(false);
        }
        if let Some(Request::Read { runs, .. }) = self.requests.get(index) {
            runs[number].others.get_or_insert_with(|| vec![None; shards]);
        }
        for lane in lanes.into_iter().take(wanted) {
            self.ask_lane((index, number), lane, Vec::new())?;
        }
        Ok(true)
    }

    fn ask_lane(
        &mut self,
        (index, number): (u32, usize),
        (lane, at, column): (usize, At, usize),
        mut frames: Vec<FrameMut>,
    ) -> io::Result<()> {
        let Some(Request::Read { runs, .. }) = self.requests.get(index) else { return Ok(()) };
        frames.resize_with(runs[number].run.frames.len(), FrameMut::stale);
        let name = name_of(index, lane, (number, column));
        self.lanes[lane].read(name, at.offset_bytes, frames)?;
        if let Some(Request::Read { runs, .. }) = self.requests.get(index) {
            let read = &mut runs[number];
            read.under_way |= 1 << lane;
            read.tried |= 1 << lane;
            read.asked = Instant::now();
        }
        Ok(())
    }

    /// Returns the lane of a device, if it may be read and was not tried already.
    fn lane_to_read(&self, at: At, tried: Lanes) -> Option<usize> {
        let slot = self.slots.get(at.position).filter(|slot| slot.readable().is_some())?;
        self.lane_of(slot).filter(|lane| tried & (1 << lane) == 0)
    }

    /// Handles the end of one lane's part of a request.
    pub(super) fn part_ended(&mut self, completion: Completion) {
        let (index, lane, run, column) = parts_of(completion.user_data);
        self.lanes[lane].ended_one();
        match (self.requests.get(index), completion.buffers) {
            (Some(Request::Append { .. }), Buffers::Write(_)) => {
                self.append_ended(index, 1 << lane, completion.result);
            }
            (Some(Request::Read { runs, is_answered, .. }), Buffers::Read(frames)) => {
                runs[run].under_way &= !(1 << lane);
                match completion.result {
                    _ if *is_answered || runs[run].frames.is_some() => {}
                    Ok(()) => self.part_read((index, run), (lane, column), frames),
                    Err(error) => {
                        self.lanes[lane].slot.read_errors.fetch_add(1, Ordering::Relaxed);
                        self.read_failed((index, run), frames, error);
                    }
                }
            }
            _ => debug_assert!(false, "a read has no part of this kind"),
        }
        self.requests.forget_if_ended(index);
    }

    /// Handles a read by one lane: of which column, if it is of the log.
    fn part_read(
        &mut self,
        (index, number): (u32, usize),
        (lane, column): (usize, usize),
        frames: Vec<FrameMut>,
    ) {
        self.lanes[lane].late_reads = 0;
        // What was read from a device that was replaced meanwhile may be anything.
        if !self.slots.iter().any(|slot| Arc::ptr_eq(slot, &self.lanes[lane].slot)) {
            return self.read_failed((index, number), frames, is_out());
        }
        let Some(Request::Read { runs, .. }) = self.requests.get(index) else { return };
        let read = &mut runs[number];
        match &read.run.held {
            Held::Column(rows, wanted) if *wanted != column => {
                let (segment, wanted) = (rows.segment, *wanted);
                let Some(others) = &mut read.others else { return };
                let mut made = Vec::new();
                made.resize_with(frames.len(), FrameMut::stale);
                others[column] = Some(frames.into_iter().map(FrameMut::freeze).collect());
                let placement = self.members.placement();
                let table = placement.table();
                let code = table.and_then(|table| placement.code_of(&table, segment));
                let Some(code) = code else { return };
                match make(code, others, wanted, &mut made) {
                    Ok(()) => read.frames = Some(made),
                    // More of them are in flight.
                    Err(_) if read.under_way > 0 => return,
                    Err(error) => {
                        let error = io::Error::other(error);
                        return self.read_failed((index, number), Vec::new(), error);
                    }
                }
            }
            _ => read.frames = Some(frames),
        }
        let held = read.run.held.clone();
        self.note_elsewhere(&held, lane);
        self.answer_read(index);
    }

    /// Counts a read that another device should have served.
    fn note_elsewhere(&self, held: &Held, lane: usize) {
        let first = match held {
            Held::Copies(copies) => copies.first().copied(),
            Held::Column(rows, column) => Some(self.at_column(*rows, *column)),
        };
        let slot = first.and_then(|at| self.slots.get(at.position));
        if let Some(slot) = slot.filter(|slot| !Arc::ptr_eq(slot, &self.lanes[lane].slot)) {
            slot.note_read_elsewhere();
        }
    }

    /// Completes a read, if all of it was read.
    fn answer_read(&mut self, index: u32) {
        let Some(Request::Read { user_data, runs, is_answered }) = self.requests.get(index) else {
            return;
        };
        if *is_answered || runs.iter().any(|run| run.frames.is_none()) {
            return;
        }
        *is_answered = true;
        let user_data = *user_data;
        let mut parts = runs.iter_mut().filter_map(|run| run.frames.take());
        let mut frames = parts.next().unwrap_or_default();
        parts.for_each(|mut part| frames.append(&mut part));
        self.answer(Completion { user_data, buffers: Buffers::Read(frames), result: Ok(()) });
    }

    /// Handles a lane that fails to read: another one serves the read, or already does, or the read
    /// fails.
    fn read_failed(&mut self, part: (u32, usize), frames: Vec<FrameMut>, error: io::Error) {
        if let Ok(true) = self.ask(part, frames) {
            return;
        }
        let (index, number) = part;
        let Some(Request::Read { user_data, runs, is_answered }) = self.requests.get(index) else {
            return;
        };
        if runs[number].under_way == 0 && !*is_answered {
            *is_answered = true;
            let count = runs.iter().map(|run| run.run.frames.len()).sum();
            let mut frames = Vec::new();
            frames.resize_with(count, FrameMut::stale);
            let (user_data, buffers) = (*user_data, Buffers::Read(frames));
            self.answer(Completion { user_data, buffers, result: Err(error) });
        }
    }
}
