//! The pages of a table in memory, and their index.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use block::{Frame, FrameMut};
use format::page::{PageRef, REFS_PER_DIRECTORY};

use crate::chunks::memory::{Counted, Kept, PAGE_COST_BYTES, Swept, Tally};
use crate::chunks::plans::Mark;
use crate::chunks::shards::{SHARDS, Shards, Sweepable};
use crate::sync::RwLock;

/// How many consecutive pages form a group, with one index entry and one lock: 2048 rows. Enough to
/// make a run of them cheap; not so many that the group of a single page takes as much memory as
/// the page.
const PAGES_TOGETHER: usize = 16;
/// The memory of a group in addition to its pages: itself, and its index entry.
pub(crate) const GROUP_COST_BYTES: u64 = size_of::<Group>() as u64 + 64;

/// Hashes ids, which no adversary chooses: it must be fast, and the same run must give the same
/// order.
pub(crate) type FastState = foldhash::fast::FixedState;

/// A page, by its level (0: rows) and its position in the level.
pub(crate) type PageKey = (u8, u64);

/// Returns the directory above a page.
pub(crate) fn parent_of((level, number): PageKey) -> PageKey {
    (level + 1, number / REFS_PER_DIRECTORY)
}

/// Returns the page at `index` of a directory.
pub(crate) fn child_of((level, number): PageKey, index: u64) -> PageKey {
    (level - 1, number * REFS_PER_DIRECTORY + index)
}

/// Returns the shard of a page.
pub(crate) fn shard_of(key: PageKey) -> usize {
    ((key.1 / PAGES_TOGETHER as u64) as usize ^ (usize::from(key.0) * 7)) % SHARDS
}

/// A page and its state.
pub(crate) struct Slot {
    pub(crate) page: Page,
    /// Its reference on the medium; none if it was never written.
    pub(crate) stored: PageRef,
    pub(crate) dirty: bool,
    /// Whether it was used since the hand passed.
    used: AtomicBool,
    /// The last capture that has taken it: it stays in memory until that is written.
    pub(crate) capture: u32,
    pub(super) plan: Mark,
}

impl Slot {
    /// Marks it as used.
    pub(crate) fn touch(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether it may be evicted now; if not because it was used, it may the next time,
    /// unless it is used again.
    fn may_leave(&mut self, kept: Kept) -> bool {
        !std::mem::take(self.used.get_mut())
            && !self.dirty
            && self.capture <= kept.written
            && self.plan.is_before(kept.oldest_plan)
    }
}

/// The content of a page.
pub(crate) enum Page {
    /// Only in the table.
    Own(FrameMut),
    /// Also referenced by a checkpoint, now or before.
    Shared(Frame),
}

impl Page {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(frame) => &frame[..],
            Self::Shared(frame) => &frame[..],
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        if let Self::Shared(frame) = self {
            *self = Self::Own(std::mem::replace(frame, Frame::zeros()).into_mut());
        }
        match self {
            Self::Own(frame) => &mut frame[..],
            Self::Shared(_) => unreachable!("the page was unshared just now"),
        }
    }

    /// Shares it with a checkpoint.
    pub(crate) fn share(&mut self) -> Frame {
        let frame = match std::mem::replace(self, Self::Shared(Frame::zeros())) {
            Self::Own(frame) => frame.freeze(),
            Self::Shared(frame) => frame,
        };
        *self = Self::Shared(frame.clone());
        frame
    }
}

/// Consecutive pages.
pub(crate) struct Group {
    key: PageKey,
    pub(super) slots: [Option<Slot>; PAGES_TOGETHER],
    count: usize,
}

/// Groups under one lock. While the lock is not held, a group may be evicted and replaced by
/// another: who remembers its index calls [`Shard::is_at`] first.
#[derive(Default)]
pub(crate) struct Shard {
    index: HashMap<PageKey, u32, FastState>,
    // Boxed, so that the list stays small and evicted groups return their memory.
    #[allow(clippy::vec_box)]
    groups: Vec<Box<Group>>,
    /// The group at the hand.
    hand: usize,
    /// Increases whenever a page of the shard gets another version on the medium: what was read at
    /// an earlier number may be outdated.
    pub(crate) generation: u64,
    hits: Tally,
    pages: u64,
}

/// Returns the group of a page, and its index in it.
pub(crate) fn group_of((level, page): PageKey) -> (PageKey, usize) {
    let together = PAGES_TOGETHER as u64;
    ((level, page / together), (page % together) as usize)
}

impl Shard {
    /// Returns a page.
    pub(crate) fn get(&self, key: PageKey) -> Option<&Slot> {
        let (group, at) = group_of(key);
        let slot = self.groups[*self.index.get(&group)? as usize].slots[at].as_ref()?;
        slot.touch();
        self.hits.add();
        Some(slot)
    }

    /// Returns a page, to be changed.
    pub(crate) fn get_mut(&mut self, key: PageKey) -> Option<&mut Slot> {
        let (group, at) = group_of(key);
        let slot = self.groups[*self.index.get(&group)? as usize].slots[at].as_mut()?;
        slot.touch();
        Some(slot)
    }

    /// Returns the index of a group.
    pub(crate) fn place_of(&self, group: PageKey) -> Option<u32> {
        self.index.get(&group).copied()
    }

    /// Returns whether a group is at an index.
    pub(crate) fn is_at(&self, group: PageKey, place: u32) -> bool {
        self.groups.get(place as usize).is_some_and(|there| there.key == group)
    }

    /// Returns the group at an index.
    pub(crate) fn group(&mut self, place: u32) -> &mut Group {
        &mut self.groups[place as usize]
    }

    /// Adds a page that is not in memory; returns how much memory that takes.
    pub(crate) fn add(&mut self, key: PageKey, page: Page, stored: PageRef, dirty: bool) -> u64 {
        let (group_key, at) = group_of(key);
        let next = self.groups.len() as u32;
        let index = *self.index.entry(group_key).or_insert(next);
        let mut cost = PAGE_COST_BYTES;
        if index == next {
            let slots = [const { None }; PAGES_TOGETHER];
            self.groups.push(Box::new(Group { key: group_key, slots, count: 0 }));
            cost += GROUP_COST_BYTES;
        }
        let group = &mut self.groups[index as usize];
        debug_assert!(group.slots[at].is_none(), "a page is added twice");
        let used = AtomicBool::new(true);
        group.slots[at] =
            Some(Slot { page, stored, dirty, used, capture: 0, plan: Mark::default() });
        group.count += 1;
        self.pages += 1;
        cost
    }
}

impl Sweepable for Shard {
    /// Moves by one group.
    fn sweep(&mut self, kept: Kept) -> Swept {
        let mut swept = Swept::default();
        if self.groups.is_empty() {
            return swept;
        }
        self.hand %= self.groups.len();
        let group = &mut self.groups[self.hand];
        for slot in &mut group.slots {
            if slot.as_mut().is_some_and(|slot| slot.may_leave(kept)) {
                *slot = None;
                group.count -= 1;
                swept.count += 1;
                swept.bytes += PAGE_COST_BYTES;
            }
        }
        self.pages -= swept.count;
        if group.count > 0 {
            self.hand += 1;
            return swept;
        }
        swept.bytes += GROUP_COST_BYTES;
        let key = group.key;
        self.index.remove(&key);
        self.groups.swap_remove(self.hand);
        if let Some(moved) = self.groups.get(self.hand) {
            self.index.insert(moved.key, self.hand as u32);
        }
        swept
    }

    fn add_to(&self, counted: &mut Counted) {
        counted.pages += self.pages;
        counted.hits += self.hits.get();
    }
}

impl Shards<Shard> {
    /// Returns the shard of a page.
    pub(crate) fn of(&self, key: PageKey) -> &RwLock<Shard> {
        self.at(shard_of(key))
    }
}
