//! Reclaim: when free segments run short, the log segment with the least in it is emptied, so that
//! the next checkpoint frees it.
//!
//! The log describes itself: the records of a segment name the chunks that came with them, and a
//! chunk is live there if its row still says so. Live chunks join a new record with a `Relocate`
//! entry; their rows change, and no map is touched, however many clones share them.

use std::collections::BTreeSet;

use block::{BLOCK_BYTES, Frame, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::{ChunkId, ChunkRow, Codec, Entry, Fingerprint, Place, SegmentState};

use crate::recovery::LogReader;
use crate::segments::reserve_segments;
use crate::store::Store;
use crate::writer::Writer;
use crate::writer::{Job, Submitted};
use crate::{Started, StoreError};

/// Blocks moved with one commit: 1 MiB, so that hosts' commits are held up little.
const MOVE_BLOCKS_MAX: usize = 256;

/// The segment that the log is in, and the one that follows it.
const LOG_SEGMENTS_MIN: usize = 2;

/// What is left to do in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, for now.
    Nothing,
    /// Something that can be spread over time: hosts are busy, and each turn holds them up.
    Gently,
    /// Something that is urgent, or that nobody minds.
    AtOnce,
}

/// A live chunk in the segment that is emptied.
#[derive(Clone, Copy, Debug)]
struct Live {
    id: ChunkId,
    place: Place,
    fingerprint: Fingerprint,
}

/// Nodes freed in one turn of housekeeping: the writer is held for some tenths of a millisecond.
const HOUSEKEEPING_NODES: usize = 8;

impl Store {
    /// One turn of what goes on in the background: freeing dropped parts of maps, a checkpoint that
    /// is due, emptying a segment.
    pub fn maintain(&self) -> Result<Next, StoreError> {
        let more = self.housekeep();
        if self.checkpoint_due() {
            self.checkpoint()?;
            return Ok(Next::AtOnce);
        }
        if self.reclaim_due() {
            let more = self.reclaim_segment()? || more;
            return Ok(if more { Next::AtOnce } else { Next::Nothing });
        }
        let idle = self.writer.lock().is_idle();
        Ok(match (more, idle) {
            (false, _) => Next::Nothing,
            (true, true) => Next::AtOnce,
            (true, false) => Next::Gently,
        })
    }

    /// Frees nodes that nothing names any more, some at a time; returns whether more are left.
    pub fn housekeep(&self) -> bool {
        let mut writer = self.writer.lock();
        if writer.failed || writer.state.pending.is_empty() {
            return false;
        }
        let mut editor = crate::map::Editor { world: &self.world, state: &mut writer.state };
        if editor.free_pending(HOUSEKEEPING_NODES).is_err() {
            writer.failed = true;
            return false;
        }
        !writer.state.pending.is_empty()
    }

    /// Whether [`Store::maintain`] would find something to do.
    pub fn maintenance_due(&self) -> bool {
        let writer = &mut *self.writer.lock();
        !writer.failed && !writer.state.pending.is_empty()
            || self.checkpoint_due_of(writer)
            || self.reclaim_due_of(writer)
    }

    /// Whether so few segments are free that one should be emptied: an eighth of the pool, or what
    /// the reserve is short of.
    pub fn reclaim_due(&self) -> bool {
        self.reclaim_due_of(&mut self.writer.lock())
    }

    fn reclaim_due_of(&self, writer: &mut Writer) -> bool {
        let count = self.world.medium.geometry().segment_count;
        !writer.failed
            && writer.state.segments.free_count() < (count / 8).max(2 * reserve_segments(count))
    }

    /// Empties the log segment with the least live data, if that gains anything, and writes a
    /// checkpoint when enough is empty. Returns whether something was done.
    pub fn reclaim_segment(&self) -> Result<bool, StoreError> {
        let Some(segment) = self.choose_segment() else { return self.free_emptied(1) };
        let live = self.live_chunks(segment)?;
        for batch in live.chunks(MOVE_BLOCKS_MAX) {
            if !self.move_chunks(batch)? {
                return self.free_emptied(1);
            }
        }
        let left = self.writer.lock().state.segments.row(segment).live_units;
        if left > 0 {
            // Something in it can't be read, or is not told by its records: it is left alone.
            self.writer.lock().unreclaimable.insert(segment);
        }
        self.free_emptied(self.dead_segments_wanted())?;
        Ok(true)
    }

    /// Writes a checkpoint if that frees `wanted` segments, or lets as many be emptied that
    /// recovery would read now. Returns whether it did.
    fn free_emptied(&self, wanted: usize) -> Result<bool, StoreError> {
        let gained = {
            let writer = self.writer.lock();
            let log = writer.log_segments.len().saturating_sub(LOG_SEGMENTS_MIN);
            writer.state.segments.dead(&writer.log_segments).len() + log
        };
        if gained < wanted {
            return Ok(false);
        }
        self.checkpoint()?;
        Ok(true)
    }

    /// How many emptied segments make a checkpoint worth its while.
    fn dead_segments_wanted(&self) -> usize {
        (self.world.medium.geometry().segment_count as usize / 64).clamp(2, 16)
    }

    /// The log segment with the least live data. Those that recovery would read stay, and those
    /// that are nearly all live are not worth moving.
    fn choose_segment(&self) -> Option<u32> {
        let geometry = self.world.medium.geometry();
        let segment_units = geometry.segment_bytes / format::PLACE_UNIT_BYTES;
        let mut writer = self.writer.lock();
        // With hosts about to be refused, every block gained is worth the moving.
        let short =
            writer.state.segments.free_count() <= reserve_segments(geometry.segment_count) + 1;
        let gain = if short { segment_units / 32 } else { segment_units / 8 };
        let keep: &BTreeSet<u32> = &writer.log_segments;
        writer
            .state
            .segments
            .rows()
            .filter(|(segment, row)| {
                row.state == SegmentState::Log
                    && row.live_units > 0
                    && u64::from(row.live_units) + gain < segment_units
                    && !keep.contains(segment)
                    && !writer.unreclaimable.contains(segment)
            })
            .min_by_key(|(_, row)| row.live_units)
            .map(|(segment, _)| segment)
    }

    /// The live chunks that the records of a segment brought, in the order of their places.
    fn live_chunks(&self, segment: u32) -> Result<Vec<Live>, StoreError> {
        let medium = &self.world.medium;
        let mut reader = LogReader::new(medium);
        let mut live = Vec::new();
        let mut block = 0;
        while let Some((header, entries)) = reader.record_at(segment, block)? {
            let payload_block = block + u32::from(header.header_blocks);
            for entry in &entries {
                let (Entry::Store { first, payload_units, fingerprints, .. }
                | Entry::Relocate { first, payload_units, fingerprints }) = entry
                else {
                    continue;
                };
                for index in 0..fingerprints.len() as u32 {
                    let offset_units = (payload_block + index) * UNITS_PER_BLOCK + payload_units;
                    let place = Place { segment, offset_units };
                    let id = ChunkId(first.0 + u64::from(index));
                    // What can't be read stays where it is.
                    let row = self.world.chunks.get(medium, id.0, ChunkRow::decode).ok().flatten();
                    if let Some(row) =
                        row.filter(|row| row.place == place && row.codec == Codec::Raw)
                    {
                        live.push(Live { id, place, fingerprint: row.fingerprint });
                    }
                }
            }
            block += header.total_blocks() as u32;
        }
        Ok(live)
    }

    /// Reads some chunks, and commits them to their new place. `false`: the writer has no room.
    fn move_chunks(&self, chunks: &[Live]) -> Result<bool, StoreError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut frames: Vec<Frame> = Vec::new();
        for (chunk, frame) in self.read_chunks(chunks) {
            let payload_units = frames.len() as u32 * UNITS_PER_BLOCK;
            frames.push(frame);
            if let Some(Entry::Relocate { first, fingerprints, .. }) = entries.last_mut()
                && first.0 + fingerprints.len() as u64 == chunk.id.0
            {
                fingerprints.push(chunk.fingerprint);
                continue;
            }
            let fingerprints = vec![chunk.fingerprint];
            entries.push(Entry::Relocate { first: chunk.id, payload_units, fingerprints });
        }
        if frames.is_empty() {
            return Ok(true);
        }
        let token = self.waiting_token();
        let job = Job::Relocate { entries, frames };
        let submitted = self.writer.lock().submit(&self.world, token, job);
        let started = match submitted {
            Submitted::Done(Err(block::VolumeError::NoSpace)) => return Ok(false),
            Submitted::Done(reply) => Started::Done(reply),
            _ => Started::Queued,
        };
        self.settle(started, token)?;
        self.hand_over();
        Ok(true)
    }

    /// The chunks that can be read and are what they should be, with their content.
    fn read_chunks(&self, chunks: &[Live]) -> Vec<(Live, Frame)> {
        let medium = &self.world.medium;
        let mut found = Vec::with_capacity(chunks.len());
        let mut rest = chunks;
        while let Some(first) = rest.first() {
            let follows = |index: usize| {
                let units = first.place.offset_units + index as u32 * UNITS_PER_BLOCK;
                rest[index].place.offset_units == units
            };
            let count = (1..rest.len()).find(|&index| !follows(index)).unwrap_or(rest.len());
            let (run, behind) = rest.split_at(count);
            rest = behind;
            let mut frames: Vec<FrameMut> = run.iter().map(|_| FrameMut::stale()).collect();
            let offset = medium.geometry().offset_bytes(first.place);
            debug_assert!(offset.is_multiple_of(BLOCK_BYTES));
            if medium.disk.read(offset, &mut frames).is_err() {
                continue;
            }
            for (chunk, frame) in run.iter().zip(frames) {
                let frame = frame.freeze();
                if self.world.is_intact(&frame, chunk.fingerprint) {
                    found.push((*chunk, frame));
                }
            }
        }
        found
    }
}
