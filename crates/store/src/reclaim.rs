//! Reclaim: when free segments run short, the log segment with the least in it is emptied, so that
//! the next checkpoint frees it.
//!
//! The log describes itself: the records of a segment name the chunks that came with them, and a
//! chunk is live there if its row still says so. Live chunks join a new record with a `Relocate`
//! entry; their rows change, and no map is touched, however many clones share them.

use std::collections::BTreeSet;

use block::Frame;
use format::geometry::UNITS_PER_BLOCK;
use format::{ChunkRow, Codec, Entry, PLACE_UNIT_BYTES, Place, SegmentState};

use crate::StoreError;
use crate::pack::{Packed, leave, pack};
use crate::recovery::LogReader;
use crate::segments::reserve_segments;
use crate::store::Store;
use crate::verify::{Stored, read_chunks};
use crate::writer::{Relocation, Writer};

/// Blocks moved with one commit: 1 MiB, so that hosts' commits are held up little.
pub(crate) const MOVE_BLOCKS_MAX: usize = 256;

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

/// Nodes freed in one turn of housekeeping: the writer is held for some tenths of a millisecond.
const HOUSEKEEPING_NODES: usize = 8;

impl Store {
    /// One turn of what goes on in the background: freeing dropped parts of maps, bringing back the
    /// index behind a start, a checkpoint that is due, emptying a segment.
    pub fn maintain(&self) -> Result<Next, StoreError> {
        let more = self.housekeep() | self.world.refill_index();
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
            || self.world.refill_due()
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
    pub(crate) fn free_emptied(&self, wanted: usize) -> Result<bool, StoreError> {
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
    pub(crate) fn dead_segments_wanted(&self) -> usize {
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
    pub(crate) fn live_chunks(&self, segment: u32) -> Result<Vec<Stored>, StoreError> {
        let medium = &self.world.medium;
        let mut reader = LogReader::new(medium);
        let mut live = Vec::new();
        let mut block = 0;
        while let Some((header, entries)) = reader.record_at(segment, block)? {
            let payload_units = (block + u32::from(header.header_blocks)) * UNITS_PER_BLOCK;
            for brought in entries.iter().flat_map(Entry::brought) {
                let offset_units = payload_units + brought.payload_units;
                let place = Place { segment, offset_units };
                // What can't be read stays where it is.
                let row = self.world.chunks.get(medium, brought.chunk.0, ChunkRow::decode);
                if let Some(row) = row.ok().flatten().filter(|row| row.place == place) {
                    live.push(Stored { id: brought.chunk, row });
                }
            }
            block += header.total_blocks() as u32;
        }
        // Groups come behind the whole blocks of a record, but their entries between those.
        live.sort_unstable_by_key(|chunk| (chunk.row.place, chunk.row.group_index));
        Ok(live)
    }

    /// Reads some chunks, and commits them to their new place. `false`: the writer has no room.
    pub(crate) fn move_chunks(&self, chunks: &[Stored]) -> Result<bool, StoreError> {
        let relocation = self.relocation(chunks);
        if relocation.entries.is_empty() {
            return Ok(true);
        }
        self.relocate(relocation)
    }

    /// The chunks that can be read and are what they should be, with their content; those that may
    /// be compressed are, in groups of neighbours.
    fn relocation(&self, chunks: &[Stored]) -> Relocation {
        let mut relocation = Relocation::default();
        let mut found: Vec<(Stored, Frame)> = Vec::with_capacity(chunks.len());
        read_chunks(&self.world, chunks, &mut |chunk, read| {
            found.extend(read.ok().map(|frame| (*chunk, frame)));
        });
        let alike = |a: &(Stored, Frame), b: &(Stored, Frame)| {
            a.0.row.handling.uncompressed == b.0.row.handling.uncompressed
        };
        for run in found.chunk_by(alike) {
            let frames: Vec<&Frame> = run.iter().map(|(_, frame)| frame).collect();
            let packs = match run[0].0.row.handling.uncompressed {
                true => leave(frames.len()),
                false => pack(&frames, Codec::Zstd),
            };
            let mut rest = run;
            for pack in packs {
                let (blocks, behind) = rest.split_at(pack.blocks);
                rest = behind;
                match pack.packed {
                    Some(packed) => relocation.add_group(blocks, &packed),
                    None => relocation.add_blocks(blocks),
                }
            }
        }
        relocation
    }
}

impl Relocation {
    fn add_blocks(&mut self, blocks: &[(Stored, Frame)]) {
        for (chunk, frame) in blocks {
            let payload_units = self.frames.len() as u32 * UNITS_PER_BLOCK;
            self.frames.push(frame.clone());
            if let Some(Entry::Relocate { first, fingerprints, .. }) = self.entries.last_mut()
                && first.0 + fingerprints.len() as u64 == chunk.id.0
            {
                fingerprints.push(chunk.row.fingerprint);
                continue;
            }
            let fingerprints = vec![chunk.row.fingerprint];
            self.entries.push(Entry::Relocate { first: chunk.id, payload_units, fingerprints });
        }
    }

    fn add_group(&mut self, blocks: &[(Stored, Frame)], packed: &Packed) {
        let payload_units = (self.packed.len() as u64 / PLACE_UNIT_BYTES) as u32;
        self.packed.extend_from_slice(&packed.bytes);
        self.originals.extend(blocks.iter().map(|(chunk, frame)| (chunk.id, frame.clone())));
        let chunks = blocks.iter().map(|(chunk, _)| (chunk.id, chunk.row.fingerprint)).collect();
        let (codec, stored_units) = (packed.codec, packed.units());
        self.entries.push(Entry::RelocateGroup { payload_units, stored_units, codec, chunks });
    }
}
