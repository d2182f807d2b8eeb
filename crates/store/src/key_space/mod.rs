//! The key-value space of the layer above: all of it is in memory, and only the writer changes it.
//!
//! * `leaves`: its division into leaves, and which of them have changed,
//! * `capture`: capturing those by a checkpoint; `load`: reading them.
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
    /// `None` if each checkpoint writes all of it.
    leaves: Option<Leaves>,
    /// Whether the last checkpoint has it in a stream.
    is_in_stream: bool,
}

impl KeySpace {
    /// Creates it from a stream.
    pub(crate) fn of_stream(pairs: Pairs) -> Self {
        let is_in_stream = !pairs.is_empty();
        Self { pairs, leaves: None, is_in_stream }
    }

    /// Switches checkpoints to leaves.
    pub(crate) fn divide(&mut self) {
        self.leaves.get_or_insert_with(|| Leaves::of(&self.pairs));
    }

    /// Returns the leaves, if checkpoints write these.
    pub(crate) fn leaves(&self) -> Option<&Leaves> {
        self.leaves.as_ref()
    }

    /// Returns the leaves like [`KeySpace::leaves`], mutable.
    pub(crate) fn leaves_mut(&mut self) -> Option<&mut Leaves> {
        self.leaves.as_mut()
    }

    /// Returns the pairs, and the leaves that must be changed with them, if checkpoints write
    /// these.
    pub(crate) fn divided_mut(&mut self) -> Option<(&Pairs, &mut Leaves)> {
        self.leaves.as_mut().map(|leaves| (&self.pairs, leaves))
    }

    /// Returns whether checkpoints write leaves, and none has yet.
    pub(crate) fn is_to_be_divided(&self) -> bool {
        self.is_in_stream && self.leaves.is_some()
    }

    /// Records that a checkpoint is on the medium that has removed these leaves.
    pub(crate) fn written(&mut self, gone: Vec<u64>) {
        match &mut self.leaves {
            Some(leaves) => {
                leaves.let_go(gone);
                self.is_in_stream = false;
            }
            None => self.is_in_stream = !self.pairs.is_empty(),
        }
    }

    /// Returns all pairs, ordered by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        self.pairs.iter()
    }

    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Vec<u8>> {
        self.pairs.get(key)
    }

    /// Sets or removes the value of a key.
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

    /// Returns what is inconsistent about the leaves.
    pub(crate) fn finding(&self) -> Option<String> {
        self.leaves.as_ref()?.finding(&self.pairs)
    }

    /// Encodes all pairs for a stream; empty if they are in leaves.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.leaves.is_none() {
            self.pairs.iter().for_each(|(key, value)| encode_pair(key, value, &mut out));
        }
        out
    }
}
