//! Rewriting metadata of which one copy is bad from the other.
//!
//! A reader of metadata takes the second copy if the first is bad, and records that. The next turn
//! of maintenance marks it dirty, and a checkpoint writes both copies to a new location. The bad
//! copy is not overwritten in place, because the location may have been reused by then. Scrubbing
//! reads both copies of everything, and does the same.

use std::collections::BTreeSet;

use format::{LeafRow, NodeId};

use crate::StoreError;
use crate::chunks::pages::PageKey;
use crate::chunks::table_name::TableName;
use crate::upkeep::Store;
use crate::upkeep::scrub::What;

impl Store {
    /// Returns whether metadata was read whose first copy is bad.
    pub(crate) fn has_bad_copies(&self) -> bool {
        let tables = self.world.tables();
        self.world.medium.mends.chunks.is_some()
            || self.world.nodes.bad_copies.is_some()
            || self.world.bad_leaves.is_some()
            || tables.into_iter().any(|table| table.bad_copies.is_some())
    }

    /// Adds to the list of damage what was wrong in one of several copies, and was repaired.
    pub(crate) fn note_mended(&self) {
        let mended = self.world.medium.mends.chunks.take().into_iter();
        let found: Vec<_> = mended.map(|(id, place)| (What::Chunk(id), place)).collect();
        if !found.is_empty() {
            self.note_repaired(&found);
        }
    }

    /// Returns how many locations of copies were not what was written, and were rewritten, since
    /// the pool was opened.
    pub fn mended_copies(&self) -> u64 {
        self.world.medium.mends.count()
    }

    /// Has a checkpoint rewrite what was read from its second copy. What was evicted meanwhile is
    /// recorded again by its next reader.
    pub(crate) fn repair_copies(&self) -> Result<(), StoreError> {
        self.note_mended();
        let pages: Vec<(TableName, PageKey)> = TableName::ALL
            .into_iter()
            .flat_map(|name| {
                let keys = self.world.table(name).bad_copies.take();
                keys.into_iter().map(move |key| (name, key))
            })
            .collect();
        let nodes: Vec<NodeId> = self.world.nodes.bad_copies.take();
        let mut found = Vec::new();
        for (name, key) in pages {
            let table = self.world.table(name);
            let stored = table.stored_at(&self.world.medium, key);
            if self.write_page_anew(name, key) {
                let what = What::Page { table: name, level: key.0, number: key.1 };
                found.extend(stored.map(|page| (what, page.place)));
            }
        }
        for id in nodes {
            let row = self.world.nodes.row(&self.world.medium, id);
            if self.write_node_anew(id) {
                found.extend(row.ok().map(|row| (What::Node(id.0), row.place)));
            }
        }
        let leaves: BTreeSet<u64> = self.world.bad_leaves.take().into_iter().collect();
        let leaves = self.write_leaves_anew(&leaves).into_iter();
        found.extend(leaves.filter_map(|number| {
            let row = self.world.leaves.get(&self.world.medium, number, LeafRow::decode).ok()??;
            Some((What::Leaf(number), row.first.page.place))
        }));
        if found.is_empty() {
            return Ok(());
        }
        self.checkpoint()?;
        self.note_repaired(&found);
        Ok(())
    }
}
