//! Moving chunks to another location, for reclaim or the background pass.
//!
//! The log describes itself: the records of a segment have the ids of their chunks, and a chunk is
//! live there if its row still says so. Live chunks join a new record with a `Relocate` entry;
//! their rows change, and no map is touched, however many clones share them.

use std::collections::VecDeque;

use block::{Frame, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::{ChunkRow, Codec, Entry, PLACE_UNIT_BYTES, Place};

use crate::StoreError;
use crate::chunks::groups::Image;
use crate::chunks::medium::Medium;
use crate::chunks::pack::{Packed, leave, pack};
use crate::chunks::verify::{Stored, read_chunks};
use crate::log::ahead::WINDOW_BLOCKS;
use crate::log::copied_header::places_of;
use crate::log::log_reader::{LogReader, ReadRecord};
use crate::log::relocation::Relocation;
use crate::upkeep::Store;
use crate::upkeep::read_ahead::{Claim, ReadAhead};
use crate::world::World;

/// Segments up to this size are read as a whole when they are emptied: those of pools up to 4 TiB.
const IMAGE_BYTES_MAX: u64 = 64 << 20;

/// Returns the live chunks of the records of a segment, in the order of their locations.
pub(crate) fn live_chunks(world: &World, segment: u32) -> Result<Vec<Stored>, StoreError> {
    live_chunks_in(&mut LogReader::new(&world.medium), world, segment)
}

/// Reads a whole segment, a piece at a time, before it is emptied, so that no caller waits for all
/// of it, and nothing is read again when it is moved.
pub(crate) struct SegmentReader {
    pub(crate) segment: u32,
    /// Its first record.
    pub(crate) opened_lsn: u64,
    read: Vec<FrameMut>,
    /// The following reads in flight, if they are not waited for at once.
    under_way: Option<(Claim, VecDeque<u64>)>,
    /// The number of requested blocks.
    asked_blocks: u32,
    /// Whether a part can't be read: then it is read in pieces when they are needed.
    is_bad: bool,
}

impl SegmentReader {
    /// Creates one that has read nothing.
    pub(crate) fn new(segment: u32, opened_lsn: u64) -> Self {
        let (read, under_way, asked_blocks, is_bad) = Default::default();
        Self { segment, opened_lsn, read, under_way, asked_blocks, is_bad }
    }

    /// Reads up to `blocks` further blocks, or starts reading them.
    pub(crate) fn read_some(&mut self, medium: &Medium, ahead: &mut ReadAhead, blocks: u32) {
        let geometry = medium.geometry_of(self.segment);
        if geometry.segment_bytes() > IMAGE_BYTES_MAX {
            return;
        }
        if self.under_way.is_none() {
            self.under_way = ahead.claim(medium).map(|claim| (claim, VecDeque::new()));
        }
        let end = geometry.blocks_per_segment().min(self.asked_blocks.saturating_add(blocks));
        while self.asked_blocks < end && !self.is_bad {
            let count = WINDOW_BLOCKS.min(end - self.asked_blocks);
            let mut piece: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
            let place = Place::of_block(self.segment, 0).plus_blocks(self.asked_blocks);
            if let Some((claim, numbers)) = &mut self.under_way {
                let Some(number) = ahead.queue(claim, place, piece) else {
                    // Another thread continues with it.
                    self.take(ahead);
                    continue;
                };
                numbers.push_back(number);
            } else {
                self.is_bad = medium.disk.read(place, &mut piece).is_err();
                self.read.append(&mut piece);
            }
            self.asked_blocks += count;
        }
        if let Some((claim, _)) = &self.under_way {
            ahead.start(claim);
        }
    }

    /// Waits for what is in flight. What failed is still to be read, and what follows it.
    fn take(&mut self, ahead: &mut ReadAhead) {
        if let Some((claim, numbers)) = self.under_way.take() {
            let pieces = numbers.into_iter().map_while(|number| ahead.end(&claim, number));
            self.read.extend(pieces.flatten());
            self.asked_blocks = self.read.len() as u32;
        }
    }

    /// Reads the rest. Returns the live chunks, and their content, if it could be read as a whole.
    pub(crate) fn finish(
        mut self,
        world: &World,
        ahead: &mut ReadAhead,
    ) -> Result<(Vec<Stored>, Image), StoreError> {
        let medium = &world.medium;
        self.read_some(medium, ahead, u32::MAX);
        self.take(ahead);
        // Nothing is left, unless some of it could not be read.
        self.read_some(medium, &mut ReadAhead::none(), u32::MAX);
        if self.is_bad || self.read.is_empty() {
            return Ok((live_chunks(world, self.segment)?, Image::default()));
        }
        let mut reader = LogReader::over(medium, self.segment, self.read);
        let live = live_chunks_in(&mut reader, world, self.segment)?;
        let image = reader.into_image();
        let is_whole = image.place == Place::of_block(self.segment, 0)
            && image.frames.len() == medium.geometry_of(self.segment).blocks_per_segment() as usize;
        Ok((live, if is_whole { image } else { Image::default() }))
    }
}

fn live_chunks_in(
    reader: &mut LogReader<'_>,
    world: &World,
    segment: u32,
) -> Result<Vec<Stored>, StoreError> {
    let medium = &world.medium;
    let mut live = Vec::new();
    let mut row = 0;
    while let Some(ReadRecord { header, entries, .. }) = reader.record_or_copy_at(segment, row)? {
        let Some(places) = places_of(medium.geometry_of(segment), (segment, row), &header) else {
            break;
        };
        for brought in entries.iter().flat_map(Entry::brought) {
            let place = places.payload(brought.payload_units);
            // What can't be read stays where it is.
            let row = world.chunks.get(medium, brought.chunk.0, ChunkRow::decode);
            if let Some(row) = row.ok().flatten().filter(|row| row.place == place) {
                live.push(Stored { id: brought.chunk, row });
            }
        }
        row += places.rows();
    }
    // Groups are after the whole blocks of a record, but their entries are between those.
    live.sort_unstable_by_key(|chunk| (chunk.row.place, chunk.row.group_index));
    Ok(live)
}

impl Store {
    /// Returns them as [`live_chunks`] does.
    pub(crate) fn live_chunks(&self, segment: u32) -> Result<Vec<Stored>, StoreError> {
        live_chunks(&self.world, segment)
    }

    /// Reads those chunks that are still at their location, and commits them to a new one. Returns
    /// `false` if the writer has no room.
    pub(crate) fn move_chunks(&self, chunks: &[Stored]) -> Result<bool, StoreError> {
        self.move_chunks_from(chunks, &Image::default())
    }

    /// Does the same as [`Store::move_chunks`], with their content from an image of their segment.
    pub(crate) fn move_chunks_from(
        &self,
        chunks: &[Stored],
        image: &Image,
    ) -> Result<bool, StoreError> {
        let relocation = {
            // Before the rows are read: see `Fetch`.
            let _token = self.world.reader_token();
            let still: Vec<Stored> =
                chunks.iter().copied().filter(|chunk| self.is_still(chunk)).collect();
            self.relocation(&still, image)
        };
        if relocation.entries.is_empty() {
            return Ok(true);
        }
        self.relocate(relocation)
    }

    /// Returns whether a chunk is still where it was found: it may have been freed or moved since.
    pub(super) fn is_still(&self, chunk: &Stored) -> bool {
        let row = self.world.chunks.get(&self.world.medium, chunk.id.0, ChunkRow::decode);
        row.ok().flatten().is_some_and(|row| row.place == chunk.row.place)
    }

    /// Returns the intact chunks with their content, compressed in groups of neighbors where that
    /// is allowed.
    fn relocation(&self, chunks: &[Stored], image: &Image) -> Relocation {
        let mut relocation = Relocation::default();
        let mut found: Vec<(Stored, Frame)> = Vec::with_capacity(chunks.len());
        read_chunks(&self.world.medium, chunks, image, &mut |chunk, read| {
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
