//! Leaves as stored by checkpoints: reading, locating and checking them.

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
    /// Creates leaves from what a checkpoint has stored: number, locations, and the pairs in order.
    /// `None` if their keys overlap, or their numbers are too high.
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

    /// Returns the locations of leaves, including removed ones.
    pub(crate) fn places(&self) -> impl Iterator<Item = Piece> + '_ {
        let kept = self.by_cut.values().flat_map(|leaf| &leaf.stored);
        kept.chain(self.dropped.iter().flat_map(|(_, stored)| stored)).copied()
    }

    /// Returns the numbers of stored leaves, including removed ones, in order, and the location of
    /// the first piece of each.
    pub(crate) fn firsts(&self) -> Vec<(u64, Place)> {
        let kept = self.by_cut.values().map(|leaf| (leaf.number, &leaf.stored));
        let dropped = self.dropped.iter().map(|(number, stored)| (*number, stored));
        let stored = kept.chain(dropped);
        let mut firsts: Vec<(u64, Place)> =
            stored.filter_map(|(number, stored)| Some((number, stored.first()?.0))).collect();
        firsts.sort_unstable();
        firsts
    }

    /// Returns what is inconsistent about the division of the pairs.
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
                return Some(format!("leaf {} has a wrong count of pairs", leaf.number));
            }
            dirty_blocks += if self.dirty.contains(cut) { blocks_of(bytes) } else { 0 };
        }
        let counted: usize = self.by_cut.values().map(|leaf| leaf.count).sum();
        let is_wrong = counted != pairs.len() || dirty_blocks != self.dirty_blocks;
        is_wrong.then(|| "the counts of the key-value space's leaves are wrong".to_string())
    }

    /// Returns the numbers of leaves with a piece for which `is_meant` returns true.
    pub(crate) fn numbers_in(&self, is_meant: impl Fn(Place) -> bool) -> Vec<u64> {
        let leaves = self.by_cut.values();
        let there = leaves.filter(|leaf| leaf.stored.iter().any(|(place, _)| is_meant(*place)));
        there.map(|leaf| leaf.number).collect()
    }
}
