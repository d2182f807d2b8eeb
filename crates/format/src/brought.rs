//! The blocks that came with a record, whichever entry lists them.

use crate::checksum::Fingerprint;
use crate::entry::Entry;
use crate::geometry::{Place, UNITS_PER_BLOCK};
use crate::map::ChunkId;
use crate::row::{ChunkRow, Codec};

/// How a block is stored, apart from its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How its group is stored.
    pub codec: Codec,
    /// The length of the stored group, in units of 64 bytes.
    pub stored_units: u16,
    /// The index of the block in its group.
    pub group_index: u8,
    /// The number of blocks of the group.
    pub group_blocks: u8,
}

impl Shape {
    /// An uncompressed block, not in a group.
    pub const RAW: Shape = Shape {
        codec: Codec::Raw,
        stored_units: UNITS_PER_BLOCK as u16,
        group_index: 0,
        group_blocks: 1,
    };
}

impl ChunkRow {
    /// Returns how it is stored.
    pub fn shape(&self) -> Shape {
        Shape {
            codec: self.codec,
            stored_units: self.stored_units,
            group_index: self.group_index,
            group_blocks: self.group_blocks,
        }
    }

    /// Returns the row of the same chunk at another location.
    pub fn moved(self, place: Place, shape: Shape) -> Self {
        let Shape { codec, stored_units, group_index, group_blocks } = shape;
        Self { place, codec, stored_units, group_index, group_blocks, original: None, ..self }
    }
}

/// A block in a record's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brought {
    /// Its chunk.
    pub chunk: ChunkId,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// The offset of it, or of its group, in the record's payload, in units of 64 bytes.
    pub payload_units: u32,
    /// How it is stored there.
    pub shape: Shape,
}

impl Entry {
    /// Returns the blocks of the record's payload that this entry lists, in order.
    pub fn brought(&self) -> impl Iterator<Item = Brought> + '_ {
        let count = match self {
            Self::Store { fingerprints, .. }
            | Self::StoreGroup { fingerprints, .. }
            | Self::Relocate { fingerprints, .. } => fingerprints.len(),
            Self::RelocateGroup { chunks, .. } => chunks.len(),
            _ => 0,
        };
        (0..count).filter_map(|index| self.brought_at(index))
    }

    fn brought_at(&self, index: usize) -> Option<Brought> {
        let next = |first: &ChunkId| ChunkId(first.0 + index as u64);
        let group = |stored_units: &u16, codec: &Codec, blocks: usize| Shape {
            codec: *codec,
            stored_units: *stored_units,
            group_index: index as u8,
            group_blocks: blocks as u8,
        };
        Some(match self {
            Self::Store { first, payload_units, fingerprints, .. }
            | Self::Relocate { first, payload_units, fingerprints } => Brought {
                chunk: next(first),
                fingerprint: *fingerprints.get(index)?,
                payload_units: payload_units.saturating_add(index as u32 * UNITS_PER_BLOCK),
                shape: Shape::RAW,
            },
            Self::StoreGroup {
                first, payload_units, stored_units, codec, fingerprints, ..
            } => Brought {
                chunk: next(first),
                fingerprint: *fingerprints.get(index)?,
                payload_units: *payload_units,
                shape: group(stored_units, codec, fingerprints.len()),
            },
            Self::RelocateGroup { payload_units, stored_units, codec, chunks } => {
                let (chunk, fingerprint) = *chunks.get(index)?;
                let shape = group(stored_units, codec, chunks.len());
                Brought { chunk, fingerprint, payload_units: *payload_units, shape }
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::StoreFlags;

    #[test]
    fn blocks_of_a_run_have_own_places_and_blocks_of_a_group_share_one() {
        let sums = [Fingerprint([1; 16]), Fingerprint([2; 16])];
        let run =
            Entry::Relocate { first: ChunkId(7), payload_units: 128, fingerprints: sums.to_vec() };
        let found: Vec<Brought> = run.brought().collect();
        assert_eq!((found[1].chunk, found[1].payload_units), (ChunkId(8), 192));
        assert_eq!((found[1].fingerprint, found[1].shape), (sums[1], Shape::RAW));
        let group = Entry::StoreGroup {
            first: ChunkId(7),
            payload_units: 3,
            stored_units: 20,
            codec: Codec::Lz4,
            flags: StoreFlags::default(),
            fingerprints: sums.to_vec(),
        };
        let found: Vec<Brought> = group.brought().collect();
        assert_eq!((found[1].chunk, found[1].payload_units), (ChunkId(8), 3));
        let shape = found[1].shape;
        assert_eq!((shape.group_index, shape.group_blocks, shape.stored_units), (1, 2, 20));
        assert_eq!(Entry::Release { first: ChunkId(1), count: 2 }.brought().count(), 0);
    }
}
