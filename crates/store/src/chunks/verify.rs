//! Verifying chunks on the device: scrub, `check`, reclaim and the background pass read only with
//! this.

use std::io;

use block::{Frame, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::{ChunkId, ChunkRow, PLACE_UNIT_BYTES, Place};

use crate::chunks::copies::{Wanted, right_copy};
use crate::chunks::groups::{GroupReader, Image};
use crate::chunks::medium::Medium;
use crate::chunks::unpack::covering_blocks;

/// The maximum number of blocks that are read together: 1 MiB.
const RUN_BLOCKS_MAX: u64 = 256;
/// The maximum gap between two chunks that is read with them: a device reads 128 KiB in the time of
/// another request.
const GAP_BLOCKS_MAX: u64 = 32;

/// A chunk with its own location, and its row as read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) id: ChunkId,
    pub(crate) row: ChunkRow,
}

/// Why a chunk can't be read from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The device returns an error.
    Unreadable,
    /// The bytes are not those that were written.
    Changed,
    /// The row is impossible: its location is not aligned, or outside of the pool.
    Impossible,
}

/// Reads a chunk from its location on the device, never from memory, and compares it with its
/// fingerprint. A wrong copy is repaired from another one. The row must have a location: an alias
/// has none, and is as good as its original.
///
/// The caller makes sure that the location is not overwritten since the row was read: it has a
/// reader's token that it took *before* it read the row, or the checkpointer, or the whole pool.
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

/// The same as [`read_chunk`] for many, in the order of their locations: neighbors are read
/// together, with the gaps between them. `image`: their segment, if it was read as a whole.
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

/// The same as [`read_chunks`], for all copies: reports the chunks that are not what was written on
/// some device that is in.
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
                    // Finds out one by one which of them can't be read.
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

/// Returns whether a copy could not be read because its device is not in.
pub(crate) fn is_of_no_device(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotConnected | io::ErrorKind::NotFound)
}

/// Chunks whose blocks on the device overlap, or are separated by small gaps.
struct Run {
    chunks: usize,
    /// The first block, and the number of blocks; none if a row is impossible.
    blocks: Option<(Place, usize)>,
}

fn run_at_front(medium: &Medium, chunks: &[Stored]) -> Run {
    // Returns the blocks of a chunk in its segment, as a half-open range.
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

/// Returns the number of blocks from one place to another of the same segment.
fn blocks_between(first: Place, end: Place) -> u64 {
    u64::from((end.offset_units - first.offset_units) / UNITS_PER_BLOCK)
}
