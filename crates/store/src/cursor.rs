//! Changing many rows of a table, in any order.

use format::page::ROWS_PER_PAGE;
use format::row::ROW_BYTES;
use parking_lot::RwLockWriteGuard;

use crate::StoreError;
use crate::medium::Medium;
use crate::pages::{PageKey, Shard, group_of, shard_of};
use crate::table::Table;

/// How many groups of pages a [`Cursor`] remembers.
const RECENT_GROUPS: usize = 16;

/// Changes rows, in any order: holds the lock over neighbouring pages, and remembers where the last
/// groups of them are. Only the writer may have one, and use nothing else of the table meanwhile.
pub(crate) struct Cursor<'a> {
    table: &'a Table,
    medium: &'a Medium,
    shard: Option<(usize, RwLockWriteGuard<'a, Shard>)>,
    /// Groups of row pages by their number, and their places.
    recent: [(u64, u32); RECENT_GROUPS],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(table: &'a Table, medium: &'a Medium) -> Self {
        Self { table, medium, shard: None, recent: [(u64::MAX, 0); RECENT_GROUPS] }
    }

    /// A row, to be changed.
    #[inline]
    pub(crate) fn row(&mut self, row: u64) -> Result<&mut [u8], StoreError> {
        let key = (0, row / ROWS_PER_PAGE);
        let bytes = (row % ROWS_PER_PAGE) as usize * ROW_BYTES;
        let ((_, group), at) = group_of(key);
        let recent = &self.recent[group as usize % RECENT_GROUPS];
        let place = if recent.0 == group { recent.1 } else { self.find(key)? };
        let wanted = shard_of(key);
        if self.shard.as_ref().is_none_or(|(held, _)| *held != wanted) {
            self.lock(wanted);
        }
        let held =
            self.shard.as_ref().and_then(|held| held.1.groups[place as usize].slots[at].as_ref());
        if held.is_none() {
            self.make(key)?;
            self.lock(wanted);
        }
        let shard = self.shard.as_mut();
        let slot = shard.and_then(|held| held.1.groups[place as usize].slots[at].as_mut());
        let slot = slot.expect("it was made if it was not there");
        if !slot.dirty {
            self.table.mark(slot, key);
        }
        Ok(&mut slot.page.bytes_mut()[bytes..bytes + ROW_BYTES])
    }

    /// Takes the lock over a page; never two at once.
    fn lock(&mut self, wanted: usize) -> &mut Shard {
        self.shard = None;
        let table = self.table;
        &mut self.shard.insert((wanted, table.shards[wanted].write())).1
    }

    #[cold]
    fn make(&mut self, key: PageKey) -> Result<(), StoreError> {
        self.shard = None;
        self.table.make(self.medium, key)
    }

    /// The place of the group of a page, which is remembered.
    #[cold]
    fn find(&mut self, key: PageKey) -> Result<u32, StoreError> {
        let group = group_of(key).0;
        let mut found = self.lock(shard_of(key)).index.get(&group).copied();
        if found.is_none() {
            self.make(key)?;
            found = self.lock(shard_of(key)).index.get(&group).copied();
        }
        let place = found.expect("it was just put there, and nothing is taken out");
        self.recent[group.1 as usize % RECENT_GROUPS] = (group.1, place);
        Ok(place)
    }
}
