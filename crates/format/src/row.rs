//! Rows of the tables. A row of zeros is free.
//!
//! ```text
//! chunk row, 32 bytes                        node row, 32 bytes
//!  0  4  segment                              0  4  segment
//!  4  4  offset, in units of 64 bytes         4  4  offset, in units of 64 bytes
//!        (both: the original of an alias)     8  4  reference count
//!  8  2  stored length, in units             12  8  checksum of the node
//! 10  1  codec; 4: an alias                  20  5  blocks mapped below it
//! 11  1  bits 0..3: index in its group       25  5  blocks below it that name a chunk
//!        bit 3: stays uncompressed           30  1  level
//!        bits 4..7: blocks in it - 1         31  1  1: in use
//!        bit 7: stays unshared
//! 12  4  reference count
//! 16 16  fingerprint of the 4 KiB
//!
//! volume row, 32 bytes
//!  0  8  root: a map entry, hole or node
//!  8  8  size, in blocks
//! 16  1  level of the root
//! 17  1  1: in use
//! 18  1  1: a snapshot, else 0
//! 19  1  handling: 1 uncompressed, 2 unshared
//! 20  8  reserved for blocks that are kept for it: zero
//! 28  4  reserved for the volume's pod: zero
//! ```
//!
//! A reference count that has reached 2^32 - 1 stays there: the exact number of references is no
//! longer known, so the object is never freed.

use block::BLOCK_BYTES;
use block::request::limits::VOLUME_BYTES_MAX;

pub use crate::chunk_row::{
    ChunkRow, Codec, GROUP_BLOCKS_MAX, Handling, REFERENCES_STUCK, counted,
};
use crate::codec::{put, u32_at, u40_at, u64_at};
use crate::geometry::Place;
use crate::map::{Fanout, LEVEL_MAX, MapEntry, NodeId};

/// Bytes of a row of the chunk, node and volume tables.
pub const ROW_BYTES: usize = 32;

/// The location of a node, its reference count, and the counts of what is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its location; nowhere if it was never stored.
    pub place: Place,
    /// The number of entries of live nodes, or volumes, that refer to it.
    pub reference_count: u32,
    /// The checksum of its stored bytes.
    pub checksum: u64,
    /// The number of mapped blocks below it.
    pub mapped_blocks: u64,
    /// The number of blocks below it that refer to a chunk.
    pub data_blocks: u64,
    /// Its level, 1 for a leaf.
    pub level: u8,
}

impl NodeRow {
    /// Decodes a row; `None` if it is free or impossible.
    ///
    /// # Panics
    /// If `raw` is shorter than [`ROW_BYTES`].
    pub fn decode(raw: &[u8]) -> Option<Self> {
        let level = raw[30];
        if raw[31] != 1 || level == 0 || level > LEVEL_MAX {
            return None;
        }
        Some(Self {
            place: Place { segment: u32_at(raw, 0), offset_units: u32_at(raw, 4) },
            reference_count: u32_at(raw, 8),
            checksum: u64_at(raw, 12),
            mapped_blocks: u40_at(raw, 20),
            data_blocks: u40_at(raw, 25),
            level,
        })
    }

    /// Encodes the row into `out`, which has [`ROW_BYTES`].
    pub fn encode(&self, out: &mut [u8]) {
        put(out, 0, &self.place.segment.to_le_bytes());
        put(out, 4, &self.place.offset_units.to_le_bytes());
        put(out, 8, &self.reference_count.to_le_bytes());
        put(out, 12, &self.checksum.to_le_bytes());
        put(out, 20, &self.mapped_blocks.to_le_bytes()[..5]);
        put(out, 25, &self.data_blocks.to_le_bytes()[..5]);
        out[30] = self.level;
        out[31] = 1;
    }
}

impl NodeRow {
    /// Changes the reference count of a stored row ([`counted`]), without decoding the rest, and
    /// returns the new count; `None` if the row is free, or the count would fall below zero.
    ///
    /// # Panics
    /// If `raw` is shorter than [`ROW_BYTES`].
    pub fn count_references(raw: &mut [u8], change: i32) -> Option<u32> {
        if raw[31] != 1 {
            return None;
        }
        let count = counted(u32_at(raw, 8), change)?;
        put(raw, 8, &count.to_le_bytes());
        Some(count)
    }

    /// Returns the mapped and data blocks of a stored row; `None` if it is free.
    ///
    /// # Panics
    /// If `raw` is shorter than [`ROW_BYTES`].
    pub fn block_counts(raw: &[u8]) -> Option<(u64, u64)> {
        // Five bytes each: the bytes after them in the eight are shifted out.
        let (mapped, data) = (u64_at(raw, 20) & U40_MASK, u64_at(raw, 22) >> 24);
        (raw[31] == 1).then_some((mapped, data))
    }
}

const U40_MASK: u64 = (1 << 40) - 1;

/// A volume's map and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeRow {
    /// A hole or a node.
    pub root: MapEntry,
    /// Its size, in blocks.
    pub size_blocks: u64,
    /// The level of the root.
    pub level: u8,
    /// The kinds of reduction that are off.
    pub handling: Handling,
    /// Whether it is a snapshot, which hosts can't write to.
    pub snapshot: bool,
}

impl VolumeRow {
    /// The row of a volume of which nothing is known, except that it exists.
    pub const LOST: Self = Self {
        root: MapEntry::Node(NodeId::LOST),
        size_blocks: 0,
        level: 1,
        handling: Handling { uncompressed: false, unshared: false },
        snapshot: false,
    };

    /// Decodes a row; `None` if it is free or impossible.
    ///
    /// # Panics
    /// If `raw` is shorter than [`ROW_BYTES`].
    pub fn decode(raw: &[u8], fanout: Fanout) -> Option<Self> {
        let root = MapEntry::decode(u64_at(raw, 0)).ok()?;
        let level = raw[16];
        let possible = matches!(root, MapEntry::Hole | MapEntry::Node(_));
        if raw[17] != 1 || level == 0 || level > fanout.level_max() || !possible {
            return None;
        }
        let snapshot = match raw[18] {
            0 => false,
            1 => true,
            _ => return None,
        };
        let size_blocks = u64_at(raw, 8);
        let is_reserved_zero = raw[20..ROW_BYTES].iter().all(|byte| *byte == 0);
        let spanned = size_blocks <= fanout.span_blocks(level).min(VOLUME_BYTES_MAX / BLOCK_BYTES);
        let handling = Handling::decode(raw[19])?;
        (spanned && is_reserved_zero).then_some(Self {
            root,
            size_blocks,
            level,
            handling,
            snapshot,
        })
    }

    /// Encodes the row into `out`, which has [`ROW_BYTES`].
    pub fn encode(&self, out: &mut [u8]) {
        put(out, 0, &self.root.encode().to_le_bytes());
        put(out, 8, &self.size_blocks.to_le_bytes());
        out[16] = self.level;
        out[17] = 1;
        out[19] = self.handling.encode();
        out[18] = u8::from(self.snapshot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::Fingerprint;
    use crate::map::ChunkId;
    use crate::map::NodeId;

    #[test]
    fn a_volume_is_at_most_as_long_as_its_map() {
        let mut raw = [0; ROW_BYTES];
        let handling = Handling::default();
        let root = MapEntry::Hole;
        let snapshot = false;
        let row = |level, size_blocks| VolumeRow { root, size_blocks, level, handling, snapshot };
        for (level, size_blocks, fits) in
            [(1, 256, true), (1, 257, false), (5, 1 << 34, true), (5, (1 << 34) + 1, false)]
        {
            row(level, size_blocks).encode(&mut raw);
            assert_eq!(
                VolumeRow::decode(&raw, Fanout::DEFAULT).is_some(),
                fits,
                "{size_blocks} at {level}"
            );
        }
    }

    #[test]
    fn rows_survive() {
        let place = Place { segment: 7, offset_units: 0x0102_0304 };
        let chunk = ChunkRow {
            place,
            stored_units: 64,
            codec: Codec::Lz4,
            group_index: 5,
            group_blocks: 8,
            handling: Handling { uncompressed: true, unshared: false },
            original: None,
            reference_count: 3,
            fingerprint: Fingerprint([9; 16]),
        };
        let node = NodeRow {
            place,
            reference_count: 2,
            checksum: 0x1122_3344_5566_7788,
            mapped_blocks: (1 << 40) - 1,
            data_blocks: 17,
            level: 5,
        };
        let handling = Handling { uncompressed: false, unshared: true };
        let root = MapEntry::Node(NodeId(4));
        let volume = VolumeRow { root, size_blocks: 99, level: 2, handling, snapshot: true };
        let mut raw = [0; ROW_BYTES];
        chunk.encode(&mut raw);
        assert_eq!(ChunkRow::decode(&raw), Some(chunk));
        assert_eq!(ChunkRow::count_references(&mut raw, 2), Some(5));
        assert_eq!(ChunkRow::count_references(&mut raw, -2), Some(3));
        assert_eq!(ChunkRow::count_references(&mut raw, -4), None);
        assert_eq!(counted(u32::MAX - 1, 1), Some(u32::MAX));
        assert_eq!(counted(u32::MAX - 1, 256), Some(u32::MAX));
        assert_eq!(counted(u32::MAX, -1), Some(u32::MAX));
        assert_eq!(counted(u32::MAX - 1, -1), Some(u32::MAX - 2));
        assert_eq!(ChunkRow::count_references(&mut [0; ROW_BYTES], 1), None);
        assert_eq!(raw[..12], [7, 0, 0, 0, 4, 3, 2, 1, 64, 0, 2, 0x7d]);
        let original = Some(ChunkId(0x0102_0304_0506));
        let alias = ChunkRow {
            place: Place::NONE,
            stored_units: 0,
            codec: Codec::Alias,
            group_index: 0,
            group_blocks: 1,
            original,
            ..chunk
        };
        alias.encode(&mut raw);
        assert_eq!(ChunkRow::decode(&raw), Some(alias));
        node.encode(&mut raw);
        assert_eq!(NodeRow::decode(&raw), Some(node));
        assert_eq!(NodeRow::block_counts(&raw), Some((node.mapped_blocks, node.data_blocks)));
        assert_eq!(NodeRow::count_references(&mut raw, 3), Some(5));
        assert_eq!(NodeRow::count_references(&mut raw, -5), Some(0));
        assert_eq!(NodeRow::count_references(&mut raw, -1), None);
        assert_eq!(NodeRow::count_references(&mut [0; ROW_BYTES], 1), None);
        raw = [0; ROW_BYTES];
        volume.encode(&mut raw);
        assert_eq!(VolumeRow::decode(&raw, Fanout::DEFAULT), Some(volume));
        for (at, value) in [(18, 2), (20, 1), (27, 1), (28, 1), (31, 1)] {
            let mut other = raw; // unknown flags and fields
            other[at] = value;
            assert_eq!(VolumeRow::decode(&other, Fanout::DEFAULT), None, "byte {at}");
        }
    }

    #[test]
    fn a_row_of_zeros_is_free() {
        let raw = [0; ROW_BYTES];
        assert_eq!(ChunkRow::decode(&raw), None);
        assert_eq!(NodeRow::decode(&raw), None);
        assert_eq!(VolumeRow::decode(&raw, Fanout::DEFAULT), None);
    }
}
