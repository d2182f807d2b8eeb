//! Leaves as checkpoints have stored them: read, found, and proved.

use std::collections::BTreeSet;
use std::ops::Bound;

use format::Place;
use format::key_space::{LEAF_NUMBERS_MAX, pair_bytes};

use super::{Key, Leaf, Leaves, Pairs, Piece, blocks_of};

/// A leaf that was read.
pub(crate) struct StoredLeaf {
    pub(in crate::key_space) number: u64,
    pub(in crate::key_space) stored: Vec<Piece>,
    pub(in crate::key_space) pairs: Vec<(Key, Vec<u8>)>,
}

impl Leaves {
    /// Leaves as a checkpoint has stored them: number, places, and the pairs in order. `None` if
    /// their keys are not apart, or their numbers too high.
    pub(crate) fn stored(mut found: Vec<StoredLeaf>) -> Option<(Self, Pairs)> {
        let used: BTreeSet<u64> = found.iter().map(|leaf| leaf.number).collect();
        let next = used.last().map_or(0, |last| *last + 1);
        if next > LEAF_NUMBERS_MAX {
            return None;
        }
        let (mut leaves, mut pairs) = (Self { next, ..Self::default() }, Pairs::new());
        found.sort_by(|one, other| one.pairs.first().cmp(&other.pairs.first()));
        leaves.free = (0..next).filter(|number| !used.contains(number)).collect();
        for StoredLeaf { number, stored, pairs: held } in found {
            let cut = held.first().map(|(key, _)| key.clone())?;
            let mut bytes = 0;
            let count = held.len();
            for (key, value) in held {
                if pairs.last_key_value().is_some_and(|(last, _)| *last >= key) {
                    return None;
                }
                bytes += pair_bytes(&key, &value);
                pairs.insert(key, value);
            }
            let cut = if leaves.by_cut.is_empty() { Key::new() } else { cut };
            leaves.by_cut.insert(cut, Leaf { number, bytes, count, stored });
        }
        Some((leaves, pairs))
    }

    /// Where leaves are, those that are to be let go among them.
    pub(crate) fn places(&self) -> impl Iterator<Item = Piece> + '_ {
        let kept = self.by_cut.values().flat_map(|leaf| &leaf.stored);
        kept.chain(self.dropped.iter().flat_map(|(_, stored)| stored)).copied()
    }

    /// Numbers of leaves that are stored, those that are to be let go among them, in order, and
    /// where the first piece of each is.
    pub(crate) fn firsts(&self) -> Vec<(u64, Place)> {
        let kept = self.by_cut.values().map(|leaf| (leaf.number, &leaf.stored));
        let dropped = self.dropped.iter().map(|(number, stored)| (*number, stored));
        let stored = kept.chain(dropped);
        let mut firsts: Vec<(u64, Place)> =
            stored.filter_map(|(number, stored)| Some((number, stored.first()?.0))).collect();
        firsts.sort_unstable();
        firsts
    }

    /// What is wrong with the way in which the pairs are divided.
    pub(crate) fn finding(&self, pairs: &Pairs) -> Option<String> {
        let mut dirty_blocks = 0;
        for (cut, leaf) in &self.by_cut {
            let end = self.next_cut(cut);
            let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let held = pairs.range::<[u8], _>((Bound::Included(&cut[..]), end));
            let (count, bytes) = held.fold((0, 0), |(count, bytes), (key, value)| {
                (count + 1, bytes + pair_bytes(key, value))
            });
            if (count, bytes) != (leaf.count, leaf.bytes) {
                return Some(format!("leaf {} counts its pairs wrongly", leaf.number));
            }
            dirty_blocks += if self.dirty.contains(cut) { blocks_of(bytes) } else { 0 };
        }
        let counted: usize = self.by_cut.values().map(|leaf| leaf.count).sum();
        let is_wrong = counted != pairs.len() || dirty_blocks != self.dirty_blocks;
        is_wrong.then(|| "the leaves of the key-value space do not add up".to_string())
    }

    /// Numbers of leaves of which something is in a segment that `is_meant`.
    pub(crate) fn numbers_in(&self, is_meant: impl Fn(Place) -> bool) -> Vec<u64> {
        let leaves = self.by_cut.values();
        let there = leaves.filter(|leaf| leaf.stored.iter().any(|(place, _)| is_meant(*place)));
        there.map(|leaf| leaf.number).collect()
    }
}
