//! The tables of a pool.

use format::Superblock;
use format::page::TableRoot;

/// A table of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TableName {
    /// The table of chunks.
    Chunks,
    /// The table of map nodes.
    Nodes,
    /// The table of volumes.
    Volumes,
    /// The table of the key-value space's leaves.
    Leaves,
    /// The table of segments.
    Segments,
}

impl TableName {
    /// All tables, in the order of a scrub and of a capture.
    pub(crate) const ALL: [Self; 5] =
        [Self::Chunks, Self::Nodes, Self::Volumes, Self::Leaves, Self::Segments];

    /// Returns the roots of all tables, in this order.
    pub(crate) fn roots(superblock: &Superblock) -> [TableRoot; Self::ALL.len()] {
        let Superblock { chunks, nodes, volumes, leaves, segment_table, .. } = *superblock;
        [chunks, nodes, volumes, leaves, segment_table]
    }
}
