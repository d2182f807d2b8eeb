//! The tables of a pool.

use format::Superblock;
use format::page::TableRoot;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TableName {
    /// Where chunks are.
    Chunks,
    /// Where nodes are.
    Nodes,
    /// What the volumes are.
    Volumes,
    /// Where the leaves of the key-value space are.
    Leaves,
    /// What the segments are.
    Segments,
}

impl TableName {
    /// All, in their order, which is that of a scrub and of a capture.
    pub(crate) const ALL: [Self; 5] =
        [Self::Chunks, Self::Nodes, Self::Volumes, Self::Leaves, Self::Segments];

    /// The roots of all, in this order.
    pub(crate) fn roots(superblock: &Superblock) -> [TableRoot; Self::ALL.len()] {
        let Superblock { chunks, nodes, volumes, leaves, segment_table, .. } = *superblock;
        [chunks, nodes, volumes, leaves, segment_table]
    }
}
