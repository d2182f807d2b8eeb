//! Finding and reading the content of blocks: from the map to chunk rows to cache or device.

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
    /// It is here.
    Ready(Frame),
    /// It comes with a device read.
    Device { read: usize, frame: usize, chunk: ChunkId, fingerprint: Fingerprint, stored: Stored },
    /// It can't be had.
    Lost,
}

/// How a block stands in what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    shape: Shape,
    /// Bytes in front of its group, in the first frame.
    skip: usize,
    /// How many frames its group is in.
    frames: usize,
}

impl Stored {
    /// The block, if its group is in the blocks from `start` on.
    fn wanted(self, start: Place, (chunk, fingerprint): (ChunkId, Fingerprint)) -> Wanted {
        let skip_units = self.skip as u32 / PLACE_UNIT_BYTES as u32;
        let place = Place { offset_units: start.offset_units + skip_units, ..start };
        Wanted { chunk, place, shape: self.shape, fingerprint }
    }
}

/// A block, what the map said of it, and its content.
#[derive(Debug)]
pub(crate) struct FetchedBlock {
    pub(crate) block: BlockNumber,
    pub(crate) entry: MapEntry,
    pub(crate) content: Content,
}

/// Blocks on their way into memory.
#[derive(Debug, Default)]
pub(crate) struct Fetch {
    pub(crate) blocks: SmallVec<[FetchedBlock; 1]>,
    reads: DiskReads,
    /// How many reads were taken.
    pub(crate) read_count: usize,
    /// Keeps the segments that are read from being written again.
    token: Option<Arc<ReaderToken>>,
}

/// What a map entry other than a chunk reads as.
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
    /// Finds the blocks of `range`, under the volume's lock; what is not in memory becomes device
    /// reads, blocks that are stored in a row one read.
    ///
    /// Where metadata is asked for, what was found is of no use.
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
            // Blocks that are alike are looked up once, and read once.
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
            // The first block below what can't be read. Those in front of it are read: one of them
            // may be lost as well, and then that is the first.
            let (block, entry) = (at, MapEntry::Hole);
            self.blocks.push(FetchedBlock { block, entry, content: Content::Lost });
        }
        Ok(())
    }

    /// Looks for a chunk's content, or for that of its original.
    fn locate_chunk(&mut self, view: View<'_>, mut id: ChunkId) -> Result<Content, StoreError> {
        loop {
            if let Some(frame) = view.cached_chunk(id) {
                return Ok(Content::Ready(frame));
            }
            // First, because a row has its place as soon as the record is sealed, but the bytes
            // are there for good only when they are flushed; from then on the chunk is not here
            // any more.
            if let Some(frame) = view.unplaced.get(id) {
                return Ok(Content::Ready(frame));
            }
            // Before the row is read: between the two its chunk could move, and the segment that
            // the row names be freed and written again. What was dead when this token was given
            // out is named by no row any more.
            self.token.get_or_insert_with(|| view.reader_token());
            let row = view.chunk(id)?;
            #[cfg(test)]
            view.call_hook();
            match row.original {
                // Originals are older, so that this ends, whatever the rows say.
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

    /// Notes that `count` blocks from the one on that `place` is in are read: with those before,
    /// where they overlap or follow. Where in the reads they come to stand.
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

    /// Looks for the content of chunks, each as if it were a block of a volume.
    pub(crate) fn locate_chunks(&mut self, view: View<'_>, ids: impl Iterator<Item = ChunkId>) {
        // A chunk that is there now keeps its place while the token is held.
        self.token = Some(view.reader_token());
        for id in ids {
            let content = self.locate_chunk(view, id).unwrap_or(Content::Lost);
            let block = BlockNumber(self.blocks.len() as u64);
            self.blocks.push(FetchedBlock { block, entry: MapEntry::Chunk(id), content });
        }
    }

    /// Whether the device must be asked.
    pub(crate) fn wants_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    /// Does without what the device would have to be asked for.
    pub(crate) fn drop_reads(&mut self) {
        self.reads.clear();
        for block in &mut self.blocks {
            if matches!(block.content, Content::Device { .. }) {
                block.content = Content::Lost;
            }
        }
    }

    /// The device reads that are needed, to be performed and given to [`Fetch::finish`].
    pub(crate) fn take_reads(&mut self) -> DiskReads {
        self.read_count = self.reads.len();
        std::mem::take(&mut self.reads)
    }

    /// Takes what the device has read, and checks each block against its fingerprint. Where that is
    /// wrong, and others have it too, it waits for them: a device lies so seldom that nobody
    /// notices.
    pub(crate) fn finish(&mut self, world: &World, reads: DiskReads) {
        // Until the end, as copies are mended in their place.
        let _token = self.token.take();
        let read_frames: SmallVec<[(Place, Option<Vec<Frame>>); 1]> = reads
            .into_iter()
            .map(|read| {
                let frames = read.frames.into_iter().map(FrameMut::freeze).collect();
                (read.place, (!read.failed).then_some(frames))
            })
            .collect();
        let mut group = Unpacked::default();
        // The block before, which this one may be again.
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

    /// The contents, in order, once all are there; the first block that is lost is the error.
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

    /// The answer to a read of `len` bytes, from `phase` bytes behind the start of the first block
    /// on.
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

/// How far the group of the first of these blocks is wanted: the last of its blocks that is among
/// those that follow.
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

/// The block out of the frames that it, or its group, stands in, from number `at` of a read on.
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
