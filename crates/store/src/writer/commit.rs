//! The commit: sealing the open record, and applying it when it is durable.

use block::{BLOCK_BYTES, Frame, VolumeError, VolumeReply};
use format::log::RECORD_ENTRIES_BYTES_MAX;
use format::{ChunkRow, Entry, LogPosition, Place, RecordPlaces, SegmentState};
use sys::Persist;

use crate::apply::apply_all;
use crate::apply::bring::Payload;
use crate::log::in_flight::InFlight;
use crate::log::record::{Record, Sealed};
use crate::map::tree::Editor;
use crate::world::World;
use crate::writer::Writer;
use crate::writer::job::Answer;
use crate::{Commit, StoreError};

/// The number of nodes freed in each commit while more are pending, so that their number is
/// bounded.
const PENDING_NODES_PER_COMMIT: usize = 16;

impl Writer {
    /// Takes a record that was moved elsewhere, or seals the open record, if the device is free.
    pub(crate) fn take_commit(&mut self, world: &World) -> Option<Commit> {
        self.place_anew(world);
        if !self.wants_commit() {
            return None;
        }
        if let Some(index) = self.sealed.iter().position(|sealed| sealed.unsent) {
            return Some(self.send(world, index));
        }
        self.log_released(world);
        let rows = self.next_record_rows(self.open.entries_bytes, self.open.payload_blocks());
        if !self.open.entries.is_empty() && !self.make_room(rows) {
            // A checkpoint is due, and frees some; whoever writes it has the record taken then.
            return None;
        }
        let next = std::mem::take(&mut self.spare);
        let mut record = std::mem::replace(&mut self.open, next);
        if !record.entries.is_empty() {
            let header_blocks = record.header_blocks(self.log.end_own());
            record.close(self.log.columns(), header_blocks);
        }
        let readable = record.entries_bytes <= RECORD_ENTRIES_BYTES_MAX;
        assert!(readable, "recovery would reject a record with so many entries");
        let moved_bytes = record.moved_blocks as u64 * BLOCK_BYTES;
        let sealed = self.seal(world, record, self.log.end(), self.log.end_own());
        let placed = self.early().then(|| self.place_early(world, &sealed));
        if placed.is_some_and(|placed| placed.is_err()) {
            self.failed = true;
            return None;
        }
        self.log.count_moved_bytes(moved_bytes);
        self.pace.spend(u64::from(sealed.blocks()) * BLOCK_BYTES - moved_bytes);
        self.log.sealed(&sealed);
        self.sealed.push_back(sealed);
        self.turn_plans(world);
        Some(self.send(world, self.sealed.len() - 1))
    }

    /// Seals a record at a location. One without entries is for callers that wait only for a flush.
    pub(crate) fn seal(
        &self,
        world: &World,
        record: Record,
        at: LogPosition,
        before: &[u8],
    ) -> InFlight {
        let applied = self.early() || record.entries.is_empty();
        if record.entries.is_empty() {
            let (none, next) = (Sealed::default(), at);
            return InFlight::new(record, none, (at, None, next), at.lsn - 1, applied);
        }
        self.seal_with(world, record, at, before, applied)
    }

    /// Seals a given record at a location.
    pub(crate) fn seal_with(
        &self,
        world: &World,
        record: Record,
        at: LogPosition,
        before: &[u8],
        applied: bool,
    ) -> InFlight {
        let sealed = record.seal(&world.medium, &at, self.log.stamp(), before);
        let blocks = (sealed.frames.len() as u32, record.frames.len() as u32);
        let places = RecordPlaces::new(world.medium.geometry_of(at.segment), &at, blocks);
        let next = LogPosition {
            block: at.block + places.rows(),
            lsn: at.lsn + 1,
            previous: sealed.seal,
            ..at
        };
        InFlight::new(record, sealed, (at, Some(places), next), at.lsn, applied)
    }

    /// Returns the write of a sealed record.
    fn send(&mut self, world: &World, index: usize) -> Commit {
        let early = self.early();
        let must_flush = early && self.must_flush(index);
        let sealed = &mut self.sealed[index];
        sealed.unsent = false;
        sealed.flushes_failed = world.medium.disk.flush_failures();
        let flushes = must_flush || sealed.record.flush || sealed.header.is_empty();
        let persist = match (early, flushes) {
            (false, _) => Persist::Itself,
            (true, false) => Persist::Nothing,
            (true, true) => Persist::All,
        };
        if sealed.header.is_empty() {
            let lsn = sealed.lsn;
            let place = Place::NONE;
            return Commit { place, frames: Vec::new(), persist: Persist::All, lsn };
        }
        let mut frames: Vec<Frame> =
            sealed.header.iter().chain(&sealed.record.frames).cloned().collect();
        // All of its rows are written.
        let blocks = sealed.rows() as usize * usize::from(self.log.columns_of(sealed.at.segment));
        frames.resize_with(blocks, Frame::zeros);
        let LogPosition { segment, block, .. } = sealed.at;
        let place = Place::of_block(segment, block);
        Commit { place, frames, persist, lsn: sealed.lsn }
    }

    /// Moves to the next segment if `rows` do not fit this one. Returns `false` if no segment is
    /// free.
    fn make_room(&mut self, rows: u32) -> bool {
        assert!(rows <= self.log.segment_rows(), "a record never crosses a segment");
        if rows <= self.log.segment_rest_rows() {
            return true;
        }
        let opened = self.state.segments.open(SegmentState::Log, self.log.end().lsn);
        if let Some(opened) = opened {
            self.log.enter_next_segment(opened);
        }
        opened.is_some()
    }

    /// Returns whether the open record waits for a segment, and nothing in flight will free one.
    pub(crate) fn has_no_segment(&mut self) -> bool {
        let rows = self.next_record_rows(self.open.entries_bytes, self.open.payload_blocks());
        !self.open.entries.is_empty()
            && self.sealed.is_empty()
            && rows > self.log.segment_rest_rows()
            && self.state.segments.is_none_free()
    }

    /// Sets the locations of chunks of a record that was applied early.
    fn place_early(&mut self, world: &World, sealed: &InFlight) -> Result<(), StoreError> {
        let Some(places) = sealed.places else { return Ok(()) };
        for brought in sealed.record.entries.iter().flat_map(Entry::brought) {
            let place = places.payload(brought.payload_units);
            let units = world.chunks.update(&world.medium, brought.chunk.0, |raw| {
                let mut row = ChunkRow::decode(raw)
                    .filter(|row| row.place.is_none() && row.original.is_none())?;
                row.place = place;
                row.encode(raw);
                Some(row.share_units())
            })?;
            if let Some(units) = units {
                self.state.segments.add_live(place, units)?;
            }
        }
        Ok(())
    }

    /// Records that a commit has ended. [`Writer::apply_landed`] applies it, after all earlier
    /// ones; until then the next ones may be in flight.
    pub(crate) fn land(&mut self, world: &World, commit: &Commit, written: bool) {
        if written {
            self.log.count_commit();
        }
        if self.early() {
            return self.land_early(world, commit, written);
        }
        let mut flying = self.sealed.iter_mut().filter(|sealed| sealed.is_flying());
        let Some(done) = flying.find(|sealed| sealed.lsn == commit.lsn) else { return };
        done.written = Some(written);
        // All before the first that has not landed: each of them was written durably.
        let landed = self.sealed.iter().take_while(|sealed| sealed.written == Some(true));
        if let Some(last) = landed.last() {
            self.log.flushed_to(last.lsn);
        }
    }

    /// Applies what has landed, in order, and returns the answers to give.
    pub(crate) fn apply_landed(&mut self, world: &World) -> Vec<Answer> {
        let mut answers = Vec::new();
        loop {
            let has_place = self.place_anew(world);
            let has_ended = |sealed: &InFlight| sealed.written.is_some_and(|ok| ok || !has_place);
            if !self.sealed.front().is_some_and(has_ended) {
                break;
            }
            let Some(mut done) = self.sealed.pop_front() else { break };
            // Nothing after a lost record is applied: recovery would not find it either.
            self.broken |= done.written == Some(false);
            let before = self.log.position();
            if !self.broken {
                self.log.applied(&done);
                self.broken = self.apply(world, &mut done).is_err();
            }
            self.failed |= self.broken;
            let reply = if self.broken { Err(VolumeError::WriteFailed) } else { Ok(()) };
            answers.extend(
                done.record
                    .waiting
                    .iter()
                    .map(|token| Answer::Reply(*token, reply.clone().map(|()| VolumeReply::Done))),
            );
            let staging = std::mem::take(&mut done.record.staging);
            answers.extend(staging.into_iter().map(|(token, edit)| match &reply {
                Ok(()) => Answer::Again(token, edit),
                Err(error) => Answer::Reply(token, Err(error.clone())),
            }));
            if self.early() && !self.broken {
                self.keep_until_flushed(world, done, before);
            } else {
                self.spare = done.record.emptied();
            }
        }
        self.turn_plans(world);
        self.take_waiting(world, &mut answers);
        answers
    }

    fn apply(&mut self, world: &World, done: &mut InFlight) -> Result<(), StoreError> {
        if done.applied {
            self.keep_placed(world, done);
        } else {
            let payload = Payload::of(done.places, &done.record);
            apply_all(world, &mut self.state, &done.record.entries, payload)?;
            world.count_applied();
            for chunk in &done.record.pins {
                world.unpin(&mut self.state, *chunk)?;
            }
            self.grafted(world, std::mem::take(&mut done.record.grafts));
        }
        if self.state.pending.len() > self.tuning.pending_nodes_max {
            let count = self.nodes_to_free(world, PENDING_NODES_PER_COMMIT);
            let mut editor = Editor { world, state: &mut self.state };
            editor.free_pending(count)?;
        }
        Ok(())
    }

    /// Keeps the data of a record in memory until it is durable, and then in the cache.
    fn keep_placed(&self, world: &World, done: &InFlight) {
        for brought in done.record.entries.iter().flat_map(Entry::brought) {
            if let Some(frame) = world.unplaced.get(brought.chunk) {
                world.keep_chunk(brought.chunk, frame);
            }
        }
    }
}
