//! The map: the content of a volume's blocks, in nodes of 256 entries.
//!
//! ```text
//! entry, 8 bytes        bits 60..64  kind: 0 hole, 1 zeros, 2 pattern, 3 chunk, 4 node;
//!                                    5 reserved
//!                       bits  0..60  pattern: the 32 bits that repeat; chunk, node: the id
//! node, 2048 bytes      256 entries. Level 1 (a leaf): an entry a block. Level n > 1: an entry
//!                       for each 256^(n-1) blocks, which is a node of level n-1, or a hole,
//!                       zeros, a pattern or a chunk for all of them.
//! ```
//!
//! A chunk in a node above the leaves is a repeated block. Such an entry counts as one reference to
//! the chunk, whatever it spans. Pools created before this kind of entry existed have chunks in
//! leaves only, and can be read; a version that does not know it refuses the node.
//!
//! Kind 5 is reserved for blocks that are in another pool. Nothing writes it, and this version
//! refuses a node that contains it.
//!
//! The highest id, 2^60 - 1, is not a real object. As a chunk it is a block with lost content:
//! recovery could not read the data that the log had to change there. As the root of a volume it
//! says that nothing is known about the volume except its existence.

use block::BLOCK_BYTES;
use block::request::limits::VOLUME_BYTES_MAX;

use crate::FormatError;
use crate::codec::{put, u64_at};

/// The number of entries in a node.
pub const NODE_ENTRIES: usize = 256;
/// Bytes of a node.
pub const NODE_BYTES: usize = NODE_ENTRIES * 8;
/// The highest level at any fan-out: with four entries per node, such a node spans the largest
/// volume. With 256 entries that is level 5 ([`Fanout::level_max`]).
pub const LEVEL_MAX: u8 = 17;
/// The largest volume, 64 TiB, in blocks.
const VOLUME_BLOCKS_MAX: u64 = VOLUME_BYTES_MAX / BLOCK_BYTES;

/// What is wrong with an entry of kind 5.
const IN_ANOTHER_POOL: &str = "a map entry refers to data of another pool, which is not supported";
const KIND_SHIFT: u32 = 60;
const ID_MASK: u64 = (1 << KIND_SHIFT) - 1;

/// The id of a chunk: one stored 4 KiB block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId(pub u64);

impl ChunkId {
    /// Stands for a block whose content is lost. This chunk never has a row, and references to it
    /// are not counted.
    pub const LOST: Self = Self(ID_MASK);
}

/// The id of a node of the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The root of a volume of which nothing is known, except that it exists.
    pub const LOST: Self = Self(ID_MASK);
}

/// The content of a part of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MapEntry {
    /// Never written, or unmapped: reads as zeros.
    #[default]
    Hole,
    /// Written with zeros.
    Zero,
    /// Written with these 32 bits (as they are in memory, little endian), repeated.
    Pattern(u32),
    /// A block, by its chunk; above the leaves, many blocks that are all equal to it.
    Chunk(ChunkId),
    /// A part of the map, by its node.
    Node(NodeId),
}

impl MapEntry {
    /// Encodes it.
    pub fn encode(self) -> u64 {
        let (kind, value) = match self {
            Self::Hole => (0, 0),
            Self::Zero => (1, 0),
            Self::Pattern(bits) => (2, u64::from(bits)),
            Self::Chunk(id) => (3, id.0),
            Self::Node(id) => (4, id.0),
        };
        debug_assert!(value <= ID_MASK);
        kind << KIND_SHIFT | value & ID_MASK
    }

    /// Decodes one.
    pub fn decode(raw: u64) -> Result<Self, FormatError> {
        let value = raw & ID_MASK;
        match (raw >> KIND_SHIFT, value) {
            (0, 0) => Ok(Self::Hole),
            (1, 0) => Ok(Self::Zero),
            (2, bits) if bits <= u64::from(u32::MAX) => Ok(Self::Pattern(bits as u32)),
            (3, id) => Ok(Self::Chunk(ChunkId(id))),
            (4, id) => Ok(Self::Node(NodeId(id))),
            (5, _) => Err(FormatError { what: IN_ANOTHER_POOL, offset: 0 }),
            _ => Err(FormatError { what: "unknown kind of map entry", offset: 0 }),
        }
    }

    /// Returns whether all blocks below it are alike, without a reference to anything.
    pub fn is_uniform(self) -> bool {
        matches!(self, Self::Hole | Self::Zero | Self::Pattern(_))
    }

    /// Returns whether the blocks count as mapped (SBC-4).
    pub fn is_mapped(self) -> bool {
        self != Self::Hole
    }
}

/// How many of its entries a node uses: 256 in every pool. The simulator may use fewer, so that
/// small volumes have maps of many levels; the rest of each node stays holes. A pool does not
/// record its fan-out, so it must always be opened with the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fanout {
    log2: u8,
}

impl Fanout {
    /// The fan-out of every pool.
    pub const DEFAULT: Self = Self { log2: 8 };
    /// The smallest fan-out: four entries.
    pub const SMALL: Self = Self { log2: 2 };

    /// Returns the fan-out with `entries` per node: a power of two from 4 to 256.
    pub fn of_entries(entries: usize) -> Option<Self> {
        let valid = entries.is_power_of_two() && (4..=NODE_ENTRIES).contains(&entries);
        valid.then_some(Self { log2: entries.trailing_zeros() as u8 })
    }

    /// Returns how many entries of a node are used.
    pub fn entries(self) -> usize {
        1 << self.log2
    }

    /// Returns the highest level: a node of it spans the largest volume, 64 TiB.
    pub fn level_max(self) -> u8 {
        (VOLUME_BLOCKS_MAX.ilog2() as u8).div_ceil(self.log2)
    }

    /// Returns how many blocks a node of `level` spans; level 0 is a block itself.
    #[inline]
    pub fn span_blocks(self, level: u8) -> u64 {
        debug_assert!(level <= self.level_max());
        1 << (u32::from(self.log2) * u32::from(level))
    }

    /// Returns the lowest level whose nodes span `blocks`.
    pub fn level_for(self, blocks: u64) -> u8 {
        let max = self.level_max();
        (1..max).find(|&level| self.span_blocks(level) >= blocks).unwrap_or(max)
    }
}

impl Default for Fanout {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A node in memory: the entries in their encoded form, all of them known to decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    raw: [u64; NODE_ENTRIES],
}

impl Node {
    /// Returns a node with `entry` everywhere.
    pub fn uniform(entry: MapEntry, fanout: Fanout) -> Self {
        let mut node = Self::empty();
        node.raw[..fanout.entries()].fill(entry.encode());
        node
    }

    /// Returns a node of holes.
    pub fn empty() -> Self {
        Self { raw: [MapEntry::Hole.encode(); NODE_ENTRIES] }
    }

    /// Returns the entry at `index` (0..256).
    pub fn get(&self, index: usize) -> MapEntry {
        MapEntry::decode(self.raw[index]).expect("checked when it was decoded or set")
    }

    /// Changes the entry at `index` (0..256).
    pub fn set(&mut self, index: usize, entry: MapEntry) {
        self.raw[index] = entry.encode();
    }

    /// Returns all entries, in order; unused ones are holes.
    pub fn entries(&self) -> impl Iterator<Item = MapEntry> + '_ {
        (0..NODE_ENTRIES).map(|index| self.get(index))
    }

    /// Encodes it into `out`, which has [`NODE_BYTES`].
    pub fn encode(&self, out: &mut [u8]) {
        for (index, raw) in self.raw.iter().enumerate() {
            put(out, index * 8, &raw.to_le_bytes());
        }
    }

    /// Decodes one; `level` determines whether its entries may refer to nodes.
    pub fn decode(bytes: &[u8], level: u8) -> Result<Self, FormatError> {
        if bytes.len() != NODE_BYTES {
            return Err(FormatError { what: "a node has 2048 bytes", offset: 0 });
        }
        let mut node = Self::empty();
        for (index, slot) in node.raw.iter_mut().enumerate() {
            let offset = index * 8;
            let raw = u64_at(bytes, offset);
            let entry = MapEntry::decode(raw).map_err(|error| FormatError { offset, ..error })?;
            if level == 1 && matches!(entry, MapEntry::Node(_)) {
                return Err(FormatError {
                    what: "an entry that is impossible at its level",
                    offset,
                });
            }
            *slot = raw;
        }
        Ok(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_and_unknown_ones_are_refused() {
        let entries = [
            MapEntry::Hole,
            MapEntry::Zero,
            MapEntry::Pattern(u32::MAX),
            MapEntry::Chunk(ChunkId(ID_MASK)),
            MapEntry::Node(NodeId(1)),
        ];
        for entry in entries {
            assert_eq!(MapEntry::decode(entry.encode()), Ok(entry));
        }
        let elsewhere = MapEntry::decode(5 << KIND_SHIFT | 7).unwrap_err();
        assert_eq!(elsewhere.what, IN_ANOTHER_POOL);
        assert!(MapEntry::decode(6 << KIND_SHIFT).is_err());
        assert!(MapEntry::decode(1).is_err());
        assert!(MapEntry::decode(2 << KIND_SHIFT | 1 << 32).is_err());
    }

    #[test]
    fn a_leaf_refers_to_no_nodes() {
        let mut bytes = [0; NODE_BYTES];
        Node::uniform(MapEntry::Chunk(ChunkId(9)), Fanout::DEFAULT).encode(&mut bytes);
        assert!(Node::decode(&bytes, 1).is_ok());
        assert!(Node::decode(&bytes, 2).is_ok(), "a block that repeats");
        Node::uniform(MapEntry::Node(NodeId(9)), Fanout::DEFAULT).encode(&mut bytes);
        assert!(Node::decode(&bytes, 1).is_err());
        assert!(Node::decode(&bytes, 2).is_ok());
    }

    #[test]
    fn golden_bytes_of_a_node() {
        let mut bytes = [0xff; NODE_BYTES];
        let mut node = Node::empty();
        node.set(1, MapEntry::Pattern(0xdead_beef));
        node.set(2, MapEntry::Chunk(ChunkId(0x0102_0304)));
        node.encode(&mut bytes);
        assert_eq!(bytes[..8], [0; 8]);
        assert_eq!(bytes[8..16], [0xef, 0xbe, 0xad, 0xde, 0, 0, 0, 0x20]);
        assert_eq!(bytes[16..24], [4, 3, 2, 1, 0, 0, 0, 0x30]);
    }

    #[test]
    fn levels_have_their_spans() {
        let fanout = Fanout::DEFAULT;
        assert_eq!(fanout.span_blocks(1) * 4096, 1 << 20);
        assert_eq!(fanout.span_blocks(2) * 4096, 256 << 20);
        assert_eq!(fanout.level_for(1), 1);
        assert_eq!(fanout.level_for(257), 2);
        assert_eq!(fanout.level_for(VOLUME_BLOCKS_MAX), 5);
        assert_eq!(fanout.level_max(), 5);
    }

    #[test]
    fn a_small_fanout_makes_high_maps() {
        let four = Fanout::of_entries(4).unwrap();
        assert_eq!((four.span_blocks(1), four.span_blocks(3)), (4, 64));
        assert_eq!(four.level_for(65), 4);
        assert_eq!(four.level_max(), LEVEL_MAX);
        assert!(four.span_blocks(LEVEL_MAX) >= VOLUME_BLOCKS_MAX);
        for entries in [0, 1, 2, 3, 5, 512] {
            assert_eq!(Fanout::of_entries(entries), None);
        }
    }
}
