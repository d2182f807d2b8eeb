//! Tables with pages that are damaged on the device.

use block::{Frame, FrameMut};
use format::page::{REFS_PER_DIRECTORY, ROWS_PER_PAGE};

use crate::StoreError;
use crate::chunks::asking::Source;
use crate::chunks::pages::PageKey;
use crate::chunks::table::Table;

impl Table {
    /// Moves `first` to the next row from which `count` rows can be changed, past unreadable pages.
    /// Returns `false` if there is none near.
    ///
    /// Pages that are being asked for count as readable.
    pub(crate) fn find_rows<'a>(
        &self,
        source: impl Into<Source<'a>>,
        first: &mut u64,
        count: u64,
    ) -> bool {
        let source = source.into();
        let mut tries = 2 * REFS_PER_DIRECTORY;
        let mut page = *first / ROWS_PER_PAGE;
        while page <= (*first + count.max(1) - 1) / ROWS_PER_PAGE {
            let Some(level) = self.unreadable_level(source, page) else {
                page += 1;
                continue;
            };
            // After everything below the unreadable page.
            let below = REFS_PER_DIRECTORY.pow(u32::from(level));
            page = (page / below + 1) * below;
            *first = page * ROWS_PER_PAGE;
            tries -= 1;
            if tries == 0 {
                return false;
            }
        }
        true
    }

    /// Returns the level of the unreadable page on the path to a row page: 0 for the page itself.
    pub(crate) fn unreadable_level<'a>(
        &self,
        source: impl Into<Source<'a>>,
        page: u64,
    ) -> Option<u8> {
        let source = source.into();
        let height = self.root.read().height;
        let is_damaged = |key: PageKey| {
            let read = self.read_page(source, key, |_| ());
            !matches!(read, Ok(()) | Err(StoreError::Absent))
        };
        let is_unreadable = |level: &u8| {
            let number = page / REFS_PER_DIRECTORY.pow(u32::from(*level));
            is_damaged((*level, number))
        };
        if !is_damaged((0, page)) {
            return None;
        }
        // Everything below the topmost unreadable page is unreadable.
        (0..=height).rev().find(is_unreadable)
    }

    /// Returns a page if it is in memory.
    pub(crate) fn in_memory(&self, key: PageKey) -> Option<Frame> {
        let shard = self.shards.of(key).read();
        shard.get(key).map(|slot| FrameMut::from_bytes(slot.page.bytes()).freeze())
    }

    /// Returns the numbers of the row pages that have changed since the last capture, in order:
    /// these include all that are not on the medium yet.
    pub(crate) fn changed_pages(&self) -> Vec<u64> {
        let dirty = self.dirty.lock();
        let mut pages: Vec<u64> =
            dirty.iter().filter(|key| key.0 == 0).map(|(_, number)| *number).collect();
        drop(dirty);
        pages.sort_unstable();
        pages
    }

    /// Has the next checkpoint rewrite a page that is damaged on the device. Returns `false` if the
    /// page, and all above it, are not in memory. Those above may be evicted before that; if one of
    /// them is damaged, too, it was requested first, and stays.
    pub(crate) fn write_anew(&self, key: PageKey) -> bool {
        let height = self.root.read().height;
        let above = |level: u8| {
            let number = key.1 / REFS_PER_DIRECTORY.pow(u32::from(level - key.0));
            (level, number)
        };
        let held = |key: PageKey| self.shards.of(key).read().get(key).is_some();
        if key.0 > height || !(key.0..=height).map(above).all(held) {
            return false;
        }
        let mut shard = self.shards.of(key).write();
        let Some(slot) = shard.get_mut(key) else { return false };
        self.mark(slot, key);
        true
    }
}
