//! The content of chunks that may be nowhere else (`durability = "flush"`): they have no place yet,
//! or are at places that no flush has covered, which a flush that fails may have emptied.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use block::Frame;
use format::ChunkId;

use crate::chunks::pages::FastState;
use crate::sync::RwLock;

/// See the module.
#[derive(Default)]
pub(crate) struct Unplaced(RwLock<HashMap<ChunkId, Held, FastState>>);

struct Held {
    frame: Frame,
    /// Records that bring the chunk: one that moves is in the record that it came with, too.
    records: u32,
}

impl Unplaced {
    /// A record that is not written yet brings a chunk.
    pub(crate) fn insert(&self, id: ChunkId, frame: &Frame) {
        match self.0.write().entry(id) {
            Entry::Occupied(mut held) => held.get_mut().records += 1,
            Entry::Vacant(free) => drop(free.insert(Held { frame: frame.clone(), records: 1 })),
        }
    }

    /// What is in a chunk, if it is here.
    pub(crate) fn get(&self, id: ChunkId) -> Option<Frame> {
        self.0.read().get(&id).map(|held| held.frame.clone())
    }

    pub(crate) fn contains(&self, id: ChunkId) -> bool {
        self.0.read().contains_key(&id)
    }

    /// A record is durable that brought these.
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

    /// A chunk was freed that nobody can name any more.
    pub(crate) fn forget(&self, id: ChunkId) {
        self.0.write().remove(&id);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.read().len()
    }
}
