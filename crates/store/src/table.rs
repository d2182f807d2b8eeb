//! A table of 32-byte rows, in pages that are read when they are first wanted.
//!
//! Rows are changed by the writer only; front ends read them at the same time. Pages are frames: a
//! checkpoint takes them as they are, and the first change meanwhile copies the page.

use block::{Frame, FrameMut};
use format::page::{PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE, TABLE_HEIGHT_MAX, TableRoot};
use format::row::ROW_BYTES;
use parking_lot::{Mutex, RwLock};

use crate::StoreError;
use crate::cursor::Cursor;
use crate::medium::Medium;
use crate::pages::{Page, PageKey, SHARDS, Shard, Slot, shard_of};

const FREE_ROW: [u8; ROW_BYTES] = [0; ROW_BYTES];

/// What a checkpoint must write for a page.
pub(crate) struct PageImage {
    pub(crate) page: Frame,
    pub(crate) reference: PageRef,
}

/// Gives places to pages, and takes back those of the pages' earlier versions.
pub(crate) trait PagePlacer {
    /// A place for a page that was at `old` (perhaps nowhere).
    fn place_page(&mut self, old: PageRef) -> Result<format::Place, StoreError>;
    /// The page at `old` is not needed any more.
    fn release_page(&mut self, old: PageRef) -> Result<(), StoreError>;
}

/// A table.
pub(crate) struct Table {
    pub(crate) shards: Vec<RwLock<Shard>>,
    root: RwLock<TableRoot>,
    dirty: Mutex<Vec<PageKey>>,
}

/// How many rows a tree of `height` directories above a row page can hold.
fn rows_below(height: u8) -> u64 {
    ROWS_PER_PAGE.saturating_mul(REFS_PER_DIRECTORY.saturating_pow(u32::from(height)))
}

impl Table {
    /// The table that a superblock names.
    pub(crate) fn new(root: TableRoot) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            root: RwLock::new(root),
            dirty: Mutex::new(Vec::new()),
        }
    }

    /// Reads a row; a row that never was is free (zeros).
    pub(crate) fn get<T>(
        &self,
        medium: &Medium,
        number: u64,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, StoreError> {
        let at = (number % ROWS_PER_PAGE) as usize * ROW_BYTES;
        let row = |page: &[u8]| read(&page[at..at + ROW_BYTES]);
        self.read_page(medium, (0, number / ROWS_PER_PAGE), row)
    }

    /// Calls `read` for each row in use of the page that a row is in: its place there, and it.
    pub(crate) fn rows_of_page(
        &self,
        medium: &Medium,
        row: u64,
        mut read: impl FnMut(u64, &[u8]),
    ) -> Result<(), StoreError> {
        self.read_page(medium, (0, row / ROWS_PER_PAGE), |page| {
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

    /// A way to change many rows, in any order.
    pub(crate) fn cursor<'a>(&'a self, medium: &'a Medium) -> Cursor<'a> {
        Cursor::new(self, medium)
    }

    fn change_page<T>(
        &self,
        medium: &Medium,
        key: PageKey,
        change: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T, StoreError> {
        let mut shard = self.shards[shard_of(key)].write();
        if shard.get(key).is_none() {
            drop(shard);
            self.make(medium, key)?;
            shard = self.shards[shard_of(key)].write();
        }
        let slot = shard.get_mut(key).expect("it was just put there, and nothing is taken out");
        self.mark(slot, key);
        Ok(change(slot.page.bytes_mut()))
    }

    /// Notes that a page is to be written.
    pub(crate) fn mark(&self, slot: &mut Slot, key: PageKey) {
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.lock().push(key);
        }
    }

    /// Sees to it that a page and all directories above it are in memory.
    pub(crate) fn make(&self, medium: &Medium, mut key: PageKey) -> Result<(), StoreError> {
        self.grow_for(key);
        let height = self.root.read().height;
        while key.0 <= height && !self.load(medium, key)? {
            let page = Page::Own(FrameMut::zeroed());
            self.shards[shard_of(key)].write().add(key, page, PageRef::NONE, false);
            key = (key.0 + 1, key.1 / REFS_PER_DIRECTORY);
        }
        Ok(())
    }

    /// Puts directories on top until the root is above `key`.
    fn grow_for(&self, key: PageKey) {
        let mut root = self.root.write();
        let last_row = (key.1 + 1).saturating_mul(rows_below(key.0)) - 1;
        while last_row >= rows_below(root.height) && root.height < TABLE_HEIGHT_MAX {
            let key = (root.height + 1, 0);
            let mut page = FrameMut::zeroed();
            root.page.put_in_directory(&mut page[..], 0);
            let page = Page::Own(page);
            self.shards[shard_of(key)].write().add(key, page, PageRef::NONE, true);
            self.dirty.lock().push(key);
            *root = TableRoot { page: PageRef::NONE, height: root.height + 1 };
        }
    }

    /// Reads a page; one that never was is zeros.
    fn read_page<T>(
        &self,
        medium: &Medium,
        key: PageKey,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, StoreError> {
        if let Some(slot) = self.shards[shard_of(key)].read().get(key) {
            return Ok(read(slot.page.bytes()));
        }
        self.load(medium, key)?;
        Ok(match self.shards[shard_of(key)].read().get(key) {
            Some(slot) => read(slot.page.bytes()),
            None => read(&Frame::zeros()[..]),
        })
    }

    /// Sees to it that a page is in memory; `false` where there is none.
    fn load(&self, medium: &Medium, key: PageKey) -> Result<bool, StoreError> {
        if self.shards[shard_of(key)].read().get(key).is_some() {
            return Ok(true);
        }
        let root = *self.root.read();
        if key.0 > root.height || key.0 == root.height && key.1 > 0 {
            return Ok(false);
        }
        let stored = if key.0 == root.height {
            root.page
        } else {
            let index = (key.1 % REFS_PER_DIRECTORY) as usize;
            let parent = (key.0 + 1, key.1 / REFS_PER_DIRECTORY);
            self.read_page(medium, parent, |page| PageRef::in_directory(page, index))?
        };
        if stored.is_none() {
            return Ok(false);
        }
        let page = Page::Shared(medium.read_page(stored)?);
        // Another thread may have read it too, and the writer may have changed that copy since.
        self.shards[shard_of(key)].write().add(key, page, stored, false);
        Ok(true)
    }

    /// Gives every changed page its next place, bottom up, and returns what is to be written.
    /// From here on the pages count as stored there. The caller holds the writer's lock.
    pub(crate) fn capture(
        &self,
        medium: &Medium,
        placer: &mut dyn PagePlacer,
    ) -> Result<(TableRoot, Vec<PageImage>), StoreError> {
        let mut images = Vec::new();
        let height = self.root.read().height;
        for level in 0..=height {
            let mut keys: Vec<PageKey> = Vec::new();
            self.dirty.lock().retain(|key| {
                let here = key.0 == level;
                if here {
                    keys.push(*key);
                }
                !here
            });
            keys.sort_unstable();
            for key in keys {
                let reference = self.capture_page(medium, key, placer, &mut images)?;
                if level == height {
                    self.root.write().page = reference;
                } else {
                    let parent = (level + 1, key.1 / REFS_PER_DIRECTORY);
                    let index = (key.1 % REFS_PER_DIRECTORY) as usize;
                    self.change_page(medium, parent, |directory| {
                        reference.put_in_directory(directory, index);
                    })?;
                }
            }
        }
        Ok((*self.root.read(), images))
    }

    /// Places one page; a page of zeros is dropped instead.
    fn capture_page(
        &self,
        medium: &Medium,
        key: PageKey,
        placer: &mut dyn PagePlacer,
        images: &mut Vec<PageImage>,
    ) -> Result<PageRef, StoreError> {
        let mut shard = self.shards[shard_of(key)].write();
        let slot = shard.get_mut(key).expect("a dirty page is in memory");
        if slot.page.bytes() == &Frame::zeros()[..] {
            if !slot.stored.is_none() {
                placer.release_page(slot.stored)?;
            }
            shard.remove(key);
            return Ok(PageRef::NONE);
        }
        let place = placer.place_page(slot.stored)?;
        let page = slot.page.share();
        let reference = PageRef { place, checksum: medium.keys.page_sum(&page[..]) };
        slot.stored = reference;
        slot.dirty = false;
        images.push(PageImage { page, reference });
        Ok(reference)
    }

    /// Calls `visit` for every page that is stored, and every row that is in use (for `check`).
    pub(crate) fn visit(
        &self,
        medium: &Medium,
        visit_page: &mut dyn FnMut(PageRef),
        visit_row: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<(), StoreError> {
        let root = *self.root.read();
        self.visit_below(medium, (root.height, 0), visit_page, visit_row)
    }

    fn visit_below(
        &self,
        medium: &Medium,
        key: PageKey,
        visit_page: &mut dyn FnMut(PageRef),
        visit_row: &mut dyn FnMut(u64, &[u8]),
    ) -> Result<(), StoreError> {
        if !self.load(medium, key)? {
            return Ok(());
        }
        let (page, stored) = match self.shards[shard_of(key)].read().get(key) {
            Some(slot) => (FrameMut::from_bytes(slot.page.bytes()), slot.stored),
            None => return Ok(()),
        };
        if !stored.is_none() {
            visit_page(stored);
        }
        if key.0 == 0 {
            for (index, row) in page.chunks_exact(ROW_BYTES).enumerate() {
                if row != FREE_ROW {
                    visit_row(key.1 * ROWS_PER_PAGE + index as u64, row);
                }
            }
            return Ok(());
        }
        for index in 0..REFS_PER_DIRECTORY {
            let child = (key.0 - 1, key.1 * REFS_PER_DIRECTORY + index);
            self.visit_below(medium, child, visit_page, visit_row)?;
        }
        Ok(())
    }
}
