//! The nodes of all maps, by id: in memory once they were wanted, with their rows in a table.

use std::collections::HashMap;
use std::sync::Arc;

use format::map::Node;
use format::page::{PageRef, TableRoot};
use format::row::ROW_BYTES;
use format::{NodeId, NodeRow, Place};
use parking_lot::{Mutex, RwLock};

use crate::StoreError;
use crate::medium::Medium;
use crate::pages::FastState;
use crate::table::Table;
use crate::world::Counts;

const SHARDS: usize = 64;

struct Slot {
    node: Arc<Node>,
    level: u8,
    dirty: bool,
}

/// All nodes.
pub(crate) struct Nodes {
    pub(crate) table: Table,
    shards: Vec<RwLock<HashMap<NodeId, Slot, FastState>>>,
    dirty: Mutex<Vec<NodeId>>,
}

fn missing(id: NodeId) -> StoreError {
    StoreError::Damaged(format!("node {} is named but does not exist", id.0))
}

/// A node that an entry is to name, and what is below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Referenced {
    pub(crate) id: NodeId,
    pub(crate) counts: Counts,
}

impl Referenced {
    /// A node whose row was not looked at yet.
    pub(crate) fn unread(id: NodeId) -> Self {
        Self { id, counts: Counts::default() }
    }
}

fn counts_in(raw: &[u8]) -> Option<Counts> {
    NodeRow::block_counts(raw).map(|(mapped, data)| Counts { mapped, data })
}

impl Nodes {
    /// The nodes whose rows are in the table at `root`.
    pub(crate) fn new(root: TableRoot) -> Self {
        Self {
            table: Table::new(root),
            shards: (0..SHARDS).map(|_| RwLock::new(HashMap::default())).collect(),
            dirty: Mutex::new(Vec::new()),
        }
    }

    fn shard(&self, id: NodeId) -> &RwLock<HashMap<NodeId, Slot, FastState>> {
        &self.shards[id.0 as usize % SHARDS]
    }

    /// The row of a node that must exist.
    pub(crate) fn row(&self, medium: &Medium, id: NodeId) -> Result<NodeRow, StoreError> {
        self.table.get(medium, id.0, NodeRow::decode)?.ok_or_else(|| missing(id))
    }

    /// Changes the row of a node that must exist.
    pub(crate) fn update_row<T>(
        &self,
        medium: &Medium,
        id: NodeId,
        change: impl FnOnce(&mut NodeRow) -> T,
    ) -> Result<T, StoreError> {
        let result = self.table.update(medium, id.0, |raw| {
            let mut row = NodeRow::decode(raw)?;
            let result = change(&mut row);
            row.encode(raw);
            Some(result)
        })?;
        result.ok_or_else(|| missing(id))
    }

    /// One reference more for each of some nodes that must exist; what is below each.
    pub(crate) fn reference_all(
        &self,
        medium: &Medium,
        nodes: &mut [Referenced],
    ) -> Result<(), StoreError> {
        let mut rows = self.table.cursor(medium);
        for node in nodes {
            let raw = rows.row(node.id.0)?;
            node.counts = counts_in(raw).ok_or_else(|| missing(node.id))?;
            NodeRow::count_references(raw, 1).ok_or_else(|| missing(node.id))?;
        }
        Ok(())
    }

    /// One reference less for each of some nodes that must exist; what is below them, together.
    /// Those that nothing names any more go to `unnamed`.
    pub(crate) fn release_all(
        &self,
        medium: &Medium,
        ids: impl Iterator<Item = NodeId>,
        unnamed: &mut Vec<NodeId>,
    ) -> Result<Counts, StoreError> {
        let mut counts = Counts::default();
        let mut rows = self.table.cursor(medium);
        for id in ids {
            let raw = rows.row(id.0)?;
            counts += counts_in(raw).ok_or_else(|| missing(id))?;
            let left = NodeRow::count_references(raw, -1).ok_or_else(|| missing(id))?;
            if left == 0 {
                unnamed.push(id);
            }
        }
        Ok(counts)
    }

    /// The node, from memory or from the medium, where an entry names it that only a node of this
    /// level can stand for: so no map leads in a circle, whatever its bytes are.
    pub(crate) fn get(
        &self,
        medium: &Medium,
        id: NodeId,
        level: u8,
    ) -> Result<Arc<Node>, StoreError> {
        let (node, found) = self.find(medium, id)?;
        if found == level {
            return Ok(node);
        }
        let text = format!("node {} of level {found} is named as one of level {level}", id.0);
        Err(StoreError::Damaged(text))
    }

    /// The node, whatever its level, and that.
    pub(crate) fn find(&self, medium: &Medium, id: NodeId) -> Result<(Arc<Node>, u8), StoreError> {
        if let Some(slot) = self.shard(id).read().get(&id) {
            return Ok((slot.node.clone(), slot.level));
        }
        let row = self.row(medium, id)?;
        let reference = PageRef { place: row.place, checksum: row.checksum };
        let level = row.level;
        let node = Arc::new(medium.read_node(reference, level)?);
        let mut shard = self.shard(id).write();
        let slot = shard.entry(id).or_insert(Slot { node, level, dirty: false });
        Ok((slot.node.clone(), slot.level))
    }

    /// Changes a node that is named once (a copy is made only if a reader holds it just now).
    pub(crate) fn change<T>(
        &self,
        medium: &Medium,
        id: NodeId,
        change: impl FnOnce(&mut Node) -> T,
    ) -> Result<T, StoreError> {
        drop(self.find(medium, id)?);
        let mut shard = self.shard(id).write();
        let slot = shard.get_mut(&id).ok_or_else(|| missing(id))?;
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.lock().push(id);
        }
        Ok(change(Arc::make_mut(&mut slot.node)))
    }

    /// Adds a node that was never stored.
    pub(crate) fn insert(
        &self,
        medium: &Medium,
        id: NodeId,
        node: Node,
        row: NodeRow,
    ) -> Result<(), StoreError> {
        self.table.update(medium, id.0, |raw| row.encode(raw))?;
        let slot = Slot { node: Arc::new(node), level: row.level, dirty: true };
        self.shard(id).write().insert(id, slot);
        self.dirty.lock().push(id);
        Ok(())
    }

    /// Has the next checkpoint write a node anew that is damaged on the device; `false` if it is
    /// not in memory. One that was removed meanwhile needs no more than that checkpoint.
    pub(crate) fn write_anew(&self, medium: &Medium, id: NodeId) -> bool {
        match self.table.get(medium, id.0, NodeRow::decode) {
            Ok(None) => return true,
            // The row changes with the place.
            Ok(Some(_)) if self.shard(id).read().contains_key(&id) => {}
            _ => return false,
        }
        if self.table.update(medium, id.0, |_| ()).is_err() {
            return false;
        }
        let mut shard = self.shard(id).write();
        let Some(slot) = shard.get_mut(&id) else { return false };
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.lock().push(id);
        }
        true
    }

    /// Removes a node, and returns where it was stored.
    pub(crate) fn remove(&self, medium: &Medium, id: NodeId) -> Result<Place, StoreError> {
        let row = self.row(medium, id)?;
        self.table.update(medium, id.0, |raw| raw[..ROW_BYTES].fill(0))?;
        self.shard(id).write().remove(&id);
        Ok(row.place)
    }

    /// The nodes that have changed since the last capture, in the order of their ids; from here
    /// on they count as unchanged. The caller holds the writer's lock.
    pub(crate) fn take_dirty(&self) -> Vec<(NodeId, Arc<Node>)> {
        let mut ids = std::mem::take(&mut *self.dirty.lock());
        ids.sort_unstable();
        ids.dedup();
        let mut nodes = Vec::with_capacity(ids.len());
        for id in ids {
            // A node that was removed since is not in memory any more.
            if let Some(slot) = self.shard(id).write().get_mut(&id) {
                slot.dirty = false;
                nodes.push((id, slot.node.clone()));
            }
        }
        nodes
    }
}
