//! Finding and reading the content of blocks: from the map to chunk rows to the cache or the
//! device.

use std::sync::Arc;

use block::{
    BlockNumber, BlockRange, DataIn, FRAME_BYTES, Frame, FrameMut, Sector, VolumeError, VolumeReply,
};
use format::geometry::UNITS_PER_BLOCK;
use format::{ChunkId, ChunkRow, Codec, Fingerprint, MapEntry, PLACE_UNIT_BYTES, Place, Shape};
use smallvec::SmallVec;

use crate::StoreError;
use crate::chunks::copies::{Wanted, right_copy};
use crate::chunks::unpack::{Unpacked, covering_blocks};
use crate::map::walk::walk;
use crate::space::readers::ReaderToken;
use crate::world::view::View;
use crate::world::{Volume, World};
use crate::{DiskRead, DiskReads};

/// The content of one block.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// It is in memory.
    Ready(Frame),
    /// It comes with a device read.
    Device { read: usize, frame: usize, chunk: ChunkId, fingerprint: Fingerprint, stored: Stored },
    /// It can't be read.
    Lost,
}

/// The location of a block in the data read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    shape: Shape,
    /// Bytes before its group, in the first frame.
    skip: usize,
    /// The number of frames of its group.
    frames: usize,
}

impl Stored {
    /// Returns how to extract the block, if its group begins at `start`.
    fn wanted(self, start: Place, (chunk, fingerprint): (ChunkId, Fingerprint)) -> Wanted {
        let skip_units = self.skip as u32 / PLACE_UNIT_BYTES as u32;
        let place = Place { offset_units: start.offset_units + skip_units, ..start };
        Wanted { chunk, place, shape: self.shape, fingerprint }
    }
}

/// A block, its map entry, and its content.
#[derive(Debug)]
pub(crate) struct FetchedBlock {
    pub(crate) block: BlockNumber,
    pub(crate) entry: MapEntry,
    pub(crate) content: Content,
}

/// Blocks being read into memory.
#[derive(Debug, Default)]
pub(crate) struct Fetch {
    pub(crate) blocks: SmallVec<[FetchedBlock; 1]>,
    reads: DiskReads,
    /// The number of reads taken.
    pub(crate) read_count: usize,
    /// Keeps the segments that are read from being reused.
    token: Option<Arc<ReaderToken>>,
}

/// Returns the content of a block whose map entry is not a chunk.
pub(crate) fn uniform_frame(entry: MapEntry) -> Frame {
    match entry {
        MapEntry::Pattern(bits) => {
            let mut frame = FrameMut::stale();
            for word in frame.chunks_exact_mut(4) {
                word.copy_from_slice(&bits.to_le_bytes());
            }
            frame.freeze()
        }
        _ => Frame::zeros(),
    }
}

impl Fetch {
    /// Finds the blocks of `range`, under the volume's lock. Blocks that are not in memory become
    /// device reads, contiguous ones a single read.
    ///
    /// If metadata is missing, the result is useless.
    pub(crate) fn locate(
        &mut self,
        view: View<'_>,
        volume: &Volume,
        range: BlockRange,
    ) -> Result<(), VolumeError> {
        let guard = volume.map.read();
        let Some(map) = guard.as_ref() else { return Err(VolumeError::NoSuchVolume(volume.id)) };
        if range.end().0 > map.size_blocks {
            return Err(VolumeError::OutOfRange);
        }
        self.blocks.reserve(range.count.0 as usize);
        let mut at = range.start;
        let walked = walk(view, map, range, &mut |run| {
            at = BlockNumber(run.start);
            // A block that repeats is looked up and read once.
            let content = match run.entry {
                MapEntry::Chunk(id) => match self.locate_chunk(view, id) {
                    Err(error) if view.may_look_on(&error) => Content::Lost,
                    content => content?,
                },
                entry => Content::Ready(uniform_frame(entry)),
            };
            for block in run.start..run.start + run.count {
                let (block, content) = (BlockNumber(block), content.clone());
                self.blocks.push(FetchedBlock { block, entry: run.entry, content });
            }
            at = BlockNumber(run.start + run.count);
            Ok(())
        });
        if walked.is_err() {
            // The first block below unreadable metadata. The blocks before it are read: one of them
            // may be lost as well, and is then the first.
            let (block, entry) = (at, MapEntry::Hole);
            self.blocks.push(FetchedBlock { block, entry, content: Content::Lost });
        }
        Ok(())
    }

    /// Finds the content of a chunk, or of its original.
    fn locate_chunk(&mut self, view: View<'_>, mut id: ChunkId) -> Result<Content, StoreError> {
        loop {
            if let Some(frame) = view.cached_chunk(id) {
                return Ok(Content::Ready(frame));
            }
            // This comes first: a row has its location as soon as the record is sealed, but its
            // bytes are certain to be there only after a flush, and until then the chunk is here.
            if let Some(frame) = view.unplaced.get(id) {
                return Ok(Content::Ready(frame));
            }
            // Before the row is read: otherwise the chunk could move in between, and the old
            // segment be freed and reused. No row refers to anything that was dead when this token
            // was given out.
            self.token.get_or_insert_with(|| view.reader_token());
            let row = view.chunk(id)?;
            #[cfg(test)]
            view.call_hook();
            match row.original {
                // Originals have lower ids, so this terminates with any content of the rows.
                Some(original) if original < id => id = original,
                Some(_) => return Ok(Content::Lost),
                None => return Ok(self.locate_stored(view.world, id, &row)),
            }
        }
    }

    fn locate_stored(&mut self, world: &World, chunk: ChunkId, row: &ChunkRow) -> Content {
        let stored_bytes = u64::from(row.stored_units) * PLACE_UNIT_BYTES;
        let misplaced =
            row.codec == Codec::Raw && !row.place.offset_units.is_multiple_of(UNITS_PER_BLOCK);
        if misplaced || !world.medium.contains(row.place, stored_bytes) {
            return Content::Lost;
        }
        debug_assert!(self.token.is_some(), "the row was read without a token");
        let (count, skip) = covering_blocks(row.place.offset_units, row.stored_units);
        let (read, frame) = self.add_read(row.place, count);
        let stored = Stored { shape: row.shape(), skip, frames: count };
        Content::Device { read, frame, chunk, fingerprint: row.fingerprint, stored }
    }

    /// Adds a read of `count` blocks from the one that contains `place`, merged with the previous
    /// read if they overlap or are adjacent. Returns its position in the reads.
    fn add_read(&mut self, place: Place, count: usize) -> (usize, usize) {
        let place = place.block_start();
        if let Some(last) = self.reads.last_mut() {
            let held = last.frames.len();
            let end = last.place.plus_blocks(held as u32);
            if (last.place..=end).contains(&place) {
                let units = place.offset_units - last.place.offset_units;
                let first = (units / UNITS_PER_BLOCK) as usize;
                last.frames.resize_with(held.max(first + count), FrameMut::stale);
                return (self.reads.len() - 1, first);
            }
        }
        let frames = (0..count).map(|_| FrameMut::stale()).collect();
        self.reads.push(DiskRead { place, frames, failed: false });
        (self.reads.len() - 1, 0)
    }

    /// Finds the content of chunks, as if they were blocks of a volume.
    pub(crate) fn locate_chunks(&mut self, view: View<'_>, ids: impl Iterator<Item = ChunkId>) {
        // A chunk that exists now keeps its location while the token is held.
        self.token = Some(view.reader_token());
        for id in ids {
            let content = self.locate_chunk(view, id).unwrap_or(Content::Lost);
            let block = BlockNumber(self.blocks.len() as u64);
            self.blocks.push(FetchedBlock { block, entry: MapEntry::Chunk(id), content });
        }
    }

    /// Returns whether device reads are needed.
    pub(crate) fn wants_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Drops everything that needs a device read.
    pub(crate) fn drop_reads(&mut self) {
        self.reads.clear();
        for block in &mut self.blocks {
            if matches!(block.content, Content::Device { .. }) {
                block.content = Content::Lost;
            }
        }
    }

    /// Returns the device reads, to be performed and passed to [`Fetch::finish`].
    pub(crate) fn take_reads(&mut self) -> DiskReads {
        self.read_count = self.reads.len();
        std::mem::take(&mut self.reads)
    }

    /// Takes the data read by the device, and checks each block against its fingerprint. If that
    /// fails, and there are other copies, it waits while reading them: this is rare enough not to
    /// matter.
    pub(crate) fn finish(&mut self, world: &World, reads: DiskReads) {
        // Held until the end, because bad copies are rewritten in place.
        let _token = self.token.take();
        let read_frames: SmallVec<[(Place, Option<Vec<Frame>>); 1]> = reads
            .into_iter()
            .map(|read| {
                let frames = read.frames.into_iter().map(FrameMut::freeze).collect();
                (read.place, (!read.failed).then_some(frames))
            })
            .collect();
        let mut group = Unpacked::default();
        // The previous block, which may be repeated.
        let mut last: Option<(ChunkId, Content)> = None;
        for at in 0..self.blocks.len() {
            let block = &self.blocks[at];
            let Content::Device { read, frame, chunk, fingerprint, stored } = block.content else {
                continue;
            };
            if let Some((_, content)) = last.as_ref().filter(|(same, _)| *same == chunk) {
                self.blocks[at].content = content.clone();
                continue;
            }
            let frames = read_frames.get(read).and_then(|(_, frames)| frames.as_ref());
            let wanted = || last_of_group(&self.blocks[at..]);
            let found = frames
                .and_then(|frames| frames.get(frame..frame + stored.frames))
                .and_then(|frames| block_of(&mut group, (read, frame), frames, stored, wanted))
                .filter(|frame| world.is_intact(frame, fingerprint))
                .or_else(|| {
                    let start = read_frames.get(read)?.0.plus_blocks(frame as u32);
                    let wanted = stored.wanted(start, (chunk, fingerprint));
                    right_copy(&world.medium, &wanted)
                });
            self.blocks[at].content = match found {
                Some(frame) => {
                    world.keep_chunk(chunk, frame.clone());
                    Content::Ready(frame)
                }
                None => Content::Lost,
            };
            last = Some((chunk, self.blocks[at].content.clone()));
        }
    }

    /// Returns the contents in order, once all are there; the first lost block is the error.
    pub(crate) fn frames(self) -> Result<impl Iterator<Item = Frame>, VolumeError> {
        let is_ready = |block: &FetchedBlock| matches!(block.content, Content::Ready(_));
        if let Some(lost) = self.blocks.iter().find(|block| !is_ready(block)) {
            return Err(VolumeError::Medium { sector: lost.block.sector() });
        }
        Ok(self.blocks.into_iter().filter_map(|block| match block.content {
            Content::Ready(frame) => Some(frame),
            _ => None,
        }))
    }

    /// Returns the answer to a read of `len` bytes, beginning `phase` bytes into the first block.
    pub(crate) fn reply(self, phase: usize, len: usize) -> Result<VolumeReply, VolumeError> {
        let first = self.blocks.first().map_or(0, |first| first.block.sector().0);
        let asked = Sector(first + phase as u64 / block::SECTOR_BYTES);
        let frames = self.frames().map_err(|error| match error {
            VolumeError::Medium { sector } => VolumeError::Medium { sector: sector.max(asked) },
            error => error,
        })?;
        Ok(VolumeReply::Data(DataIn::from_frames(frames, phase, len)))
    }
}

/// Returns the last block of the first block's group that is among those that follow.
fn last_of_group(blocks: &[FetchedBlock]) -> u8 {
    let place_of = |block: &FetchedBlock| match block.content {
        Content::Device { read, frame, stored, .. } => {
            let first = Shape { group_index: 0, ..stored.shape };
            Some(((read, frame, Stored { shape: first, ..stored }), stored.shape.group_index))
        }
        _ => None,
    };
    let group = blocks.first().and_then(place_of).map(|(place, _)| place);
    let of_group = blocks.iter().map_while(place_of).take_while(|(place, _)| group == Some(*place));
    of_group.map(|(_, index)| index).max().unwrap_or(0)
}

/// Extracts a block from the frames that contain it or its group, beginning with frame `at` of a
/// read.
fn block_of(
    group: &mut Unpacked<(usize, usize)>,
    at: (usize, usize),
    frames: &[Frame],
    stored: Stored,
    wanted: impl FnOnce() -> u8,
) -> Option<Frame> {
    let Stored { shape, skip, .. } = stored;
    if shape.codec == Codec::Raw {
        return frames.first().cloned();
    }
    let key = (at.0, at.1 * FRAME_BYTES + skip);
    if !group.holds(&key, shape) {
        group.unpack(key, shape, wanted(), frames, skip);
    }
    group.block(shape)
}
