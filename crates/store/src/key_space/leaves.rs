//! How the pairs of the key-value space are divided into leaves, and where these are.
//!
//! A leaf has the pairs from its *cut* on, a key, up to the next leaf's. What the pairs are is not
//! known here, only how long they are: [`KeySpace`](super::KeySpace) has them.
//!
//! Invariants:
//! 1. If there are pairs, the first leaf's cut is the empty key; no leaf is empty.
//! 2. A leaf has [`LEAF_BYTES_MAX`] at most, or one pair.
//! 3. Two neighbours have more than half of that together. So leaves are a quarter full on average
//!    at least, and a change touches a few of them, however many there are.
//! 4. A leaf that differs from what is stored under its number is in `dirty`, and one that is
//!    stored and is none any more in `dropped`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use block::BLOCK_BYTES;
use format::Place;
use format::key_space::{LEAF_BYTES_MAX, pair_bytes};
use format::page::{ROWS_PER_PAGE, STREAM_HEADER_BYTES};

mod stored;

pub(crate) use stored::StoredLeaf;

/// Neighbours that have no more than this together become one.
const JOINED_BYTES_MAX: usize = LEAF_BYTES_MAX / 2;

type Key = Vec<u8>;
pub(crate) type Pairs = BTreeMap<Key, Vec<u8>>;
/// A piece of a leaf: its place, and its length in units of 64 bytes, which are whole blocks.
pub(crate) type Piece = (Place, u32);

/// A leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Its number, which is that of its row.
    number: u64,
    /// Bytes of its pairs.
    bytes: usize,
    /// How many they are.
    count: usize,
    /// Where it was stored by the last checkpoint that was captured; nowhere if by none.
    stored: Vec<Piece>,
}

/// All leaves.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    by_cut: BTreeMap<Key, Leaf>,
    /// The cuts of those that are to be written.
    dirty: BTreeSet<Key>,
    /// Blocks that they take, at most.
    dirty_blocks: u64,
    /// Numbers and places of leaves that are to be let go.
    dropped: Vec<(u64, Vec<Piece>)>,
    /// Numbers below `next` that no checkpoint names, nor the one under way.
    free: BTreeSet<u64>,
    next: u64,
}

/// Blocks that so many bytes of pairs take, where each piece is a block.
fn blocks_of(bytes: usize) -> u64 {
    bytes.div_ceil(BLOCK_BYTES as usize - STREAM_HEADER_BYTES) as u64
}

impl Leaves {
    /// All pairs in new leaves.
    pub(crate) fn of(pairs: &Pairs) -> Self {
        let mut leaves = Self::default();
        for (key, value) in pairs {
            leaves.append(key, pair_bytes(key, value));
        }
        leaves
    }

    /// One more pair behind all others.
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

    /// The first number that was never used.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Takes a leaf out, to be changed and put in again, or not.
    fn take(&mut self, cut: &[u8]) -> Leaf {
        let leaf = self.by_cut.remove(cut).expect("a leaf that is there is taken");
        if self.dirty.remove(cut) {
            self.dirty_blocks -= blocks_of(leaf.bytes);
        }
        leaf
    }

    /// Puts a leaf in that is to be written.
    fn put(&mut self, cut: Key, leaf: Leaf) {
        self.dirty_blocks += blocks_of(leaf.bytes);
        self.dirty.insert(cut.clone());
        self.by_cut.insert(cut, leaf);
    }

    /// A leaf is none any more.
    fn drop_leaf(&mut self, leaf: Leaf) {
        if leaf.stored.is_empty() {
            self.free.insert(leaf.number);
        } else {
            self.dropped.push((leaf.number, leaf.stored));
        }
    }

    /// The cut of the leaf that a key is in.
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

    /// A pair had so many bytes and has so many now, if it was there, and is. `pairs` has it so.
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

    /// A pair that is new and does not fit its leaf gets one of its own, if it comes before or
    /// behind all others there: these stay as they are stored. The cut of the new leaf.
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

    /// A leaf begins with another key, and has the same pairs.
    fn move_cut(&mut self, cut: &[u8], to: Key) {
        let was_dirty = self.dirty.contains(cut);
        let leaf = self.take(cut);
        if was_dirty {
            self.put(to, leaf);
        } else {
            self.by_cut.insert(to, leaf);
        }
    }

    /// The first leaf has what comes before it as well.
    fn begin_with_empty(&mut self) {
        let first = self.by_cut.keys().next().filter(|cut| !cut.is_empty()).cloned();
        first.into_iter().for_each(|cut| self.move_cut(&cut, Key::new()));
    }

    /// Puts a leaf in, in parts if it is too long; returns the cuts of the first and the last one.
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

    /// Joins a leaf with its neighbours as long as that makes a short one.
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

    /// Blocks that a checkpoint writes for those that have changed, at most.
    pub(crate) fn dirty_blocks(&self) -> u64 {
        self.dirty_blocks
    }

    /// How many rows a checkpoint changes.
    pub(crate) fn changed_count(&self) -> u64 {
        (self.dirty.len() + self.dropped.len()) as u64
    }

    /// The rows that a checkpoint changes.
    pub(crate) fn changed_rows(&self) -> impl Iterator<Item = u64> + '_ {
        let dirty = self.dirty.iter().map(|cut| self.by_cut[cut].number);
        dirty.chain(self.dropped.iter().map(|(number, _)| *number))
    }

    /// Pages of rows that a checkpoint changes, at most.
    pub(crate) fn changed_pages_max(&self) -> u64 {
        self.changed_count().min(self.next.div_ceil(ROWS_PER_PAGE))
    }

    /// Has the next checkpoint write some leaves anew; which of them are there.
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

    /// What is to be let go by this checkpoint. The numbers are free when it is on the medium
    /// ([`Leaves::let_go`]).
    pub(crate) fn take_dropped(&mut self) -> Vec<(u64, Vec<Piece>)> {
        std::mem::take(&mut self.dropped)
    }

    /// Those that are to be written, with their cuts and those of the next ones. From here on they
    /// count as stored ([`Leaves::set_stored`]).
    pub(crate) fn take_dirty(&mut self) -> Vec<(Key, Option<Key>)> {
        self.dirty_blocks = 0;
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().map(|cut| (cut.clone(), self.next_cut(&cut))).collect()
    }

    /// A leaf is stored somewhere else from here on: its number, and where it was.
    pub(crate) fn set_stored(&mut self, cut: &[u8], stored: Vec<Piece>) -> (u64, Vec<Piece>) {
        let leaf = self.by_cut.get_mut(cut).expect("a leaf that is captured");
        (leaf.number, std::mem::replace(&mut leaf.stored, stored))
    }

    /// A leaf that was captured is where it was before, and is to be written, or let go.
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

    /// A checkpoint is on the medium that does not name these any more.
    pub(crate) fn let_go(&mut self, numbers: Vec<u64>) {
        self.free.extend(numbers);
    }
}

/// Where a leaf from `cut` to `end` is divided, in the middle: the cut of the second part, and
/// bytes and number of the pairs in the first.
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
    unreachable!("a leaf of {} pairs has {count}", leaf.count)
}

#[cfg(test)]
mod tests;
