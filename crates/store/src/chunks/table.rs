//! A table of 32-byte rows, in pages that are read when they are first needed.
//!
//! Only the writer changes rows; front ends read them concurrently. Pages are frames: a checkpoint
//! takes them as they are, and the first later change copies the page.

use std::sync::Arc;

use block::{Frame, FrameMut};
use format::page::{PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE, TABLE_HEIGHT_MAX, TableRoot};
use format::row::ROW_BYTES;

use crate::StoreError;
use crate::chunks::asking::Source;
use crate::chunks::bad_copies::BadCopies;
use crate::chunks::cursor::Cursor;
use crate::chunks::medium::{Copied, Medium};
use crate::chunks::memory::{Memory, PAGE_COST_BYTES};
use crate::chunks::pages::{Page, PageKey, Shard, Slot, parent_of};
use crate::chunks::shards::Shards;
use crate::sync::{Mutex, RwLock};

pub(crate) const FREE_ROW: [u8; ROW_BYTES] = [0; ROW_BYTES];

/// A table.
pub(crate) struct Table {
    pub(crate) shards: Arc<Shards<Shard>>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) root: RwLock<TableRoot>,
    pub(crate) dirty: Mutex<Vec<PageKey>>,
    /// Pages whose first copy was bad.
    pub(crate) bad_copies: BadCopies<PageKey>,
}

/// The result of reading a page that was not in memory.
enum Loaded {
    /// It is in memory now, with this reference on the medium.
    Page(Frame, PageRef),
    /// There is no such page: its rows are free.
    Nothing,
    /// Another thread has added it, or it has a newer version: look again.
    Again,
}

/// Returns how many rows a tree with `height` levels of directories above row pages can hold.
fn rows_below(height: u8) -> u64 {
    ROWS_PER_PAGE.saturating_mul(REFS_PER_DIRECTORY.saturating_pow(u32::from(height)))
}

impl Table {
    /// Creates the table that a superblock refers to.
    pub(crate) fn new(root: TableRoot, memory: &Arc<Memory>) -> Self {
        let shards = Arc::new(Shards::new());
        memory.join(shards.clone());
        Self::over(root, memory, shards)
    }

    /// The same as [`Table::new`], for a table whose pages are never evicted.
    pub(crate) fn resident(root: TableRoot, memory: &Arc<Memory>) -> Self {
        Self::over(root, memory, Arc::new(Shards::new()))
    }

    fn over(root: TableRoot, memory: &Arc<Memory>, shards: Arc<Shards<Shard>>) -> Self {
        Self {
            shards,
            memory: memory.clone(),
            root: RwLock::new(root),
            dirty: Mutex::new(Vec::new()),
            bad_copies: BadCopies::default(),
        }
    }

    /// Reads a row; a row that never existed is free (zeros).
    pub(crate) fn get<'a, T>(
        &self,
        source: impl Into<Source<'a>>,
        number: u64,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, StoreError> {
        let at = (number % ROWS_PER_PAGE) as usize * ROW_BYTES;
        let row = |page: &[u8]| read(&page[at..at + ROW_BYTES]);
        self.read_page(source, (0, number / ROWS_PER_PAGE), row)
    }

    /// Calls `read` for each used row of a row's page, with its index.
    pub(crate) fn rows_of_page<'a>(
        &self,
        source: impl Into<Source<'a>>,
        row: u64,
        mut read: impl FnMut(u64, &[u8]),
    ) -> Result<(), StoreError> {
        self.read_page(source, (0, row / ROWS_PER_PAGE), |page| {
            let rows = (0..).zip(page.chunks_exact(ROW_BYTES));
            rows.filter(|(_, raw)| *raw != FREE_ROW).for_each(|(at, raw)| read(at, raw));
        })
    }

    /// Changes a row.
    pub(crate) fn update<T>(
        &self,
        medium: &Medium,
        row: u64,
        change: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T, StoreError> {
        let key = (0, row / ROWS_PER_PAGE);
        let at = (row % ROWS_PER_PAGE) as usize * ROW_BYTES;
        self.change_page(medium, key, |page| change(&mut page[at..at + ROW_BYTES]))
    }

    /// Returns a cursor for changing many rows in any order.
    pub(crate) fn cursor<'a>(&'a self, medium: &'a Medium) -> Cursor<'a> {
        Cursor::new(self, medium)
    }

    pub(crate) fn change_page<T>(
        &self,
        medium: &Medium,
        key: PageKey,
        change: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T, StoreError> {
        loop {
            if let Some(slot) = self.shards.of(key).write().get_mut(key) {
                self.mark(slot, key);
                return Ok(change(slot.page.bytes_mut()));
            }
            // It may be evicted before the lock is taken, but rarely, because it counts as used.
            self.make(medium, key)?;
        }
    }

    /// Marks a page as changed.
    pub(crate) fn mark(&self, slot: &mut Slot, key: PageKey) {
        if !slot.dirty {
            slot.dirty = true;
            // Another change, which is applied after a checkpoint, may have been planned with it.
            slot.plan.set(self.memory.plans.now());
            self.memory.dirtied(PAGE_COST_BYTES, slot.capture);
            self.dirty.lock().push(key);
        }
    }

    /// Makes sure that a page is in memory, creating it if it does not exist. Only for the writer,
    /// which alone creates pages. The directories above it are created when it is captured.
    pub(crate) fn make(&self, medium: &Medium, key: PageKey) -> Result<(), StoreError> {
        self.grow_for(key);
        let seen = self.shards.of(key).read().generation;
        if matches!(self.load(medium.into(), key, seen)?, Loaded::Nothing) {
            self.memory.make_room_for_page();
            let mut shard = self.shards.of(key).write();
            if shard.get(key).is_none() {
                let page = Page::Own(FrameMut::zeroed());
                self.memory.hold(shard.add(key, page, PageRef::NONE, false));
            }
        }
        Ok(())
    }

    /// Adds directories at the top until the root covers `key`.
    pub(crate) fn grow_for(&self, key: PageKey) {
        let last_row = (key.1 + 1).saturating_mul(rows_below(key.0)) - 1;
        let too_low = |root: &TableRoot| {
            last_row >= rows_below(root.height) && root.height < TABLE_HEIGHT_MAX
        };
        if !too_low(&self.root.read()) {
            return;
        }
        let mut root = self.root.write();
        while too_low(&root) {
            let key = (root.height + 1, 0);
            let mut page = FrameMut::zeroed();
            root.page.put_in_directory(&mut page[..], 0);
            let cost = self.shards.of(key).write().add(key, Page::Own(page), PageRef::NONE, true);
            self.memory.hold(cost);
            self.memory.dirtied(PAGE_COST_BYTES, 0);
            self.dirty.lock().push(key);
            *root = TableRoot { page: PageRef::NONE, height: root.height + 1 };
        }
    }

    /// Reads a page; one that never existed is zeros.
    pub(crate) fn read_page<'a, T>(
        &self,
        source: impl Into<Source<'a>>,
        key: PageKey,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, StoreError> {
        self.look(source.into(), key, |found| match found {
            Some((page, _)) => read(page),
            None => read(&Frame::zeros()[..]),
        })
    }

    /// Calls `read` with a page and its reference on the medium.
    pub(crate) fn look<T>(
        &self,
        source: Source<'_>,
        key: PageKey,
        look: impl FnOnce(Option<(&[u8], PageRef)>) -> T,
    ) -> Result<T, StoreError> {
        loop {
            let seen = {
                let shard = self.shards.of(key).read();
                if let Some(slot) = shard.get(key) {
                    slot.plan.set(source.plan());
                    return Ok(look(Some((slot.page.bytes(), slot.stored))));
                }
                shard.generation
            };
            match self.load(source, key, seen)? {
                Loaded::Page(page, stored) => return Ok(look(Some((&page[..], stored)))),
                Loaded::Nothing => return Ok(look(None)),
                Loaded::Again => {}
            }
        }
    }

    /// Reads a page from the medium that was not in memory when its shard had the generation
    /// `seen`.
    ///
    /// While this thread reads, without a lock, the page may be loaded and changed by the writer,
    /// captured, written and evicted. Then what was read is outdated or, if its segment was freed
    /// and reused, not a page at all. The generation detects both: a capture increments it under
    /// the shard's lock for each page that gets a new version, and a segment is freed only after
    /// all of its pages have one. So what is added to memory and returned was the newest version
    /// when the lock was taken, and an error counts only if the reference that led there is still
    /// the newest.
    ///
    /// The parent's reference needs no such check. From its capture to the end of the checkpoint's
    /// writes a page is in memory, and its reference is in its parent before the writes begin. A
    /// page that is not in memory has no capture in progress.
    fn load(&self, source: Source<'_>, key: PageKey, seen: u64) -> Result<Loaded, StoreError> {
        let stored = self.named(source, key)?;
        if stored.is_none() {
            return Ok(Loaded::Nothing);
        }
        if source.waits() {
            self.memory.missed();
        }
        let read = source.page(stored);
        if let Err(StoreError::Absent) = read {
            return Err(StoreError::Absent);
        }
        self.memory.make_room_for_page();
        let mut shard = self.shards.of(key).write();
        if shard.generation != seen || shard.get(key).is_some() {
            return Ok(Loaded::Again);
        }
        let Copied { content: page, is_second } = read?;
        self.memory.hold(shard.add(key, Page::Shared(page.clone()), stored, false));
        if source.plan() > 0
            && let Some(slot) = shard.get(key)
        {
            slot.plan.set(source.plan());
        }
        if is_second {
            self.bad_copies.note(key);
        }
        Ok(Loaded::Page(page, stored))
    }

    /// Returns the location of a page on the medium, if the directory above it can be read.
    pub(crate) fn stored_at(&self, medium: &Medium, key: PageKey) -> Option<PageRef> {
        self.named(medium, key).ok()
    }

    /// Returns the reference to a page in the directory above it.
    pub(crate) fn named<'a>(
        &self,
        source: impl Into<Source<'a>>,
        key: PageKey,
    ) -> Result<PageRef, StoreError> {
        let root = *self.root.read();
        if key.0 >= root.height {
            return Ok(if key == (root.height, 0) { root.page } else { PageRef::NONE });
        }
        let index = (key.1 % REFS_PER_DIRECTORY) as usize;
        self.read_page(source, parent_of(key), |page| PageRef::in_directory(page, index))
    }
}

/// An unreadable page.
#[derive(Debug)]
pub(crate) struct LostPage {
    pub(crate) key: PageKey,
    /// The rows in it or below it.
    pub(crate) rows: std::ops::Range<u64>,
    pub(crate) error: StoreError,
}

/// Returns the rows in a page, or below a directory.
pub(crate) fn rows_of(key: PageKey) -> std::ops::Range<u64> {
    let span = rows_below(key.0);
    key.1.saturating_mul(span)..(key.1 + 1).saturating_mul(span)
}
