//! The nodes in memory, and their eviction.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use format::NodeId;
use format::map::Node;

use crate::chunks::memory::{Counted, Kept, NODE_COST_BYTES, Swept, Tally};
use crate::chunks::pages::FastState;
use crate::chunks::plans::Mark;
use crate::chunks::shards::{SHARDS, Shards, Sweepable};
use crate::sync::RwLock;

/// How many nodes a hand examines in one move.
const NODES_SWEPT: usize = 16;

pub(crate) struct Slot {
    pub(super) id: NodeId,
    pub(super) node: Arc<Node>,
    pub(super) level: u8,
    pub(crate) dirty: bool,
    /// Whether it was used since the hand passed.
    used: AtomicBool,
    /// The last capture that has taken it: it stays in memory until that is written.
    pub(crate) capture: u32,
    pub(super) plan: Mark,
}

/// Nodes under one lock.
#[derive(Default)]
pub(crate) struct Shard {
    index: HashMap<NodeId, u32, FastState>,
    slots: Vec<Slot>,
    /// The slot at the hand.
    hand: usize,
    /// Increases whenever a node of the shard gets another version on the medium, or is removed.
    pub(crate) generation: u64,
    hits: Tally,
}

impl Shard {
    pub(crate) fn get(&self, id: NodeId) -> Option<&Slot> {
        let slot = &self.slots[*self.index.get(&id)? as usize];
        if !slot.used.load(Ordering::Relaxed) {
            slot.used.store(true, Ordering::Relaxed);
        }
        self.hits.add();
        Some(slot)
    }

    pub(crate) fn get_mut(&mut self, id: NodeId) -> Option<&mut Slot> {
        let slot = &mut self.slots[*self.index.get(&id)? as usize];
        *slot.used.get_mut() = true;
        Some(slot)
    }

    pub(crate) fn add(&mut self, id: NodeId, node: Arc<Node>, level: u8, dirty: bool) {
        let before = self.index.insert(id, self.slots.len() as u32);
        debug_assert!(before.is_none(), "a node is added twice");
        let used = AtomicBool::new(true);
        let plan = Mark::default();
        self.slots.push(Slot { id, node, level, dirty, used, capture: 0, plan });
    }

    pub(crate) fn remove(&mut self, id: NodeId) -> Option<Slot> {
        let at = self.index.remove(&id)? as usize;
        let removed = self.slots.swap_remove(at);
        if let Some(moved) = self.slots.get(at) {
            self.index.insert(moved.id, at as u32);
        }
        Some(removed)
    }
}

impl Sweepable for Shard {
    fn sweep(&mut self, kept: Kept) -> Swept {
        let mut swept = Swept::default();
        for _ in 0..NODES_SWEPT.min(self.slots.len()) {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let Some(slot) = self.slots.get_mut(self.hand) else { break };
            let used = std::mem::take(slot.used.get_mut());
            let needed = slot.capture > kept.written || !slot.plan.is_before(kept.oldest_plan);
            if used || slot.dirty || needed {
                self.hand += 1;
                continue;
            }
            let id = slot.id;
            self.remove(id);
            swept.count += 1;
            swept.bytes += NODE_COST_BYTES;
        }
        swept
    }

    fn add_to(&self, counted: &mut Counted) {
        counted.nodes += self.slots.len() as u64;
        counted.hits += self.hits.get();
    }
}

impl Shards<Shard> {
    /// Returns the shard of a node.
    pub(crate) fn of(&self, id: NodeId) -> &RwLock<Shard> {
        self.at(id.0 as usize % SHARDS)
    }
}
