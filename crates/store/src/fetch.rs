//! Finding and reading the content of blocks: from the map to chunk rows to cache or device.

use std::sync::Arc;

use block::{BLOCK_BYTES, BlockNumber, BlockRange, Frame, FrameMut, VolumeError};
use format::geometry::UNITS_PER_BLOCK;
use format::{ChunkId, Codec, Fingerprint, MapEntry, Place};

use crate::DiskRead;
use crate::StoreError;
use crate::segments::ReaderToken;
use crate::walk::walk;
use crate::world::{Volume, World};

/// The content of one block.
#[derive(Debug)]
pub(crate) enum Content {
    /// It is here.
    Ready(Frame),
    /// It comes with a device read.
    Device { read: usize, frame: usize, chunk: ChunkId, fingerprint: Fingerprint },
    /// It can't be had.
    Lost,
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
    pub(crate) blocks: Vec<FetchedBlock>,
    reads: Vec<DiskRead>,
    /// How many reads were taken.
    pub(crate) read_count: usize,
    /// Keeps the segments that are read from being written again.
    token: Option<Arc<ReaderToken>>,
    last_place: Option<Place>,
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
    pub(crate) fn locate(
        &mut self,
        world: &World,
        volume: &Volume,
        range: BlockRange,
    ) -> Result<(), VolumeError> {
        let guard = volume.map.read();
        let Some(map) = guard.as_ref() else { return Err(VolumeError::NoSuchVolume(volume.id)) };
        if range.end().0 > map.size_blocks {
            return Err(VolumeError::OutOfRange);
        }
        let mut at = range.start;
        let walked = walk(world, map, range, &mut |run| {
            at = BlockNumber(run.start);
            if let MapEntry::Chunk(id) = run.entry {
                let content = self.locate_chunk(world, id)?;
                self.blocks.push(FetchedBlock { block: at, entry: run.entry, content });
            } else {
                let frame = uniform_frame(run.entry);
                for block in run.start..run.start + run.count {
                    let content = Content::Ready(frame.clone());
                    let block = BlockNumber(block);
                    self.blocks.push(FetchedBlock { block, entry: run.entry, content });
                }
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

    fn locate_chunk(&mut self, world: &World, id: ChunkId) -> Result<Content, StoreError> {
        if let Some(frame) = world.cached_chunk(id) {
            return Ok(Content::Ready(frame));
        }
        // First, because a row has its place as soon as the record is sealed, but the bytes are
        // there only when it is written; from then on the chunk is not here any more.
        if let Some(frame) = world.unplaced.read().get(&id) {
            return Ok(Content::Ready(frame.clone()));
        }
        let row = world.chunk(id)?;
        if row.place.is_none() {
            return Ok(Content::Lost);
        }
        let aligned = row.place.offset_units.is_multiple_of(UNITS_PER_BLOCK);
        if row.codec != Codec::Raw || !aligned || !world.medium.geometry().contains(row.place, 4096)
        {
            return Ok(Content::Lost);
        }
        if self.token.is_none() {
            self.token = Some(world.reader_token());
        }
        let (read, frame) = self.add_read(world, row.place);
        Ok(Content::Device { read, frame, chunk: id, fingerprint: row.fingerprint })
    }

    fn add_read(&mut self, world: &World, place: Place) -> (usize, usize) {
        let follows = self.last_place.is_some_and(|last| {
            last.segment == place.segment
                && last.offset_units + UNITS_PER_BLOCK == place.offset_units
        });
        self.last_place = Some(place);
        if follows && let Some(read) = self.reads.last_mut() {
            read.frames.push(FrameMut::stale());
            let frame = read.frames.len() - 1;
            return (self.reads.len() - 1, frame);
        }
        let offset_bytes = world.medium.geometry().offset_bytes(place);
        debug_assert!(offset_bytes.is_multiple_of(BLOCK_BYTES));
        let frames = vec![FrameMut::stale()];
        self.reads.push(DiskRead { offset_bytes, frames, failed: false });
        (self.reads.len() - 1, 0)
    }

    /// The device reads that are needed, to be performed and given to [`Fetch::finish`].
    pub(crate) fn take_reads(&mut self) -> Vec<DiskRead> {
        self.read_count = self.reads.len();
        std::mem::take(&mut self.reads)
    }

    /// Takes what the device has read, and checks each block against its fingerprint.
    pub(crate) fn finish(&mut self, world: &World, reads: Vec<DiskRead>) {
        self.token = None;
        self.last_place = None;
        let mut read_frames: Vec<Option<Vec<Frame>>> = reads
            .into_iter()
            .map(|read| {
                let frames = read.frames.into_iter().map(FrameMut::freeze).collect();
                (!read.failed).then_some(frames)
            })
            .collect();
        for block in &mut self.blocks {
            let Content::Device { read, frame, chunk, fingerprint } = block.content else {
                continue;
            };
            let found = read_frames
                .get_mut(read)
                .and_then(|frames| frames.as_mut()?.get(frame).cloned())
                .filter(|frame| world.is_intact(frame, fingerprint));
            block.content = match found {
                Some(frame) => {
                    world.keep_chunk(chunk, frame.clone());
                    Content::Ready(frame)
                }
                None => Content::Lost,
            };
        }
    }

    /// The contents, in order, once all are there; the first block that is lost is the error.
    pub(crate) fn frames(self) -> Result<Vec<Frame>, VolumeError> {
        self.blocks
            .into_iter()
            .map(|block| match block.content {
                Content::Ready(frame) => Ok(frame),
                _ => Err(VolumeError::Medium { sector: block.block.sector() }),
            })
            .collect()
    }
}
