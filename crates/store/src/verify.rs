//! Whether a chunk on the device is what was written: the one way in which scrub and `check` read.

use block::{BLOCK_BYTES, Frame, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::{ChunkId, ChunkRow, Codec};

use crate::world::World;

/// Chunks that stand in a row and are read together at most: 256 KiB.
const RUN_CHUNKS_MAX: usize = 64;

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
/// fingerprint. The row must have a place.
pub(crate) fn read_chunk(world: &World, _id: ChunkId, row: &ChunkRow) -> Result<Frame, Damage> {
    if !is_possible(world, row) {
        return Err(Damage::Impossible);
    }
    let mut frame = [FrameMut::stale()];
    let offset_bytes = world.medium.geometry().offset_bytes(row.place);
    world.medium.disk.read(offset_bytes, &mut frame).map_err(|_| Damage::Unreadable)?;
    let [frame] = frame;
    judge(world, row, frame.freeze())
}

/// As [`read_chunk`] for many, which come in the order of their places: those that stand in a row
/// are read together.
pub(crate) fn read_chunks(
    world: &World,
    chunks: &[(ChunkId, ChunkRow)],
    told: &mut impl FnMut(ChunkId, &ChunkRow, Result<Frame, Damage>),
) {
    let follows = |a: &(ChunkId, ChunkRow), b: &(ChunkId, ChunkRow)| {
        let behind = a.1.place.offset_units.checked_add(UNITS_PER_BLOCK);
        a.1.place.segment == b.1.place.segment
            && behind == Some(b.1.place.offset_units)
            && is_possible(world, &a.1)
            && is_possible(world, &b.1)
    };
    for run in chunks.chunk_by(follows).flat_map(|run| run.chunks(RUN_CHUNKS_MAX)) {
        let mut frames: Vec<FrameMut> = run.iter().map(|_| FrameMut::stale()).collect();
        let together = run.len() > 1 && {
            let offset_bytes = world.medium.geometry().offset_bytes(run[0].1.place);
            world.medium.disk.read(offset_bytes, &mut frames).is_ok()
        };
        for ((id, row), frame) in run.iter().zip(frames) {
            let found = if together {
                judge(world, row, frame.freeze())
            } else {
                read_chunk(world, *id, row)
            };
            told(*id, row, found);
        }
    }
}

fn is_possible(world: &World, row: &ChunkRow) -> bool {
    row.codec == Codec::Raw
        && row.place.offset_units.is_multiple_of(UNITS_PER_BLOCK)
        && world.medium.geometry().contains(row.place, BLOCK_BYTES)
}

fn judge(world: &World, row: &ChunkRow, frame: Frame) -> Result<Frame, Damage> {
    if world.is_intact(&frame, row.fingerprint) { Ok(frame) } else { Err(Damage::Changed) }
}
