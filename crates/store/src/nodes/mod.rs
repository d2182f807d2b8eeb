//! The nodes of all maps, by id: cached in memory, with their rows in a table.

use std::sync::Arc;

use format::map::Node;
use format::page::{PageRef, TableRoot};
use format::row::ROW_BYTES;
use format::{MapEntry, NodeId, NodeRow, Place};

use crate::StoreError;
use crate::chunks::asking::Source;
use crate::chunks::bad_copies::BadCopies;
use crate::chunks::medium::{Copied, Medium};
use crate::chunks::memory::{Memory, NODE_COST_BYTES};
use crate::chunks::shards::Shards;
use crate::chunks::table::Table;
use crate::nodes::counts::Counts;
use crate::nodes::slots::{Shard, Slot};
use crate::sync::{Mutex, RwLock};

/// All nodes.
pub(crate) struct Nodes {
    pub(crate) table: Table,
    shards: Arc<Shards<Shard>>,
    memory: Arc<Memory>,
    pub(crate) dirty: Mutex<Vec<NodeId>>,
    /// Nodes whose first copy was bad.
    pub(crate) bad_copies: BadCopies<NodeId>,
}

fn missing(id: NodeId) -> StoreError {
    StoreError::Damaged(format!("node {} is referenced but does not exist", id.0))
}

/// A node to which an entry will refer, and what is below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Referenced {
    pub(crate) id: NodeId,
    pub(crate) counts: Counts,
}

impl Referenced {
    /// A node whose row was not read yet.
    pub(crate) fn unread(id: NodeId) -> Self {
        Self { id, counts: Counts::default() }
    }
}

fn counts_in(raw: &[u8]) -> Option<Counts> {
    NodeRow::block_counts(raw).map(|(mapped, data)| Counts { mapped, data })
}

/// Returns the node to which an entry refers, if it does.
pub(crate) fn node_of(entry: MapEntry) -> Option<NodeId> {
    match entry {
        MapEntry::Node(id) => Some(id),
        _ => None,
    }
}

impl Nodes {
    /// The nodes whose rows are in the table at `root`.
    pub(crate) fn new(root: TableRoot, memory: &Arc<Memory>) -> Self {
        let shards = Arc::new(Shards::new());
        memory.join(shards.clone());
        Self {
            table: Table::new(root, memory),
            shards,
            memory: memory.clone(),
            dirty: Mutex::new(Vec::new()),
            bad_copies: BadCopies::default(),
        }
    }

    fn shard(&self, id: NodeId) -> &RwLock<Shard> {
        self.shards.of(id)
    }

    /// Reads the row of a node that must exist.
    pub(crate) fn row<'a>(
        &self,
        source: impl Into<Source<'a>>,
        id: NodeId,
    ) -> Result<NodeRow, StoreError> {
        let source = source.into();
        let row = self.table.get(source, id.0, NodeRow::decode)?;
        let possible = |row: &NodeRow| row.level <= source.tuning.fanout.level_max();
        row.filter(possible).ok_or_else(|| missing(id))
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

    /// Adds a reference to each of some nodes that must exist; returns what is below each.
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

    /// Releases a reference to each of some nodes that must exist; returns what is below them,
    /// together. Those without references are added to `unnamed`.
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

    /// Returns the node, from memory or from the medium, given an entry for which only a node of
    /// this level is possible: so no map contains a cycle, even if its bytes are corrupt.
    pub(crate) fn get<'a>(
        &self,
        source: impl Into<Source<'a>>,
        id: NodeId,
        level: u8,
    ) -> Result<Arc<Node>, StoreError> {
        let (node, found) = self.find(source, id)?;
        if found == level {
            return Ok(node);
        }
        let text = format!("node {} of level {found} is referenced as one of level {level}", id.0);
        Err(StoreError::Damaged(text))
    }

    /// Returns the node and its level.
    pub(crate) fn find<'a>(
        &self,
        source: impl Into<Source<'a>>,
        id: NodeId,
    ) -> Result<(Arc<Node>, u8), StoreError> {
        let source = source.into();
        loop {
            let seen = {
                let shard = self.shard(id).read();
                if let Some(slot) = shard.get(id) {
                    slot.plan.set(source.plan());
                    return Ok((slot.node.clone(), slot.level));
                }
                shard.generation
            };
            if let Some(found) = self.load(source, id, seen)? {
                return Ok(found);
            }
        }
    }

    /// Reads a node from the medium that was not in memory when its shard had the generation
    /// `seen`; `None` if it must be looked up again. What is added is the newest version, as for
    /// pages ([`Table`], `load`), with the row as the parent. The row refers to the version of a
    /// capture before that is written, and the node is not evicted before that.
    fn load(
        &self,
        source: Source<'_>,
        id: NodeId,
        seen: u64,
    ) -> Result<Option<(Arc<Node>, u8)>, StoreError> {
        let row = self.row(source, id)?;
        let level = row.level;
        if source.waits() {
            self.memory.missed();
        }
        let reference = PageRef { place: row.place, checksum: row.checksum };
        let read = source.node(reference, level);
        if let Err(StoreError::Absent) = read {
            return Err(StoreError::Absent);
        }
        self.memory.make_room(NODE_COST_BYTES);
        let mut shard = self.shard(id).write();
        if let Some(slot) = shard.get(id) {
            slot.plan.set(source.plan());
            return Ok(Some((slot.node.clone(), slot.level)));
        }
        if shard.generation != seen {
            return Ok(None);
        }
        let Copied { content: node, is_second } = read?;
        shard.add(id, node.clone(), level, false);
        if source.plan() > 0
            && let Some(slot) = shard.get(id)
        {
            slot.plan.set(source.plan());
        }
        if is_second {
            self.bad_copies.note(id);
        }
        self.memory.hold(NODE_COST_BYTES);
        Ok(Some((node, level)))
    }

    /// Changes a node with one reference (it is copied only if a reader holds it at the moment).
    pub(crate) fn change<T>(
        &self,
        medium: &Medium,
        id: NodeId,
        change: impl FnOnce(&mut Node) -> T,
    ) -> Result<T, StoreError> {
        loop {
            if let Some(slot) = self.shard(id).write().get_mut(id) {
                self.mark(slot);
                return Ok(change(Arc::make_mut(&mut slot.node)));
            }
            // It may be evicted before the lock is taken, but rarely, because it counts as used.
            drop(self.find(medium, id)?);
        }
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
        self.memory.make_room(NODE_COST_BYTES);
        self.memory.hold(NODE_COST_BYTES);
        self.memory.dirtied(NODE_COST_BYTES, 0);
        let mut shard = self.shard(id).write();
        // Ids are never reused; a log that says otherwise is damaged, and must not make counts
        // wrong.
        if let Some(before) = shard.remove(id) {
            self.dropped(&before);
        }
        shard.add(id, Arc::new(node), row.level, true);
        if let Some(slot) = shard.get_mut(id) {
            // As for one that changes (`mark`).
            slot.plan.set(self.memory.plans.now());
        }
        self.dirty.lock().push(id);
        Ok(())
    }

    /// Has the next checkpoint rewrite a node that is damaged on the device; returns `false` if it
    /// is not in memory. One that was removed meanwhile needs only that checkpoint.
    pub(crate) fn write_anew(&self, medium: &Medium, id: NodeId) -> bool {
        match self.table.get(medium, id.0, NodeRow::decode) {
            Ok(None) => return true,
            // The row changes with the location.
            Ok(Some(_)) if self.shard(id).read().get(id).is_some() => {}
            _ => return false,
        }
        if self.table.update(medium, id.0, |_| ()).is_err() {
            return false;
        }
        // It may have been evicted since.
        let mut shard = self.shard(id).write();
        let Some(slot) = shard.get_mut(id) else { return false };
        self.mark(slot);
        true
    }

    /// Undoes the capture of a node: it is at its previous location, and marked as changed. Returns
    /// `false` if it was removed.
    pub(crate) fn give_back(
        &self,
        medium: &Medium,
        id: NodeId,
        captured: Place,
        before: (Place, u64),
    ) -> Result<bool, StoreError> {
        let is_there = self.table.get(medium, id.0, NodeRow::decode)?;
        if is_there.is_none_or(|row| row.place != captured) {
            return Ok(false);
        }
        self.update_row(medium, id, |row| (row.place, row.checksum) = before)?;
        Ok(self.write_anew(medium, id))
    }

    /// Marks a node to be written.
    fn mark(&self, slot: &mut Slot) {
        if !slot.dirty {
            slot.dirty = true;
            // Another change, which is applied after a checkpoint, may have been planned with it.
            slot.plan.set(self.memory.plans.now());
            self.memory.dirtied(NODE_COST_BYTES, slot.capture);
            self.dirty.lock().push(slot.id);
        }
    }

    fn dropped(&self, slot: &Slot) {
        self.memory.drop_held(NODE_COST_BYTES);
        if slot.dirty {
            self.memory.drop_dirty(NODE_COST_BYTES);
        }
    }

    /// Removes a node, and returns where it was stored.
    pub(crate) fn remove(&self, medium: &Medium, id: NodeId) -> Result<Place, StoreError> {
        let row = self.row(medium, id)?;
        self.table.update(medium, id.0, |raw| raw[..ROW_BYTES].fill(0))?;
        let mut shard = self.shard(id).write();
        shard.generation += 1;
        if let Some(removed) = shard.remove(id) {
            self.dropped(&removed);
        }
        Ok(row.place)
    }

    /// Sorts the changed nodes by id.
    pub(crate) fn sort_changed(&self) {
        self.dirty.lock().sort_unstable();
    }

    /// Takes the first `count_max` nodes that have changed since the last capture, in the order of
    /// their ids; from here on they count as unchanged. The caller holds the writer's lock.
    pub(crate) fn take_changed(&self, count_max: usize) -> Vec<(NodeId, Arc<Node>)> {
        let mut ids: Vec<NodeId> = {
            let mut dirty = self.dirty.lock();
            let count = dirty.len().min(count_max);
            dirty.drain(..count).collect()
        };
        ids.sort_unstable();
        ids.dedup();
        let mut nodes = Vec::with_capacity(ids.len());
        for id in ids {
            // A node that was removed since is no longer in memory.
            let mut shard = self.shard(id).write();
            shard.generation += 1;
            if let Some(slot) = shard.get_mut(id).filter(|slot| slot.dirty) {
                slot.dirty = false;
                slot.capture = self.memory.capture(NODE_COST_BYTES);
                nodes.push((id, slot.node.clone()));
            }
        }
        nodes
    }
}
pub(crate) mod counts;
pub(crate) mod slots;
