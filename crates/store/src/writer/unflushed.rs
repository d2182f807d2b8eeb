//! Records that were written, but not yet covered by a flush (`durability = "flush"`).
//!
//! A flush that fails may have lost any of them, and the next one succeeds nevertheless, because it
//! has nothing left to do. So they stay in memory until a flush has covered them, and their data is
//! read from there ([`crate::chunks::unplaced`]). When a flush has failed, all of them are written
//! again, at their locations and in order; the one that requests the flush is the last, and so
//! flushes again. The same happens if another caller's flush has failed in the meantime; so each
//! record remembers how many had failed before it was written.
//!
//! If that fails as well, the locations may be the cause: some of the further retries go elsewhere,
//! like refused records (`elsewhere`). After [`TRIES_MAX`] retries writing ends.
//!
//! The memory is bounded: the record that reaches the limit flushes
//! ([`crate::Tuning::unflushed_bytes_max`]). A checkpoint is captured when there are no unflushed
//! records, so that it refers to no location that could be lost.

use std::collections::VecDeque;

use block::BLOCK_BYTES;
use format::{Entry, LogPosition};

use crate::Commit;
use crate::log::in_flight::InFlight;
use crate::world::World;
use crate::writer::Writer;

/// How often in a row a flush may fail before writing ends: for about 30 s, with the pauses of the
/// disk between the tries.
pub(crate) const TRIES_MAX: u32 = 36;
/// After this many failures in a row the records go elsewhere. Each time takes segments.
const ELSEWHERE_AFTER: [u32; 2] = [2, 8];

/// For how many links there must be locations left for that: a record that a link already leads to
/// stays.
const WAYS_LEFT_MIN: usize = 3;

/// The unflushed records; see the module.
#[derive(Default)]
pub(crate) struct Unflushed {
    /// The records, oldest first.
    records: VecDeque<InFlight>,
    /// Where the log continues after what is durable, if there are any.
    from: Option<LogPosition>,
    bytes: u64,
    /// How many flushes of the log have failed in a row.
    tries: u32,
}

impl Unflushed {
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

impl InFlight {
    /// Returns the memory that it takes until it is durable.
    fn kept_bytes(&self) -> u64 {
        u64::from(self.blocks()) * BLOCK_BYTES + self.record.originals.len() as u64 * BLOCK_BYTES
    }
}

impl Writer {
    /// Returns whether the record at `index` is written with a flush although no caller waits for
    /// one: it reaches the limit of memory, or is the last that a checkpoint waits for.
    pub(crate) fn must_flush(&self, index: usize) -> bool {
        let bytes = self.unflushed.bytes + self.sealed[index].kept_bytes();
        let is_last = index + 1 == self.sealed.len();
        self.barrier && is_last || bytes >= self.tuning.unflushed_bytes_max
    }

    /// Returns whether a checkpoint waits only for a flush.
    pub(crate) fn wants_flush(&self) -> bool {
        self.barrier && self.is_idle() && !self.unflushed.is_empty()
    }

    /// Returns whether everything accepted is durable.
    pub(crate) fn is_flushed(&self) -> bool {
        self.is_idle() && self.unflushed.is_empty()
    }

    /// Returns the memory of records that no flush has covered.
    pub(crate) fn unflushed_bytes(&self) -> u64 {
        self.unflushed.bytes + self.sealed.iter().map(InFlight::kept_bytes).sum::<u64>()
    }

    /// Handles the end of a commit that was acknowledged early. It was the only one in flight.
    pub(crate) fn land_early(&mut self, world: &World, commit: &Commit, written: bool) {
        let Some(index) = self.sealed.iter().position(InFlight::is_flying) else { return };
        self.sealed[index].written = Some(written);
        let oldest = self.unflushed.records.front().unwrap_or(&self.sealed[index]);
        let has_lost = world.medium.disk.flush_failures() != oldest.flushes_failed;
        let is_mere_flush = self.sealed[index].header.is_empty();
        let flushes = commit.persist == sys::Persist::All;
        match (flushes, has_lost) {
            (true, true) => self.flush_failed(world, index),
            (true, false) if written => self.flushed_to(world, commit.lsn),
            (true, false) if is_mere_flush => self.flush_failed(world, index),
            (false, true) => drop(self.send_again(index)),
            // Refused at its location, or written: see `elsewhere`.
            _ => {}
        }
    }

    /// Drops records up to `lsn`, which are durable.
    fn flushed_to(&mut self, world: &World, lsn: u64) {
        self.log.flushed_to(lsn);
        self.unflushed.tries = 0;
        self.unflushed.from = None;
        self.unflushed.bytes = 0;
        for record in std::mem::take(&mut self.unflushed.records) {
            release(world, &record);
        }
    }

    fn flush_failed(&mut self, world: &World, index: usize) {
        self.unflushed.tries += 1;
        if self.unflushed.tries >= TRIES_MAX {
            self.failed = true;
            self.sealed[index].written = Some(false);
            return;
        }
        let first = self.send_again(index);
        let wanted = ELSEWHERE_AFTER.contains(&self.unflushed.tries);
        if wanted && !self.sealed[first].header.is_empty() && self.has_elsewhere(world, first) {
            let refused = &mut self.sealed[first];
            (refused.unsent, refused.written) = (false, Some(false));
        }
    }

    /// Writes all unflushed records again, up to the one at `index`, which has ended. Returns the
    /// index of the first.
    fn send_again(&mut self, index: usize) -> usize {
        let flushed_lsn = self.log.flushed_lsn();
        let lost = |sealed: &InFlight| sealed.lsn > flushed_lsn;
        let first = self.sealed.iter().position(lost).map_or(index, |first| first.min(index));
        let behind = self.sealed.split_off(first);
        self.sealed.append(&mut self.unflushed.records);
        self.sealed.extend(behind);
        for sealed in self.sealed.range_mut(first..) {
            (sealed.unsent, sealed.written) = (true, None);
        }
        self.unflushed.bytes = 0;
        if let Some(from) = self.unflushed.from.take() {
            self.log.land_again_from(from);
        }
        first
    }

    /// Returns whether the records from `first` on can go elsewhere, leaving segments that
    /// checkpoints need, and other locations in case that is refused: their current locations have
    /// accepted them.
    fn has_elsewhere(&mut self, world: &World, first: usize) -> bool {
        if self.entries_left(first) < WAYS_LEFT_MIN {
            return false;
        }
        let segments = self.segments_to_move(world, first);
        self.state.segments.free_count() >= segments + self.reserve_now(world)
    }

    /// Keeps a record that was written after `before` and acknowledged, until it is durable.
    pub(crate) fn keep_until_flushed(
        &mut self,
        world: &World,
        mut done: InFlight,
        before: LogPosition,
    ) {
        if done.header.is_empty() {
            return;
        }
        if done.lsn <= self.log.flushed_lsn() {
            return release(world, &done);
        }
        done.record.waiting.clear();
        self.unflushed.bytes += done.kept_bytes();
        self.unflushed.from.get_or_insert(before);
        self.unflushed.records.push_back(done);
    }
}

/// Releases a durable record: its data may be evicted from the cache.
fn release(world: &World, done: &InFlight) {
    let brought = done.record.entries.iter().flat_map(Entry::brought);
    world.unplaced.release(brought.map(|brought| brought.chunk));
}
