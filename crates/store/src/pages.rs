//! The pages of a table that are in memory, and how they are found.

use std::collections::HashMap;

use block::{Frame, FrameMut};
use format::page::PageRef;

/// Locks over the pages, so that readers of different pages do not meet.
pub(crate) const SHARDS: usize = 64;
/// Neighbouring pages that are found together and share a lock: 8192 rows.
const PAGES_TOGETHER: usize = 64;

/// Hashes ids, which no stranger chooses: speed counts, and the same run must give the same order.
pub(crate) type FastState = foldhash::fast::FixedState;

/// A page by its level (0: rows) and its position in the level.
pub(crate) type PageKey = (u8, u64);

/// The lock over a page.
pub(crate) fn shard_of(key: PageKey) -> usize {
    ((key.1 / PAGES_TOGETHER as u64) as usize ^ (usize::from(key.0) * 7)) % SHARDS
}

/// A page, and what is known of it.
pub(crate) struct Slot {
    pub(crate) page: Page,
    /// Where it is on the medium; nowhere if it never was.
    pub(crate) stored: PageRef,
    pub(crate) dirty: bool,
}

/// The content of a page.
pub(crate) enum Page {
    /// The table's own.
    Own(FrameMut),
    /// A checkpoint has it too, or had.
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
            Self::Shared(_) => unreachable!("it was made the table's own just now"),
        }
    }

    /// For a checkpoint, too.
    pub(crate) fn share(&mut self) -> Frame {
        let frame = match std::mem::replace(self, Self::Shared(Frame::zeros())) {
            Self::Own(frame) => frame.freeze(),
            Self::Shared(frame) => frame,
        };
        *self = Self::Shared(frame.clone());
        frame
    }
}

/// Neighbouring pages.
pub(crate) struct Group {
    key: PageKey,
    pub(crate) slots: [Option<Slot>; PAGES_TOGETHER],
    count: usize,
}

/// Groups under one lock. A group keeps its place until a checkpoint drops its last page.
#[derive(Default)]
pub(crate) struct Shard {
    pub(crate) index: HashMap<PageKey, u32, FastState>,
    pub(crate) groups: Vec<Group>,
}

/// The group of a page, and its place in there.
pub(crate) fn group_of((level, page): PageKey) -> (PageKey, usize) {
    let together = PAGES_TOGETHER as u64;
    ((level, page / together), (page % together) as usize)
}

impl Shard {
    pub(crate) fn get(&self, key: PageKey) -> Option<&Slot> {
        let (group, at) = group_of(key);
        self.index.get(&group).and_then(|index| self.groups[*index as usize].slots[at].as_ref())
    }

    pub(crate) fn get_mut(&mut self, key: PageKey) -> Option<&mut Slot> {
        let (group, at) = group_of(key);
        self.index.get(&group).and_then(|index| self.groups[*index as usize].slots[at].as_mut())
    }

    /// Puts a page in, if nobody has put it there meanwhile.
    pub(crate) fn add(&mut self, key: PageKey, page: Page, stored: PageRef, dirty: bool) {
        let (group, at) = group_of(key);
        let next = self.groups.len() as u32;
        let index = *self.index.entry(group).or_insert(next);
        if index == next {
            let slots = [const { None }; PAGES_TOGETHER];
            self.groups.push(Group { key: group, slots, count: 0 });
        }
        let group = &mut self.groups[index as usize];
        if group.slots[at].is_none() {
            group.slots[at] = Some(Slot { page, stored, dirty });
            group.count += 1;
        }
    }

    pub(crate) fn remove(&mut self, key: PageKey) {
        let (group_key, at) = group_of(key);
        let Some(index) = self.index.get(&group_key).copied() else { return };
        let group = &mut self.groups[index as usize];
        group.count -= usize::from(group.slots[at].take().is_some());
        if group.count == 0 {
            self.index.remove(&group_key);
            self.groups.swap_remove(index as usize);
            if let Some(moved) = self.groups.get(index as usize) {
                self.index.insert(moved.key, index);
            }
        }
    }
}
