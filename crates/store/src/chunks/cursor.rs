//! Changing many rows of a table, in any order.

use format::page::ROWS_PER_PAGE;
use format::row::ROW_BYTES;

use crate::StoreError;
use crate::chunks::medium::Medium;
use crate::chunks::pages::{PageKey, Shard, group_of, shard_of};
use crate::chunks::table::Table;
use crate::sync::RwLockWriteGuard;

/// How many groups of pages a [`Cursor`] remembers.
const RECENT_GROUPS: usize = 16;

/// Changes rows, in any order: holds the lock of neighboring pages, and remembers where the last
/// groups of them are. Only the writer may have a cursor, and may not use the table otherwise
/// meanwhile.
pub(crate) struct Cursor<'a> {
    table: &'a Table,
    medium: &'a Medium,
    shard: Option<(usize, RwLockWriteGuard<'a, Shard>)>,
    /// Groups of row pages by their number, and where they were. They may have been evicted and
    /// replaced, but not while the lock is held.
    recent: [(u64, u32); RECENT_GROUPS],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(table: &'a Table, medium: &'a Medium) -> Self {
        Self { table, medium, shard: None, recent: [(u64::MAX, 0); RECENT_GROUPS] }
    }

    /// Returns a row to change.
    #[inline]
    pub(crate) fn row(&mut self, row: u64) -> Result<&mut [u8], StoreError> {
        let key = (0, row / ROWS_PER_PAGE);
        let bytes = (row % ROWS_PER_PAGE) as usize * ROW_BYTES;
        let place = self.find(key)?;
        let (_, at) = group_of(key);
        let shard = self.shard.as_mut();
        let slot = shard.and_then(|(_, shard)| shard.group(place).slots[at].as_mut());
        let slot = slot.expect("the slot was found, and its lock is still held");
        slot.touch();
        if !slot.dirty {
            self.table.mark(slot, key);
        }
        Ok(&mut slot.page.bytes_mut()[bytes..bytes + ROW_BYTES])
    }

    /// Finds the group of a page in memory, and locks its shard.
    #[inline]
    fn find(&mut self, key: PageKey) -> Result<u32, StoreError> {
        let (group, at) = group_of(key);
        let wanted = shard_of(key);
        loop {
            if self.shard.as_ref().is_none_or(|(held, _)| *held != wanted) {
                // Never two locks at once.
                self.shard = None;
                self.shard = Some((wanted, self.table.shards.at(wanted).write()));
            }
            let recent = &mut self.recent[group.1 as usize % RECENT_GROUPS];
            if let Some((_, shard)) = &mut self.shard {
                if recent.0 != group.1 || !shard.is_at(group, recent.1) {
                    *recent = shard.place_of(group).map_or((u64::MAX, 0), |at| (group.1, at));
                }
                if recent.0 == group.1 && shard.group(recent.1).slots[at].is_some() {
                    return Ok(recent.1);
                }
            }
            self.shard = None;
            self.table.make(self.medium, key)?;
        }
    }
}
