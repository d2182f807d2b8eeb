//! How much is below an entry of a map.

use format::MapEntry;

/// How many blocks are mapped, and how many of them refer to a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) mapped: u64,
    pub(crate) data: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.mapped += other.mapped;
        self.data += other.data;
    }
}

impl Counts {
    /// Returns the counts of blocks that all have this entry, which is not a node.
    pub(crate) fn alike(entry: MapEntry, blocks: u64) -> Self {
        match entry {
            MapEntry::Zero | MapEntry::Pattern(_) => Self { mapped: blocks, data: 0 },
            MapEntry::Chunk(_) => Self { mapped: blocks, data: blocks },
            MapEntry::Hole | MapEntry::Node(_) => Self::default(),
        }
    }
}
