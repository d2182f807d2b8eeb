//! Metadata of which one copy is bad, written anew from the other.
//!
//! A reader of metadata takes the second copy if the first is bad, and notes what it was. The next
//! turn of maintenance marks it dirty, and a checkpoint writes both copies at a new place. The bad
//! copy is not overwritten in place, because by then the place may be in use for something else.
//! Scrubbing reads both copies of everything, and does the same.
//!
//! Notes are kept in memory only, and so many at most: what is not noted is found again by the next
//! reader, or by the next scrub.

use std::collections::BTreeSet;

use format::{LeafRow, NodeId};

use crate::StoreError;
use crate::chunks::pages::PageKey;
use crate::store::Store;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::upkeep::scrub::{TableName, What};

/// Notes that are kept of one kind.
const NOTES_MAX: usize = 256;

/// What was found bad in its first copy.
#[derive(Debug)]
pub(crate) struct BadCopies<K> {
    noted: Mutex<Vec<K>>,
    is_some: AtomicBool,
}

impl<K> Default for BadCopies<K> {
    fn default() -> Self {
        Self { noted: Mutex::new(Vec::new()), is_some: AtomicBool::new(false) }
    }
}

impl<K: PartialEq> BadCopies<K> {
    /// Something was read from its second copy.
    pub(crate) fn note(&self, key: K) {
        let mut noted = self.noted.lock();
        if noted.len() < NOTES_MAX && !noted.contains(&key) {
            noted.push(key);
        }
        self.is_some.store(true, Ordering::Release);
    }

    /// Whether anything was noted. Takes no lock.
    pub(crate) fn is_some(&self) -> bool {
        self.is_some.load(Ordering::Acquire)
    }

    fn take(&self) -> Vec<K> {
        if !self.is_some() {
            return Vec::new();
        }
        let mut noted = self.noted.lock();
        self.is_some.store(false, Ordering::Release);
        std::mem::take(&mut *noted)
    }
}

impl Store {
    /// Whether metadata was read whose first copy is bad.
    pub(crate) fn has_bad_copies(&self) -> bool {
        let tables = self.world.tables();
        self.world.nodes.bad_copies.is_some()
            || self.world.bad_leaves.is_some()
            || tables.into_iter().any(|table| table.bad_copies.is_some())
    }

    /// Has a checkpoint write anew what was read from its second copy since. What has left memory
    /// meanwhile is noted again by its next reader.
    pub(crate) fn repair_copies(&self) -> Result<(), StoreError> {
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
