//! The division of the key-value pairs into leaves, and the location of these.
//!
//! A leaf has the pairs from its *cut*, a key, up to the next leaf's cut. Only the length of pairs
//! is known here: [`KeySpace`](super::KeySpace) has their content.
//!
//! Invariants:
//! 1. If there are pairs, the first leaf's cut is the empty key; no leaf is empty.
//! 2. A leaf has at most [`LEAF_BYTES_MAX`], or one pair.
//! 3. Two neighbors together have more than half of that. So leaves are on average at least a
//!    quarter full, and a change touches only a few of them, however many there are.
//! 4. A leaf that differs from what is stored under its number is in `dirty`, and one that is
//!    stored and was removed is in `dropped`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use block::BLOCK_BYTES;
use format::Place;
use format::key_space::{LEAF_BYTES_MAX, pair_bytes};
use format::page::{ROWS_PER_PAGE, STREAM_HEADER_BYTES};

mod stored;

pub(crate) use stored::StoredLeaf;

/// Neighbors that together have at most this are merged.
const JOINED_BYTES_MAX: usize = LEAF_BYTES_MAX / 2;

type Key = Vec<u8>;
pub(crate) type Pairs = BTreeMap<Key, Vec<u8>>;
/// A piece of a leaf: its location, and its length in units of 64 bytes, which are whole blocks.
pub(crate) type Piece = (Place, u32);

/// A leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// The number of its row.
    number: u64,
    /// The bytes of its pairs.
    bytes: usize,
    /// The number of its pairs.
    count: usize,
    /// Its location as of the last captured checkpoint; empty if there is none.
    stored: Vec<Piece>,
}

/// All leaves.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    by_cut: BTreeMap<Key, Leaf>,
    /// The cuts of leaves that are to be written.
    dirty: BTreeSet<Key>,
    /// The maximum number of blocks that they take.
    dirty_blocks: u64,
    /// Numbers and locations of removed leaves.
    dropped: Vec<(u64, Vec<Piece>)>,
    /// Numbers below `next` that neither the last checkpoint nor the current one uses.
    free: BTreeSet<u64>,
    next: u64,
}

/// Returns how many blocks this many bytes of pairs take if each piece is a block.
fn blocks_of(bytes: usize) -> u64 {
    bytes.div_ceil(BLOCK_BYTES as usize - STREAM_HEADER_BYTES) as u64
}

impl Leaves {
    /// Divides all pairs into new leaves.
    pub(crate) fn of(pairs: &Pairs) -> Self {
        let mut leaves = Self::default();
        for (key, value) in pairs {
            leaves.append(key, pair_bytes(key, value));
        }
        leaves
    }

    /// Adds a pair after all others.
    fn append(&mut self, key: &[u8], bytes: usize) {
        let last = self.by_cut.last_key_value();
        let fits = last.filter(|(_, leaf)| leaf.bytes + bytes <= LEAF_BYTES_MAX);
        let last_cut = fits.map(|(cut, _)| cut.clone());
        if let Some(cut) = last_cut {
            let mut leaf = self.take(&cut);
            (leaf.bytes, leaf.count) = (leaf.bytes + bytes, leaf.count + 1);
            return self.put(cut, leaf);
        }
        let cut = if self.by_cut.is_empty() { Key::new() } else { key.to_vec() };
        let leaf = Leaf { number: self.new_number(), bytes, count: 1, stored: Vec::new() };
        self.put(cut, leaf);
    }

    fn new_number(&mut self) -> u64 {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Returns the first number that was never used.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Takes a leaf out, to be changed and perhaps put back.
    fn take(&mut self, cut: &[u8]) -> Leaf {
        let leaf = self.by_cut.remove(cut).expect("the leaf exists");
        if self.dirty.remove(cut) {
            self.dirty_blocks -= blocks_of(leaf.bytes);
        }
        leaf
    }

    /// Puts back a leaf that is to be written.
    fn put(&mut self, cut: Key, leaf: Leaf) {
        self.dirty_blocks += blocks_of(leaf.bytes);
        self.dirty.insert(cut.clone());
        self.by_cut.insert(cut, leaf);
    }

    /// Removes a leaf.
    fn drop_leaf(&mut self, leaf: Leaf) {
        if leaf.stored.is_empty() {
            self.free.insert(leaf.number);
        } else {
            self.dropped.push((leaf.number, leaf.stored));
        }
    }

    /// Returns the cut of the leaf that a key is in.
    fn cut_of(&self, key: &[u8]) -> Option<Key> {
        let below = (Bound::Unbounded, Bound::Included(key));
        self.by_cut.range::<[u8], _>(below).next_back().map(|(cut, _)| cut.clone())
    }

    fn next_cut(&self, cut: &[u8]) -> Option<Key> {
        let behind = (Bound::Excluded(cut), Bound::Unbounded);
        self.by_cut.range::<[u8], _>(behind).next().map(|(cut, _)| cut.clone())
    }

    fn cut_before(&self, cut: &[u8]) -> Option<Key> {
        let before = (Bound::Unbounded, Bound::Excluded(cut));
        self.by_cut.range::<[u8], _>(before).next_back().map(|(cut, _)| cut.clone())
    }

    /// Records that the size of a pair has changed, from none if it is new, to none if it was
    /// removed. `pairs` has the new state.
    pub(crate) fn changed(
        &mut self,
        pairs: &Pairs,
        key: &[u8],
        old: Option<usize>,
        new: Option<usize>,
    ) {
        let Some(cut) = self.cut_of(key) else {
            return new.into_iter().for_each(|bytes| self.append(key, bytes));
        };
        if let (None, Some(bytes)) = (old, new)
            && let Some(cut) = self.add_beside(pairs, &cut, key, bytes)
        {
            return self.join(&cut);
        }
        let mut leaf = self.take(&cut);
        leaf.bytes = leaf.bytes + new.unwrap_or(0) - old.unwrap_or(0);
        leaf.count = leaf.count + usize::from(new.is_some()) - usize::from(old.is_some());
        let ends = match leaf.count {
            0 => {
                self.drop_leaf(leaf);
                self.begin_with_empty();
                self.cut_of(key).into_iter().collect()
            }
            _ => self.put_divided(pairs, cut, leaf),
        };
        for cut in ends {
            self.join(&cut);
        }
    }

    /// Gives a new pair that does not fit its leaf a leaf of its own, if it is before or after all
    /// others there: these stay as stored. Returns the cut of the new leaf.
    fn add_beside(&mut self, pairs: &Pairs, cut: &[u8], key: &[u8], bytes: usize) -> Option<Key> {
        if self.by_cut[cut].bytes + bytes <= LEAF_BYTES_MAX {
            return None;
        }
        let end = self.next_cut(cut);
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut held = pairs.range::<[u8], _>((Bound::Included(cut), end));
        let cut_of_new = if held.next_back().is_some_and(|(last, _)| last == key) {
            key.to_vec()
        } else if held.next().is_some_and(|(first, _)| first == key) {
            let (second, _) = pairs.range::<[u8], _>((Bound::Excluded(key), end)).next()?;
            self.move_cut(cut, second.clone());
            cut.to_vec()
        } else {
            return None;
        };
        let leaf = Leaf { number: self.new_number(), bytes, count: 1, stored: Vec::new() };
        self.put(cut_of_new.clone(), leaf);
        Some(cut_of_new)
    }

    /// Changes the cut of a leaf, which has the same pairs.
    fn move_cut(&mut self, cut: &[u8], to: Key) {
        let was_dirty = self.dirty.contains(cut);
        let leaf = self.take(cut);
        if was_dirty {
            self.put(to, leaf);
        } else {
            self.by_cut.insert(to, leaf);
        }
    }

    /// Makes the first leaf begin with the empty key.
    fn begin_with_empty(&mut self) {
        let first = self.by_cut.keys().next().filter(|cut| !cut.is_empty()).cloned();
        first.into_iter().for_each(|cut| self.move_cut(&cut, Key::new()));
    }

    /// Puts back a leaf, divided if it is too long; returns the cuts of the first and the last
    /// part.
    fn put_divided(&mut self, pairs: &Pairs, cut: Key, leaf: Leaf) -> Vec<Key> {
        let mut ends = vec![cut.clone()];
        let mut rest = vec![(cut, leaf)];
        while let Some((cut, mut leaf)) = rest.pop() {
            if leaf.bytes <= LEAF_BYTES_MAX || leaf.count == 1 {
                ends.truncate(1);
                ends.push(cut.clone());
                self.put(cut, leaf);
                continue;
            }
            let end = rest.last().map(|(cut, _)| cut.clone()).or_else(|| self.next_cut(&cut));
            let (at, bytes, count) = middle(pairs, &cut, end, &leaf);
            let other = Leaf {
                number: self.new_number(),
                bytes: leaf.bytes - bytes,
                count: leaf.count - count,
                stored: Vec::new(),
            };
            (leaf.bytes, leaf.count) = (bytes, count);
            rest.push((at, other));
            rest.push((cut, leaf));
        }
        ends.dedup();
        ends
    }

    /// Merges a leaf with its neighbors as long as the result is short.
    fn join(&mut self, cut: &[u8]) {
        let mut cut = cut.to_vec();
        while self.by_cut.contains_key(&cut) {
            let next = self.next_cut(&cut).map(|next| (cut.clone(), next));
            let before = self.cut_before(&cut).map(|before| (before, cut.clone()));
            let is_short = |(one, other): &(Key, Key)| {
                self.by_cut[one].bytes + self.by_cut[other].bytes <= JOINED_BYTES_MAX
            };
            let Some((first, second)) = next.into_iter().chain(before).find(is_short) else {
                return;
            };
            let other = self.take(&second);
            let mut leaf = self.take(&first);
            (leaf.bytes, leaf.count) = (leaf.bytes + other.bytes, leaf.count + other.count);
            self.drop_leaf(other);
            self.put(first.clone(), leaf);
            cut = first;
        }
    }

    /// Returns the maximum number of blocks that a checkpoint writes for changed leaves.
    pub(crate) fn dirty_blocks(&self) -> u64 {
        self.dirty_blocks
    }

    /// Returns how many rows a checkpoint changes.
    pub(crate) fn changed_count(&self) -> u64 {
        (self.dirty.len() + self.dropped.len()) as u64
    }

    /// Returns the rows that a checkpoint changes.
    pub(crate) fn changed_rows(&self) -> impl Iterator<Item = u64> + '_ {
        let dirty = self.dirty.iter().map(|cut| self.by_cut[cut].number);
        dirty.chain(self.dropped.iter().map(|(number, _)| *number))
    }

    /// Returns the maximum number of pages of rows that a checkpoint changes.
    pub(crate) fn changed_pages_max(&self) -> u64 {
        self.changed_count().min(self.next.div_ceil(ROWS_PER_PAGE))
    }

    /// Has the next checkpoint rewrite some leaves; returns which of them exist.
    pub(crate) fn write_anew(&mut self, numbers: &BTreeSet<u64>) -> Vec<u64> {
        let leaves = self.by_cut.iter();
        let found: Vec<(Key, u64)> = leaves
            .filter(|(_, leaf)| numbers.contains(&leaf.number))
            .map(|(cut, leaf)| (cut.clone(), leaf.number))
            .collect();
        let written = found.into_iter().map(|(cut, number)| {
            let leaf = self.take(&cut);
            self.put(cut, leaf);
            number
        });
        written.collect()
    }

    /// Takes what this checkpoint removes. The numbers are free when it is on the medium
    /// ([`Leaves::let_go`]).
    pub(crate) fn take_dropped(&mut self) -> Vec<(u64, Vec<Piece>)> {
        std::mem::take(&mut self.dropped)
    }

    /// Takes the leaves that are to be written, with their cuts and those of the next ones. From
    /// here on they count as stored ([`Leaves::set_stored`]).
    pub(crate) fn take_dirty(&mut self) -> Vec<(Key, Option<Key>)> {
        self.dirty_blocks = 0;
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().map(|cut| (cut.clone(), self.next_cut(&cut))).collect()
    }

    /// Sets the new location of a leaf; returns its number, and its previous location.
    pub(crate) fn set_stored(&mut self, cut: &[u8], stored: Vec<Piece>) -> (u64, Vec<Piece>) {
        let leaf = self.by_cut.get_mut(cut).expect("a captured leaf exists");
        (leaf.number, std::mem::replace(&mut leaf.stored, stored))
    }

    /// Undoes the capture of a leaf: it is at its previous location, and is to be written or
    /// removed.
    pub(crate) fn give_back(&mut self, number: u64, before: Vec<Piece>) {
        let cut = self.by_cut.iter().find(|(_, leaf)| leaf.number == number);
        if let Some(cut) = cut.map(|(cut, _)| cut.clone()) {
            let mut leaf = self.take(&cut);
            leaf.stored = before;
            return self.put(cut, leaf);
        }
        self.dropped.retain(|(dropped, _)| *dropped != number);
        let (bytes, count) = (0, 0);
        self.drop_leaf(Leaf { number, bytes, count, stored: before });
    }

    /// Frees the numbers of leaves that a checkpoint on the medium has removed.
    pub(crate) fn let_go(&mut self, numbers: Vec<u64>) {
        self.free.extend(numbers);
    }
}

/// Returns where a leaf from `cut` to `end` is divided, in the middle: the cut of the second part,
/// and the bytes and number of the pairs in the first.
fn middle(pairs: &Pairs, cut: &[u8], end: Option<Key>, leaf: &Leaf) -> (Key, usize, usize) {
    let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let (mut bytes, mut count) = (0, 0);
    for (key, value) in pairs.range::<[u8], _>((Bound::Included(cut), end)) {
        let is_last = count + 1 == leaf.count;
        if is_last || count > 0 && bytes >= leaf.bytes / 2 {
            return (key.clone(), bytes, count);
        }
        bytes += pair_bytes(key, value);
        count += 1;
    }
    unreachable!("a leaf that counts {} pairs has {count}", leaf.count)
}

#[cfg(test)]
mod tests;
