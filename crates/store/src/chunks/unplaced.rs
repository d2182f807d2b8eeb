//! The content of chunks that may have no durable location (`durability = "flush"`): they have none
//! yet, or it is not yet covered by a flush, and a failing flush may lose it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use block::Frame;
use format::ChunkId;

use crate::chunks::pages::FastState;
use crate::sync::RwLock;

/// The chunks; see the module.
#[derive(Default)]
pub(crate) struct Unplaced(RwLock<HashMap<ChunkId, Held, FastState>>);

struct Held {
    frame: Frame,
    /// The number of records with the chunk: one that moves is also in its original record.
    records: u32,
}

impl Unplaced {
    /// Adds a chunk of a record that is not written yet.
    pub(crate) fn insert(&self, id: ChunkId, frame: &Frame) {
        match self.0.write().entry(id) {
            Entry::Occupied(mut held) => held.get_mut().records += 1,
            Entry::Vacant(free) => drop(free.insert(Held { frame: frame.clone(), records: 1 })),
        }
    }

    /// Returns the content of a chunk, if it is here.
    pub(crate) fn get(&self, id: ChunkId) -> Option<Frame> {
        self.0.read().get(&id).map(|held| held.frame.clone())
    }

    pub(crate) fn contains(&self, id: ChunkId) -> bool {
        self.0.read().contains_key(&id)
    }

    /// Releases the chunks of a record that is durable.
    pub(crate) fn release(&self, ids: impl Iterator<Item = ChunkId>) {
        let mut all = self.0.write();
        for id in ids {
            if let Entry::Occupied(mut held) = all.entry(id) {
                held.get_mut().records -= 1;
                if held.get().records == 0 {
                    held.remove();
                }
            }
        }
    }

    /// Drops a freed chunk, to which nothing refers any longer.
    pub(crate) fn forget(&self, id: ChunkId) {
        self.0.write().remove(&id);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.read().len()
    }
}
