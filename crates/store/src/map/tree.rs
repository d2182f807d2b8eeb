//! Changing a volume's map: the writer's side of the radix tree.
//!
//! A node with one reference is changed in place; one with several is copied first, and its
//! children get another reference. Aligned parts are grafted: the destination refers to the
//! source's node, and nothing below it is touched.

use std::ops::Range;

use format::map::{Fanout, Node};
use format::row::counted;
use format::{ChunkId, MapEntry, NodeId, NodeRow, Place, VolumeRow};
use smallvec::SmallVec;

use crate::StoreError;
use crate::chunks::asking::Asked;
use crate::edits::preload;
use crate::map::value::{Change, Value, advance, alike, block_entry, says, whole, whole_counts};
use crate::nodes::counts::Counts;
use crate::nodes::{Referenced, node_of};
use crate::world::view::View;
use crate::world::{State, World};

/// Changes maps.
pub(crate) struct Editor<'a> {
    pub(crate) world: &'a World,
    pub(crate) state: &'a mut State,
}

impl Editor<'_> {
    /// Sets `count` blocks from `start` of a map to `value`.
    pub(crate) fn set(
        &mut self,
        map: &mut VolumeRow,
        start: u64,
        count: u64,
        value: Value<'_>,
    ) -> Result<(), StoreError> {
        let blocks = self.run_with_losses(value, count)?;
        let value = blocks.as_deref().map_or(value, Value::Blocks);
        let value = self.same_or_lost(value)?;
        if count > 0 {
            map.root = self.set_entry(map.root, map.level, start, count, value)?;
            if !matches!(map.root, MapEntry::Hole | MapEntry::Node(_)) {
                map.root = MapEntry::Node(self.own(map.root, map.level)?);
            }
        }
        Ok(())
    }

    fn fanout(&self) -> Fanout {
        self.world.medium.tuning.fanout
    }

    /// Adds a level at the top of a map, so that it spans 256 times as much.
    pub(crate) fn raise(&mut self, map: &mut VolumeRow) -> Result<(), StoreError> {
        if map.root != MapEntry::Hole {
            let counts = self.counts(map.root, map.level, &mut true)?;
            let mut node = Node::empty();
            node.set(0, map.root);
            map.root = MapEntry::Node(self.new_node(node, map.level + 1, counts)?);
        }
        map.level += 1;
        Ok(())
    }

    /// Sets blocks `start..start + count` of what `entry` spans, and returns the new entry.
    fn set_entry(
        &mut self,
        entry: MapEntry,
        level: u8,
        start: u64,
        count: u64,
        value: Value<'_>,
    ) -> Result<MapEntry, StoreError> {
        if start == 0 && count == self.world.span_blocks(level) {
            if let Some(new) = whole(level, value) {
                self.reference_same(value, 1)?;
                self.release(entry)?;
                return Ok(new);
            }
            if let Some(new) = alike(value, count) {
                if let MapEntry::Chunk(chunk) = new {
                    // Each block had a reference, and from here on one entry has one.
                    self.world.reference_chunk(chunk, 1 - count as i32)?;
                }
                self.release(entry)?;
                return Ok(new);
            }
        }
        if level == 1 {
            self.set_leaf(entry, start, count, value)
        } else {
            self.set_inner(entry, level, start, count, value)
        }
    }

    fn set_inner(
        &mut self,
        entry: MapEntry,
        level: u8,
        start: u64,
        count: u64,
        value: Value<'_>,
    ) -> Result<MapEntry, StoreError> {
        if says(value, entry) {
            return Ok(entry);
        }
        let entry = self.sound(entry, level)?;
        let id = self.own(entry, level)?;
        let node = self.world.nodes.get(&self.world.medium, id, level)?;
        let mut known = true;
        let span = self.world.span_blocks(level - 1);
        let mut changes: Vec<Change<'_>> = Vec::new();
        let (mut before, mut after) = (Counts::default(), Counts::default());
        let mut at = start;
        while at < start + count {
            let (index, offset) = ((at / span) as usize, at % span);
            let whole_children = (start + count - at) / span;
            let value = advance(value, at - start, self.fanout());
            if offset == 0 && whole_children > 0 && whole(level - 1, value).is_some() {
                let children = index..index + whole_children as usize;
                self.reference_same(value, children.len() as i32)?;
                before += self.release_all(&node, children.clone(), level - 1, &mut known)?;
                after += whole_counts(value, children.len(), span);
                changes.push(Change::Whole(children, value));
                at += whole_children * span;
                continue;
            }
            let here = (span - offset).min(start + count - at);
            let old = node.get(index);
            before += self.counts(old, level - 1, &mut known)?;
            let new = self.set_entry(old, level - 1, offset, here, value)?;
            after += self.counts(new, level - 1, &mut known)?;
            if new != old {
                changes.push(Change::One(index, new));
            }
            at += here;
        }
        drop(node);
        if !changes.is_empty() {
            self.world.nodes.change(&self.world.medium, id, |node| {
                changes.iter().for_each(|change| change.make(node));
            })?;
        }
        if known {
            self.adjust(id, before, after)?;
        } else {
            self.recount(id, level)?;
        }
        Ok(MapEntry::Node(id))
    }

    /// Releases the entries of a node that are replaced, and returns what was below them.
    fn release_all(
        &mut self,
        node: &Node,
        replaced: Range<usize>,
        level: u8,
        known: &mut bool,
    ) -> Result<Counts, StoreError> {
        let world = self.world;
        let span = world.span_blocks(level);
        let mut counts = Counts::default();
        let named = replaced.clone().filter_map(|index| node_of(node.get(index)));
        let uncountable = self.uncountable(named)?;
        *known &= uncountable.is_empty();
        let mut chunks: SmallVec<[ChunkId; 8]> = SmallVec::new();
        let nodes = replaced.filter_map(|index| match node.get(index) {
            MapEntry::Node(id) => (!uncountable.contains(&id)).then_some(id),
            other => {
                chunks.extend(chunk_of(other));
                counts += Counts::alike(other, span);
                None
            }
        });
        let pending = &mut self.state.pending;
        let released = world.nodes.release_all(&world.medium, nodes, pending)?;
        counts += released;
        world.release_chunks(self.state, chunks.into_iter(), |id| world.drop_content(id))?;
        Ok(counts)
    }

    /// Adds references for this many more entries with `value`, if that is a chunk: each entry
    /// counts once, regardless of its span.
    fn reference_same(&self, value: Value<'_>, entries: i32) -> Result<(), StoreError> {
        match value {
            Value::Same(chunk) => self.world.reference_chunk(chunk, entries),
            _ => Ok(()),
        }
    }

    fn set_leaf(
        &mut self,
        entry: MapEntry,
        start: u64,
        count: u64,
        value: Value<'_>,
    ) -> Result<MapEntry, StoreError> {
        if says(value, entry) {
            return Ok(entry);
        }
        let entry = self.sound(entry, 1)?;
        // Before anything is released: it may refer to the same chunk.
        if !matches!(value, Value::Blocks(_)) {
            let named = (0..count).filter_map(|offset| chunk_of(block_entry(value, offset)));
            self.world.reference_chunks(named)?;
        }
        let mut entry = entry;
        if count == self.world.span_blocks(1) && !self.is_own(entry, 1) {
            // None of the old content remains or is needed; it may be unreadable.
            self.release(entry)?;
            entry = MapEntry::Hole;
        }
        let id = self.own(entry, 1)?;
        let (mut before, mut after) = (Counts::default(), Counts::default());
        for offset in 0..count {
            after += self.world.counts(block_entry(value, offset), 0)?;
        }
        let mut replaced: SmallVec<[MapEntry; 8]> = SmallVec::with_capacity(count as usize);
        self.world.nodes.change(&self.world.medium, id, |node| {
            for offset in 0..count {
                let index = (start + offset) as usize;
                replaced.push(node.get(index));
                node.set(index, block_entry(value, offset));
            }
        })?;
        for old in &replaced {
            before += self.world.counts(*old, 0)?;
        }
        let released = replaced.into_iter().filter_map(chunk_of);
        let world = self.world;
        let drop_content = |id| world.drop_content(id);
        world.release_chunks(self.state, released, drop_content)?;
        self.adjust(id, before, after)?;
        Ok(MapEntry::Node(id))
    }

    /// Returns whether it is a node to which only this entry refers, and that can be read.
    fn is_own(&self, entry: MapEntry, level: u8) -> bool {
        let nodes = &self.world.nodes;
        let medium = &self.world.medium;
        let named_once = |id| nodes.row(medium, id).is_ok_and(|row| row.reference_count == 1);
        node_of(entry).is_some_and(|id| named_once(id) && nodes.get(medium, id, level).is_ok())
    }

    fn adjust(&mut self, id: NodeId, before: Counts, after: Counts) -> Result<(), StoreError> {
        if before == after {
            return Ok(());
        }
        let changed = self.world.nodes.update_row(&self.world.medium, id, |row| {
            row.mapped_blocks = (row.mapped_blocks + after.mapped).checked_sub(before.mapped)?;
            row.data_blocks = (row.data_blocks + after.data).checked_sub(before.data)?;
            Some(())
        })?;
        changed.ok_or_else(|| miscounted(id))
    }

    /// Returns a node with the content of `entry`, to which only this entry refers.
    fn own(&mut self, entry: MapEntry, level: u8) -> Result<NodeId, StoreError> {
        let MapEntry::Node(id) = entry else {
            let counts = self.world.counts(entry, level)?;
            if let MapEntry::Chunk(chunk) = entry {
                // One entry had a reference, and now each of the node's entries has one.
                self.world.reference_chunk(chunk, self.fanout().entries() as i32 - 1)?;
            }
            return self.new_node(Node::uniform(entry, self.fanout()), level, counts);
        };
        let medium = &self.world.medium;
        let row = self.world.nodes.row(medium, id)?;
        if row.reference_count == 1 {
            return Ok(id);
        }
        let node = self.world.nodes.get(medium, id, level)?;
        let (copy, same) = self.copy_of(&node)?;
        let node = &copy;
        self.world.reference_chunks(node.entries().filter_map(chunk_of))?;
        let mut nodes: Vec<Referenced> =
            node.entries().filter_map(node_of).map(Referenced::unread).collect();
        self.world.nodes.reference_all(medium, &mut nodes)?;
        self.count_down(id)?;
        let counts = Counts { mapped: row.mapped_blocks, data: row.data_blocks };
        let new = self.new_node(copy, level, counts)?;
        if !same {
            self.recount(new, level)?;
        }
        Ok(new)
    }

    fn new_node(&mut self, node: Node, level: u8, counts: Counts) -> Result<NodeId, StoreError> {
        let id = NodeId(self.state.next_node);
        self.state.next_node += 1;
        let row = NodeRow {
            place: Place::NONE,
            reference_count: 1,
            checksum: 0,
            mapped_blocks: counts.mapped,
            data_blocks: counts.data,
            level,
        };
        self.world.nodes.insert(&self.world.medium, id, node, row)?;
        Ok(id)
    }

    /// Releases the reference of an entry. A node without references waits in `pending`, so that
    /// dropping a large part of a map costs little here.
    pub(crate) fn release(&mut self, entry: MapEntry) -> Result<(), StoreError> {
        match entry {
            MapEntry::Chunk(id) => {
                let world = self.world;
                let drop_content = |id| world.drop_content(id);
                world.release_chunks(self.state, std::iter::once(id), drop_content)
            }
            MapEntry::Node(id) => {
                if !self.is_row_lost(id)? && self.count_down(id)? == 0 {
                    self.state.pending.push(id);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Releases a reference to a node; returns how many are left.
    fn count_down(&self, id: NodeId) -> Result<u32, StoreError> {
        let left = self.world.nodes.update_row(&self.world.medium, id, |row| {
            row.reference_count = counted(row.reference_count, -1)?;
            Some(row.reference_count)
        })?;
        left.ok_or_else(|| miscounted(id))
    }

    /// Frees up to `nodes_max` pending nodes, as long as everything needed is in memory; unreadable
    /// ones are put aside. The content of chunks that are freed with them is not removed from the
    /// cache: it is evicted like any unused data.
    pub(crate) fn free_pending(&mut self, nodes_max: usize) -> Result<(), StoreError> {
        for _ in 0..nodes_max {
            let Some(id) = self.state.pending.pop() else { break };
            let (asked, plan) = (Asked::default(), self.world.memory.plans.now());
            let view = View::asking(self.world, &asked).planning(plan);
            let looked = preload::freeing(view, id);
            if asked.is_waiting() {
                // `Store::housekeep` reads it first.
                self.state.pending.push(id);
                break;
            }
            match looked {
                Ok(()) => self.free_node(id)?,
                Err(_) => self.state.stuck.push(id),
            }
        }
        Ok(())
    }

    /// Frees a node that was taken from the pending ones, or puts it aside.
    pub(crate) fn free_node(&mut self, id: NodeId) -> Result<(), StoreError> {
        if preload::freeing(self.world.into(), id).is_err() {
            self.state.stuck.push(id);
            return Ok(());
        }
        let (node, _) = self.world.nodes.find(&self.world.medium, id)?;
        let chunks = node.entries().filter_map(chunk_of);
        self.world.release_chunks(self.state, chunks, drop)?;
        let nodes = node.entries().filter_map(node_of);
        let unnamed = &mut self.state.pending;
        self.world.nodes.release_all(&self.world.medium, nodes, unnamed)?;
        let place = self.world.nodes.remove(&self.world.medium, id)?;
        if !place.is_none() {
            self.state.segments.sub_live(place, crate::NODE_UNITS)?;
        }
        Ok(())
    }
}

fn miscounted(id: NodeId) -> StoreError {
    StoreError::Damaged(format!("node {} has wrong counts of references or blocks", id.0))
}

fn chunk_of(entry: MapEntry) -> Option<ChunkId> {
    match entry {
        MapEntry::Chunk(id) => Some(id),
        _ => None,
    }
}
