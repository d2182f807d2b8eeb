//! Moving records that the device refuses to another location in the log.
//!
//! A write that fails permanently at its location does not end writing: the location may be bad,
//! and the device good. The record goes to the next segment, and all records sealed after it
//! follow, because each record names the previous one. The rest of the old segment is not used
//! before the segment was freed.
//!
//! # How recovery finds it
//! A record is where the previous one ends, or the first of the next segment, at one of its
//! [`entry_blocks`]. A record that is refused at the first of those is not moved to the second,
//! where it may not fit. Instead a *link* goes there, an empty record that names the following
//! segment, and so on. So a segment is usable for the log if one of these blocks is.
//!
//! These locations are ordered, and the log never goes back in this order. A refused write may have
//! had any effect, so several of them may contain something valid; the last one counts, because
//! only records after it were ever acknowledged ([`crate::log::replay::next_record`]). Records
//! after the others are never mistaken for a part of the log: they name the previous record by its
//! seal, and if more than the first of them was moved, its seal differs.
//!
//! # If there is no other location
//! A pool may be so full that no segment is free, or each location at which the next one could
//! begin may have refused its write. Then the record is retried at its own location, because the
//! cause may be temporary, or reclaim may free a segment. That ends when the device gives up
//! ([`sys::Disk::has_given_up`]), or after [`TRIES_IN_PLACE_MAX`] tries.
//!
//! # When
//! Records are moved only when none is in flight: earlier ones may be refused as well, and later
//! ones may be landing at the new location. Until then none is sealed, and no record after a
//! refused one is applied or acknowledged. After a crash in between, the log contains all that was
//! acknowledged, and perhaps more: at the old locations or at the new ones, which have the same
//! entries.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use format::{ChunkRow, Entry, LogPosition, Place, SegmentState};

use crate::StoreError;
use crate::log::in_flight::InFlight;
use crate::log::log_reader::entry_blocks;
use crate::log::record::Record;
use crate::world::World;
use crate::writer::Writer;

/// How often a record is retried at its location while there is no other: for about 30 s, because
/// each try takes 70 ms while the device accepts other writes.
const TRIES_IN_PLACE_MAX: u32 = 400;

impl Writer {
    /// Returns whether a record was refused and not yet moved.
    pub(crate) fn has_refused(&self) -> bool {
        self.sealed.iter().any(|sealed| sealed.written == Some(false))
    }

    /// Moves refused records, and all after them, as soon as none is in flight. Returns `false` if
    /// there is no other location, or the store has failed.
    pub(crate) fn place_anew(&mut self, world: &World) -> bool {
        if self.failed {
            // They are no longer accepted.
            for sealed in self.sealed.iter_mut().filter(|sealed| sealed.unsent) {
                (sealed.unsent, sealed.written) = (false, Some(false));
            }
        }
        let Some(first) = self.sealed.iter().position(|sealed| sealed.written == Some(false))
        else {
            return true;
        };
        if self.failed {
            return false;
        }
        if self.sealed.iter().any(InFlight::is_flying) {
            return true;
        }
        if !self.has_other_places(world, first) && self.keep_in_place(world, first) {
            return true;
        }
        let moved = self.move_from(world, first).unwrap_or(false);
        self.failed |= !moved;
        moved
    }

    /// Returns whether the records from `first` on fit free segments that can be reached.
    fn has_other_places(&mut self, world: &World, first: usize) -> bool {
        self.entries_left(first) > 0
            && self.state.segments.free_count() >= self.segments_to_move(world, first)
    }

    /// Returns how many locations are left for a link that leads past the record at `first`.
    pub(crate) fn entries_left(&self, first: usize) -> usize {
        let at = self.sealed[first].at;
        if at.segment == self.position_before(first).segment {
            return usize::MAX;
        }
        entry_blocks(self.log.segment_rows()).filter(|block| *block > at.block).count()
    }

    /// Returns where the record before the one at `first` ends.
    fn position_before(&self, first: usize) -> LogPosition {
        first.checked_sub(1).map_or(self.log.position(), |index| self.sealed[index].next)
    }

    /// Returns the copy of its predecessor that the record at `first` contains.
    fn own_before(&self, first: usize) -> Arc<[u8]> {
        let before = self.sealed.range(..first).rev().find(|sealed| !sealed.header.is_empty());
        before.map_or(self.log.position_own(), |sealed| &sealed.own).clone()
    }

    /// Returns how many segments are needed to move the records from `first` on.
    pub(crate) fn segments_to_move(&self, world: &World, first: usize) -> u32 {
        let segment_rows = self.log.segment_rows();
        // One is opened after the last, and one more where a link is.
        let (mut segments, mut used) = (3, 0);
        for sealed in self.sealed.range(first..) {
            // Its copy of the previous record may then be another, longer one; and the segment may
            // be narrower.
            let columns = self.log.columns_of(sealed.at.segment);
            let rows = world.medium.rows_in_narrowest(sealed.rows(), columns);
            let rows = rows + self.tuning.header_blocks_max() / 2;
            let rows = rows.min(segment_rows);
            if used + rows > segment_rows {
                (segments, used) = (segments + 1, 0);
            }
            used += rows;
        }
        segments
    }

    /// Retries the refused records, from `first` on, at their locations. Returns `false` if that is
    /// useless.
    fn keep_in_place(&mut self, world: &World, first: usize) -> bool {
        let is_over = self.sealed[first].kept_in_place >= TRIES_IN_PLACE_MAX;
        if is_over || world.medium.disk.has_given_up() {
            return false;
        }
        self.sealed[first].kept_in_place += 1;
        for sealed in self.sealed.range_mut(first..).filter(|sealed| sealed.written == Some(false))
        {
            (sealed.unsent, sealed.written) = (true, None);
        }
        true
    }

    fn move_from(&mut self, world: &World, first: usize) -> Result<bool, StoreError> {
        let chain = self.sealed.iter().map(|sealed| sealed.at).chain([self.log.end()]);
        let followers: BTreeMap<u32, u32> = chain.map(|at| (at.segment, at.next_segment)).collect();
        let before = self.position_before(first);
        let refused = self.sealed[first].at;
        // If the write fails, none of these is present.
        for sealed in self.sealed.range_mut(first..) {
            (sealed.unsent, sealed.written) = (false, Some(false));
        }
        let behind: VecDeque<InFlight> = self.sealed.drain(first..).collect();
        // Drops links: their destinations are no longer used.
        self.sealed.extend(behind.into_iter().filter(|sealed| !sealed.is_link()));
        let mut from = before;
        self.log.seal_again_from(from);
        if refused.segment != before.segment {
            let mut entries = entry_blocks(self.log.segment_rows());
            let Some(block) = entries.find(|block| *block > refused.block) else {
                return Ok(false);
            };
            let link = self.link(world, LogPosition { block, ..refused }, &self.own_before(first));
            from = link.next;
            self.log.sealed(&link);
            self.sealed.insert(first, link);
        }
        let Some(mut at) = self.enter(from, &followers) else { return Ok(false) };
        let begin = self.sealed.len().min(first + usize::from(from != before));
        for index in begin..self.sealed.len() {
            let before = self.own_before(index);
            let mut record = std::mem::take(&mut self.sealed[index].record);
            let old = self.sealed[index].brought_to(&record);
            let mut columns = self.log.columns_of(self.sealed[index].at.segment);
            let mut rows_in = |record: &mut Record, segment| {
                let geometry = world.medium.geometry_of(segment);
                if std::mem::replace(&mut columns, geometry.columns) != geometry.columns {
                    record.lay_anew(geometry.columns);
                }
                let blocks = record.header_blocks(&before) + record.frames.len() as u32;
                geometry.rows_for(blocks.into()) as u32
            };
            if at.block + rows_in(&mut record, at.segment) > self.log.segment_rows() {
                let Some(next) = self.enter(at, &followers) else { return Ok(false) };
                at = next;
                rows_in(&mut record, at.segment);
            }
            let moved = self.seal(world, record, at, &before);
            at = moved.next;
            if moved.applied {
                self.move_early(world, &moved, &old)?;
            }
            self.log.sealed(&moved);
            self.sealed[index] = moved;
        }
        self.log.count_move();
        Ok(true)
    }

    /// Creates a record that only says where the log continues.
    pub(crate) fn link(&self, world: &World, at: LogPosition, before: &[u8]) -> InFlight {
        self.seal_with(world, Record::default(), at, before, self.early())
    }

    /// Returns the beginning of the next segment. The one after it may have been opened already.
    fn enter(&mut self, at: LogPosition, followers: &BTreeMap<u32, u32>) -> Option<LogPosition> {
        let segment = at.next_segment;
        let next_segment = match followers.get(&segment) {
            Some(next) => *next,
            None => {
                let opened = self.state.segments.open(SegmentState::Log, at.lsn)?;
                self.log.check_opened(opened);
                opened
            }
        };
        self.log.note_segment(segment);
        self.log.note_segment(next_segment);
        Some(LogPosition { segment, block: 0, next_segment, ..at })
    }

    /// Updates the locations of chunks of a record that was applied early and moved, unless they
    /// have another location or are gone by now.
    fn move_early(
        &mut self,
        world: &World,
        moved: &InFlight,
        old: &[Place],
    ) -> Result<(), StoreError> {
        let new = moved.brought_to(&moved.record);
        let brought = moved.record.entries.iter().flat_map(Entry::brought);
        for (brought, (old, new)) in brought.zip(old.iter().copied().zip(new)) {
            let units = world.chunks.update(&world.medium, brought.chunk.0, |raw| {
                let mut row = ChunkRow::decode(raw).filter(|row| row.place == old)?;
                row.place = new;
                row.encode(raw);
                Some(row.share_units())
            })?;
            if let Some(units) = units {
                self.state.segments.sub_live(old, units)?;
                self.state.segments.add_live(new, units)?;
            }
        }
        Ok(())
    }
}
