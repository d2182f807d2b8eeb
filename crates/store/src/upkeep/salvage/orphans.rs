//! Unreferenced maps, because the rows of their volumes are lost.

use format::{MapEntry, NodeId, NodeRow};

use super::tables::{Row, rows};
use super::{OrphanMap, Salvage};

/// The maximum number of nodes of a pool that are examined: a bit each.
const NODES_MAX: u64 = 1 << 34;

impl Salvage {
    /// Returns the maps to which no volume, no node and nothing else readable refers; empty if the
    /// rows of all volumes can be read. They are those of the checkpoint: changes in the log of a
    /// volume whose row is lost are listed with that volume.
    pub fn orphans(&self) -> Vec<OrphanMap> {
        let end = self.superblock.next_node.0;
        if self.volumes.lost_ids().is_empty() || end > NODES_MAX {
            return Vec::new();
        }
        let mut named = vec![0_u64; (end as usize).div_ceil(64)];
        let mut name = |entry: MapEntry| {
            if let MapEntry::Node(NodeId(id)) = entry
                && let Some(word) = named.get_mut(id as usize / 64)
            {
                *word |= 1 << (id % 64);
            }
        };
        self.volumes.maps().iter().for_each(|row| name(row.root));
        self.each_node(&mut |id, row| {
            if row.level > 1
                && let Ok((node, _)) = self.world.nodes.find(&self.world.medium, NodeId(id))
            {
                node.entries().for_each(&mut name);
            }
        });
        let mut orphans = Vec::new();
        self.each_node(&mut |id, row| {
            // What has no reference count is about to be freed.
            let is_named = named[id as usize / 64] >> (id % 64) & 1 == 1;
            if !is_named && row.reference_count > 0 && row.mapped_blocks > 0 {
                let span_blocks = self.world.span_blocks(row.level);
                let (mapped_blocks, level) = (row.mapped_blocks, row.level);
                orphans.push(OrphanMap { node: id, mapped_blocks, span_blocks, level });
            }
        });
        orphans
    }

    fn each_node(&self, visit: &mut dyn FnMut(u64, &NodeRow)) {
        let Self { world, superblock, .. } = self;
        rows(&world.medium, superblock.nodes, superblock.next_node.0, &mut |row| {
            if let Row::Found(id, raw) = row
                && let Some(row) = NodeRow::decode(raw)
                && row.level <= world.medium.tuning.fanout.level_max()
            {
                visit(id, &row);
            }
        });
    }
}
