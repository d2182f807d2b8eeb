//! Whether a chunk on the device is what was written: the one way in which scrub, `check`, reclaim
//! and the background pass read.

use std::io;

use block::{Frame, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::{ChunkId, ChunkRow, PLACE_UNIT_BYTES, Place};

use crate::chunks::copies::{Wanted, right_copy};
use crate::chunks::groups::{GroupReader, Image};
use crate::chunks::medium::Medium;
use crate::chunks::unpack::covering_blocks;

/// Blocks of the device that are read together at most: 1 MiB.
const RUN_BLOCKS_MAX: u64 = 256;
/// The most blocks between two chunks that are read with them, for nothing: a device reads 128 KiB
/// in the time that asking it once more takes.
const GAP_BLOCKS_MAX: u64 = 32;

/// A chunk that has a place of its own, and its row as it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) id: ChunkId,
    pub(crate) row: ChunkRow,
}

/// Why a chunk can't be had from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The device does not give the bytes.
    Unreadable,
    /// The bytes are not those that were written.
    Changed,
    /// The row says what can't be: a place between two blocks or outside of the pool.
    Impossible,
}

/// Reads a chunk from its place on the device, never from memory, and compares it with its
/// fingerprint. What is wrong in one of several copies is had from another, and mended. The row
/// must have a place: an alias has none, and is as good as its original.
///
/// The caller has seen to it that the place is not written again since the row was read: it holds
/// a reader's token that it took *before* it read the row, or the checkpointer, or the whole pool.
pub(crate) fn read_chunk(
    medium: &Medium,
    reader: &mut GroupReader,
    Stored { id, row }: &Stored,
) -> Result<Frame, Damage> {
    let bytes = u64::from(row.stored_units) * PLACE_UNIT_BYTES;
    if !medium.contains(row.place, bytes) {
        return Err(Damage::Impossible);
    }
    let damage = match reader.read(medium, row.place, row.shape()) {
        Ok(Some(frame)) if medium.is_intact(&frame, row.fingerprint) => return Ok(frame),
        Ok(_) => Damage::Changed,
        Err(_) => Damage::Unreadable,
    };
    right_copy(medium, &Wanted::of_row(*id, row)).ok_or(damage)
}

/// As [`read_chunk`] for many, which come in the order of their places: those that stand near each
/// other are read together, with what is between them. `image`: the segment that they are in, where
/// it was read as a whole.
pub(crate) fn read_chunks(
    medium: &Medium,
    chunks: &[Stored],
    image: &Image,
    told: &mut impl FnMut(&Stored, Result<Frame, Damage>),
) {
    let mut reader = GroupReader::over(image);
    let mut rest = chunks;
    while !rest.is_empty() {
        let run = run_at_front(medium, rest);
        if let Some((place, blocks)) = run.blocks
            && !image.is_of(place.segment)
        {
            reader.read_ahead(medium, place, blocks);
        }
        let (together, behind) = rest.split_at(run.chunks);
        for chunk in together {
            told(chunk, read_chunk(medium, &mut reader, chunk));
        }
        rest = behind;
    }
}

/// As [`read_chunks`], of all copies: tells the chunks that some device has not as they were
/// written, of those that are in.
pub(crate) fn find_wrong_copies(
    medium: &Medium,
    chunks: &[Stored],
    told: &mut impl FnMut(&Stored),
) {
    let mut rest = chunks;
    while !rest.is_empty() {
        let run = run_at_front(medium, rest);
        let (together, behind) = rest.split_at(run.chunks);
        rest = behind;
        let Some((place, count)) = run.blocks else {
            together.iter().for_each(&mut *told);
            continue;
        };
        for copy in 0..medium.disk.copies() {
            let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
            match medium.disk.read_copy(place, copy, &mut frames) {
                Ok(()) => {}
                Err(error) if is_of_no_device(&error) => continue,
                Err(_) => {
                    // Which of them can't be read is found out one by one.
                    together.iter().for_each(&mut *told);
                    continue;
                }
            }
            let frames = frames.into_iter().map(FrameMut::freeze).collect();
            let mut reader = GroupReader::over(&Image { place, frames });
            for chunk in together {
                let read = reader.read(medium, chunk.row.place, chunk.row.shape());
                let is_it = |frame: &Frame| medium.is_intact(frame, chunk.row.fingerprint);
                if !matches!(&read, Ok(Some(frame)) if is_it(frame)) {
                    told(chunk);
                }
            }
        }
    }
}

/// Whether a copy could not be read because its device is not in.
fn is_of_no_device(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotConnected | io::ErrorKind::NotFound)
}

/// Chunks whose blocks on the device overlap, or follow each other with little in between.
struct Run {
    chunks: usize,
    /// The first block, and how many; none where a row says what can't be.
    blocks: Option<(Place, usize)>,
}

fn run_at_front(medium: &Medium, chunks: &[Stored]) -> Run {
    // The blocks of its segment that a chunk is in: the first, and the one behind the last.
    let covered = |row: &ChunkRow| {
        let bytes = u64::from(row.stored_units) * PLACE_UNIT_BYTES;
        let (count, _) = covering_blocks(row.place.offset_units, row.stored_units);
        medium.contains(row.place, bytes).then(|| {
            let first = row.place.block_start();
            (first, first.plus_blocks(count as u32))
        })
    };
    let Some((first, mut end)) = chunks.first().and_then(|chunk| covered(&chunk.row)) else {
        return Run { chunks: 1.min(chunks.len()), blocks: None };
    };
    let more = chunks[1..].iter().map_while(|chunk| {
        let (start, behind) = covered(&chunk.row)?;
        let follows = start.segment == first.segment
            && start >= first
            && start <= end.plus_blocks(GAP_BLOCKS_MAX as u32)
            && blocks_between(first, behind) <= RUN_BLOCKS_MAX;
        follows.then(|| end = end.max(behind))
    });
    let count = 1 + more.count();
    Run { chunks: count, blocks: Some((first, blocks_between(first, end) as usize)) }
}

/// Blocks from one place to another, of the same segment.
fn blocks_between(first: Place, end: Place) -> u64 {
    u64::from((end.offset_units - first.offset_units) / UNITS_PER_BLOCK)
}
