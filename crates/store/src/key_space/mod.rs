//! The key-value space of the layer above: all of it is in memory, and changed by the writer.
//!
//! * `leaves`: how it is divided into leaves, and which of them have changed,
//! * `capture`: how a checkpoint captures those, `load`: how they are read.
//!
//! In a pool without that feature it is a stream, which each checkpoint writes as a whole
//! ([`Features::LEAVES`](format::Features::LEAVES)). A pool that gets the feature has it in leaves
//! from the next checkpoint on.

pub(crate) mod leaves;
pub(crate) mod load;

use format::key_space::{encode_pair, pair_bytes};

use leaves::{Leaves, Pairs};

/// The key-value space.
#[derive(Debug, Default)]
pub(crate) struct KeySpace {
    pairs: Pairs,
    /// None where each checkpoint writes all of it.
    leaves: Option<Leaves>,
    /// Whether the last checkpoint has it in a stream.
    is_in_stream: bool,
}

impl KeySpace {
    /// One that a stream holds.
    pub(crate) fn of_stream(pairs: Pairs) -> Self {
        let is_in_stream = !pairs.is_empty();
        Self { pairs, leaves: None, is_in_stream }
    }

    /// From here on checkpoints write leaves.
    pub(crate) fn divide(&mut self) {
        self.leaves.get_or_insert_with(|| Leaves::of(&self.pairs));
    }

    /// The leaves, if checkpoints write these.
    pub(crate) fn leaves(&self) -> Option<&Leaves> {
        self.leaves.as_ref()
    }

    /// As [`KeySpace::leaves`], to be changed.
    pub(crate) fn leaves_mut(&mut self) -> Option<&mut Leaves> {
        self.leaves.as_mut()
    }

    /// The pairs, and the leaves that are to be changed with them, if checkpoints write these.
    pub(crate) fn divided_mut(&mut self) -> Option<(&Pairs, &mut Leaves)> {
        self.leaves.as_mut().map(|leaves| (&self.pairs, leaves))
    }

    /// Whether checkpoints write leaves, and none has yet.
    pub(crate) fn is_to_be_divided(&self) -> bool {
        self.is_in_stream && self.leaves.is_some()
    }

    /// A checkpoint is on the medium, which does not name these leaves any more.
    pub(crate) fn written(&mut self, gone: Vec<u64>) {
        match &mut self.leaves {
            Some(leaves) => {
                leaves.let_go(gone);
                self.is_in_stream = false;
            }
            None => self.is_in_stream = !self.pairs.is_empty(),
        }
    }

    /// All pairs, in the order of the keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        self.pairs.iter()
    }

    /// A key has this value from here on, or none.
    pub(crate) fn set(&mut self, key: &[u8], value: Option<&[u8]>) {
        let old = match value {
            Some(value) => self.pairs.insert(key.to_vec(), value.to_vec()),
            None => self.pairs.remove(key),
        };
        if old.as_deref() == value {
            return;
        }
        if let Some(leaves) = &mut self.leaves {
            let old = old.map(|old| pair_bytes(key, &old));
            let new = value.map(|value| pair_bytes(key, value));
            leaves.changed(&self.pairs, key, old, new);
        }
    }

    /// What is wrong with the leaves.
    pub(crate) fn finding(&self) -> Option<String> {
        self.leaves.as_ref()?.finding(&self.pairs)
    }

    /// All pairs, as a stream has them; nothing where they are in leaves.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.leaves.is_none() {
            self.pairs.iter().for_each(|(key, value)| encode_pair(key, value, &mut out));
        }
        out
    }
}
