//! The writer: the only owner of the log tail and of all mutable state.
//!
//! Requests join the *open record*. When the device can take another commit, the record is sealed
//! and becomes a *commit* in flight; when it and all earlier ones are durable, its entries are
//! applied and its requests acknowledged. With `durability = "flush"` entries are applied and
//! acknowledged when they join, and the record is written afterwards.
//!
//! The writer consists of the log tail, the state of reclaim, and the queues of waiting jobs; each
//! states its invariants in its own module. What spans them is here:
//!
//! * `job`, `join`, `estimate`, `ids`, `grafts`: how jobs join the open record,
//! * `queues`, `bulk`, `revive`: jobs that wait and continue; `starved`, `need`, `room`,
//!   `segment_table`: waiting for space,
//! * `commit`, `elsewhere`, `quiet`, `unflushed`: sealing a record and what follows.
//!
//! Invariants:
//! 1. A request is acknowledged when its record and all earlier ones are durable or, with
//!    `durability = "flush"`, before they are written.
//! 2. Nothing after a lost record is applied: recovery would not find it either.

pub(crate) mod bulk;
pub(crate) mod commit;
pub(crate) mod elsewhere;
pub(crate) mod estimate;
pub(crate) mod grafts;
pub(crate) mod ids;
pub(crate) mod job;
pub(crate) mod join;
pub(crate) mod need;
pub(crate) mod queues;
pub(crate) mod quiet;
pub(crate) mod revive;
pub(crate) mod room;
pub(crate) mod segment_table;
pub(crate) mod starved;
pub(crate) mod unflushed;

use std::collections::VecDeque;

use block::VolumeError;
use format::log::header_blocks;
use format::record_places::rows_max;
use format::{ChunkId, LogPosition};

use crate::chunks::medium::Medium;
use crate::edits::edit::Edit;
use crate::edits::entries::{contains, entry_target};
use crate::log::in_flight::InFlight;
use crate::log::record::Record;
use crate::log::tail::Tail;
use crate::map::walk::entry_of;
use crate::space::next_checkpoint::NextCheckpoint;
use crate::space::pace::Pace;
use crate::space::supply::Supply;
use crate::space::widths::SegmentWidths;
use crate::world::view::View;
use crate::world::{State, World};
use crate::writer::grafts::Applied;
use crate::writer::queues::Queues;
use crate::writer::unflushed::Unflushed;
use crate::{Durability, OpenOptions, StoreError, Token, Tuning};
use job::{Answer, Job, Submitted};

/// The writer.
pub(crate) struct Writer {
    pub(crate) state: State,
    pub(crate) log: Tail,
    durability: Durability,
    tuning: Tuning,
    open: Record,
    /// An empty record, which becomes the open one when that is sealed.
    spare: Record,
    /// Sealed records that are not applied yet, oldest first: in flight or landed.
    sealed: VecDeque<InFlight>,
    /// Jobs that wait to join the open record.
    pub(crate) queues: Queues,
    /// The state of reclaim.
    pub(crate) supply: Supply,
    /// What is known of the room for the next checkpoint.
    pub(crate) next_checkpoint: NextCheckpoint,
    /// How fast hosts may write while space is short.
    pub(crate) pace: Pace,
    applied_grafts: Applied,
    /// Records that were acknowledged early and are not durable yet.
    unflushed: Unflushed,
    /// The store has failed; nothing more is accepted.
    failed: bool,
    /// A record was lost, or could not be applied; so nothing after it is applied either.
    broken: bool,
    /// Set while a checkpoint waits until memory and medium agree (`durability = "flush"`).
    barrier: bool,
    /// Staged chunks that were abandoned and are still to be released: first id and count.
    released: Vec<(ChunkId, u32)>,
}

impl Writer {
    pub(crate) fn new(
        state: State,
        epoch: u64,
        options: &OpenOptions,
        position: LogPosition,
        medium: &Medium,
    ) -> Self {
        Self {
            state,
            log: Tail::new(epoch, position, medium),
            durability: options.durability,
            tuning: options.tuning,
            open: Record::default(),
            spare: Record::default(),
            sealed: VecDeque::new(),
            queues: Queues::default(),
            supply: Supply::default(),
            next_checkpoint: NextCheckpoint::new(medium.metadata_blocks()),
            pace: Pace::new(options.tuning.pace_bytes_max),
            applied_grafts: Applied::default(),
            unflushed: Unflushed::default(),
            failed: false,
            broken: false,
            barrier: false,
            released: Vec::new(),
        }
    }

    /// Sets the widths of segments; none of those that change can be opened now.
    pub(crate) fn widths_changed(&mut self, world: &World, widths: &SegmentWidths) {
        self.state.segments.set_widths(widths);
        let metadata_blocks = world.medium.metadata_blocks();
        if metadata_blocks != self.next_checkpoint.segment_blocks() {
            self.next_checkpoint.fill_with(metadata_blocks);
            self.state.segments.fill_with(metadata_blocks);
        }
    }

    /// Returns whether the store has failed, so that nothing more is accepted.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Marks the store as failed, permanently.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// Marks the store as failed if memory and medium differ after an error.
    pub(crate) fn fail_if(&mut self, is_wrong: bool) {
        self.failed |= is_wrong;
    }

    /// Blocks jobs until the barrier is lowered.
    pub(crate) fn raise_barrier(&mut self) {
        self.barrier = true;
    }

    /// Lowers the barrier; returns whether there was one.
    pub(crate) fn lower_barrier(&mut self) -> bool {
        std::mem::take(&mut self.barrier)
    }

    /// Returns staged chunks that were abandoned and are still to be released: first id and count.
    pub(crate) fn released(&self) -> &[(ChunkId, u32)] {
        &self.released
    }

    /// Gives up releasing some of those: they stay until a recovery.
    pub(crate) fn leave_released(&mut self, lost: &[(ChunkId, u32)]) {
        self.released.retain(|run| !lost.contains(run));
    }

    /// Returns whether entries are applied and acknowledged when they join.
    pub(crate) fn early(&self) -> bool {
        self.durability == Durability::Flush
    }

    /// Returns whether nothing waits and nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.sealed.is_empty() && self.open.is_empty()
    }

    /// Returns the record that collects changes.
    #[cfg(test)]
    pub(crate) fn open_record(&self) -> &Record {
        &self.open
    }

    /// Returns whether a checkpoint waits until memory and medium agree.
    #[cfg(test)]
    pub(crate) fn has_barrier(&self) -> bool {
        self.barrier
    }

    /// Returns whether anything unreferenced is to be freed.
    pub(crate) fn has_to_free(&self) -> bool {
        !self.state.pending.is_empty() || !self.released.is_empty()
    }

    /// Allows eviction of metadata that only applied changes were planned with.
    pub(crate) fn turn_plans(&self, world: &World) {
        let sealed = self.sealed.iter().filter(|commit| !commit.applied);
        let records = sealed.map(|commit| &commit.record).chain([&self.open]);
        world.memory.plans.turn(records.filter_map(|record| record.plan).min());
    }

    /// Returns whether a commit is in flight, or still to be applied.
    pub(crate) fn is_leading(&self) -> bool {
        !self.sealed.is_empty()
    }

    /// Returns whether a commit can be taken.
    pub(crate) fn wants_commit(&self) -> bool {
        if self.failed {
            return false;
        }
        if self.sealed.iter().any(|sealed| sealed.unsent) {
            return !self.early() || !self.sealed.iter().any(InFlight::is_flying);
        }
        self.wants_flush() || !self.open.is_empty() && !self.has_refused() && self.has_free_slot()
    }

    /// Returns whether the device can take another commit: while one is in flight, the next one is
    /// written when it is as large. Many small ones would cost more than they gain.
    fn has_free_slot(&self) -> bool {
        let flying = self.sealed.iter().filter(|commit| commit.is_flying());
        let sizes = flying.map(|commit| commit.record.waiting.len());
        let (count, largest) =
            sizes.fold((0, 0), |(count, most), size| (count + 1, usize::max(most, size)));
        // A flush covers what was written before it began: with early answers, where only some
        // records flush, nothing may overtake.
        let most = if self.early() { 1 } else { self.tuning.commits_in_flight_max };
        count == 0 || count < most && self.open.waiting.len() >= largest
    }

    /// Returns whether requests wait for more than the next commit.
    pub(crate) fn has_waiting(&self) -> bool {
        self.queues.has_ready() || self.queues.has_starved()
    }

    /// Returns a request whose thread could be asked to take the next commit.
    pub(crate) fn first_waiting(&self) -> Option<Token> {
        self.open.waiting.first().copied()
    }

    /// Takes a job.
    pub(crate) fn submit(&mut self, world: &World, token: Token, job: Job) -> Submitted {
        if self.failed {
            return Submitted::Done(Err(VolumeError::WriteFailed));
        }
        if self.must_wait(world) || self.is_behind_others(&job) {
            self.put_off(token, job);
            return Submitted::Queued;
        }
        self.join(world, token, job)
    }

    /// Returns whether nothing may join before a checkpoint was captured, or is written.
    pub(crate) fn must_wait(&self, world: &World) -> bool {
        self.barrier || world.memory.is_full()
    }

    pub(crate) fn has_room(&self, blocks: usize, bytes: usize) -> bool {
        let empty = self.open.is_empty();
        let rest = self.log.segment_rest_blocks();
        let (most, header) = (self.tuning.record_blocks_max, self.tuning.header_blocks_max());
        let cut = rest >= self.tuning.segment_rest_blocks_min + header;
        let limit = if cut { (rest - header) as usize } else { most };
        empty
            || self.open.payload_blocks() + blocks <= limit.min(most)
                && self.open.entries_bytes + bytes <= self.tuning.record_entries_bytes_max
    }

    /// Returns the maximum number of rows of the next record, given the bytes of its entries, each
    /// with its length, and the blocks of its payload.
    pub(crate) fn next_record_rows(&self, entries_bytes: usize, payload_blocks: usize) -> u32 {
        let header = header_blocks(entries_bytes, self.log.end_own().len());
        rows_max(self.log.columns().into(), header + payload_blocks as u32)
    }

    /// Returns whether the edit has read a block that an unapplied record changes, or concerns a
    /// volume that such a record resizes or destroys.
    pub(crate) fn awaits_others(&self, edit: &Edit) -> bool {
        if self.early() {
            return false;
        }
        let records = self.sealed.iter().map(|commit| &commit.record).chain([&self.open]);
        if records.flat_map(|record| &record.reshaped).any(|volume| edit.concerns(*volume)) {
            return true;
        }
        if edit.expectations.is_empty() {
            return false;
        }
        let unapplied = self.sealed.iter().flat_map(|commit| &commit.record.entries);
        let mut changed = unapplied.chain(&self.open.entries).filter_map(entry_target);
        changed.any(|(volume, range)| {
            edit.expectations
                .iter()
                .any(|(wanted, block, _)| *wanted == volume && contains(range, *block))
        })
    }

    /// Returns whether the map is unchanged since the edit's blocks were read.
    pub(crate) fn is_current(&self, world: &World, edit: &Edit) -> Result<bool, VolumeError> {
        let view = View::asking(world, &edit.asked);
        for (id, block, expected) in &edit.expectations {
            let Some(volume) = world.volume(*id) else { return Ok(false) };
            let guard = volume.map.read();
            let Some(map) = guard.as_ref() else { return Ok(false) };
            let lost = VolumeError::Medium { sector: block.sector() };
            if block.0 >= map.size_blocks {
                return Ok(false);
            }
            match entry_of(view, map, block.0) {
                Ok(found) if found == *expected => {}
                // It was evicted since: it is read again, like everything that has changed.
                Ok(_) | Err(StoreError::Absent) => return Ok(false),
                Err(_) => return Err(lost),
            }
        }
        Ok(true)
    }

    /// Returns the answers to all waiting jobs, if the store has failed and no commit is in flight
    /// whose end would answer them.
    pub(crate) fn abandon(&mut self, world: &World) -> Vec<Answer> {
        let mut answers = Vec::new();
        if self.failed && self.sealed.iter().any(|sealed| sealed.unsent) {
            answers = self.apply_landed(world);
        }
        if self.failed && !self.is_leading() {
            self.take_waiting(world, &mut answers);
        }
        answers
    }
}
