//! A table of 32-byte rows, in pages that are read when they are first wanted.
//!
//! Rows are changed by the writer only; front ends read them at the same time. Pages are frames:
//! a checkpoint takes them as they are, and the first change behind it copies the page.

use std::collections::HashMap;

use block::{Frame, FrameMut};
use format::page::{PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE, TABLE_HEIGHT_MAX, TableRoot};
use format::row::ROW_BYTES;
use parking_lot::{Mutex, RwLock};

use crate::StoreError;
use crate::medium::Medium;

/// Locks over the pages, so that readers of different pages do not meet.
const SHARDS: usize = 64;
const FREE_ROW: [u8; ROW_BYTES] = [0; ROW_BYTES];

/// Hashes ids, which no stranger chooses: speed counts, and the same run must give the same order.
pub(crate) type FastState = foldhash::fast::FixedState;

/// A page by its level (0: rows) and its position in the level.
type PageKey = (u8, u64);

struct Slot {
    page: Frame,
    /// Where it is on the medium; nowhere if it never was.
    stored: PageRef,
    dirty: bool,
}

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
    fn release_page(&mut self, old: PageRef);
}

/// A table.
pub(crate) struct Table {
    shards: Vec<RwLock<HashMap<PageKey, Slot, FastState>>>,
    root: RwLock<TableRoot>,
    dirty: Mutex<Vec<PageKey>>,
}

fn shard_of(key: PageKey) -> usize {
    (key.1 as usize ^ (usize::from(key.0) * 7)) % SHARDS
}

/// How many rows a tree of `height` directories above a row page can hold.
fn rows_below(height: u8) -> u64 {
    ROWS_PER_PAGE.saturating_mul(REFS_PER_DIRECTORY.saturating_pow(u32::from(height)))
}

impl Table {
    /// The table that a superblock names.
    pub(crate) fn new(root: TableRoot) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::new(HashMap::default())).collect(),
            root: RwLock::new(root),
            dirty: Mutex::new(Vec::new()),
        }
    }

    /// Reads a row; a row that never was is free (zeros).
    pub(crate) fn get<T>(
        &self,
        medium: &Medium,
        row: u64,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, StoreError> {
        let key = (0, row / ROWS_PER_PAGE);
        let at = (row % ROWS_PER_PAGE) as usize * ROW_BYTES;
        if let Some(slot) = self.shards[shard_of(key)].read().get(&key) {
            return Ok(read(&slot.page[at..at + ROW_BYTES]));
        }
        match self.load(medium, key)? {
            Some(page) => Ok(read(&page[at..at + ROW_BYTES])),
            None => Ok(read(&FREE_ROW)),
        }
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

    /// Reads rows, taking each page once for those of it that follow each other.
    pub(crate) fn get_many(
        &self,
        medium: &Medium,
        count: usize,
        row: impl Fn(usize) -> u64,
        read: &mut impl FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        let mut done = 0;
        while done < count {
            let page_number = row(done) / ROWS_PER_PAGE;
            let page = self.load(medium, (0, page_number))?;
            while done < count && row(done) / ROWS_PER_PAGE == page_number {
                let at = (row(done) % ROWS_PER_PAGE) as usize * ROW_BYTES;
                let raw = page.as_ref().map_or(&FREE_ROW[..], |page| &page[at..at + ROW_BYTES]);
                read(done, raw);
                done += 1;
            }
        }
        Ok(())
    }

    /// Changes rows, taking each page once for those of it that follow each other;
    /// `row` says the row of an index.
    pub(crate) fn update_many(
        &self,
        medium: &Medium,
        count: usize,
        row: impl Fn(usize) -> u64,
        change: &mut impl FnMut(usize, &mut [u8]),
    ) -> Result<(), StoreError> {
        let mut done = 0;
        while done < count {
            let page_number = row(done) / ROWS_PER_PAGE;
            self.change_page(medium, (0, page_number), |page| {
                while done < count && row(done) / ROWS_PER_PAGE == page_number {
                    let at = (row(done) % ROWS_PER_PAGE) as usize * ROW_BYTES;
                    change(done, &mut page[at..at + ROW_BYTES]);
                    done += 1;
                }
            })?;
        }
        Ok(())
    }

    fn change_page<T>(
        &self,
        medium: &Medium,
        key: PageKey,
        change: impl FnOnce(&mut FrameMut) -> T,
    ) -> Result<T, StoreError> {
        let mut shard = self.shards[shard_of(key)].write();
        if !shard.contains_key(&key) {
            drop(shard);
            self.grow_for(key);
            self.make(medium, key)?;
            shard = self.shards[shard_of(key)].write();
        }
        let slot = shard.get_mut(&key).expect("it was just put there, and nothing is taken out");
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.lock().push(key);
        }
        let mut page = std::mem::replace(&mut slot.page, Frame::zeros()).into_mut();
        let result = change(&mut page);
        slot.page = page.freeze();
        Ok(result)
    }

    /// Sees to it that a page and all directories above it are in memory.
    fn make(&self, medium: &Medium, key: PageKey) -> Result<(), StoreError> {
        let (height, mut key) = (self.root.read().height, key);
        while key.0 <= height && self.load(medium, key)?.is_none() {
            let slot =
                Slot { page: FrameMut::zeroed().freeze(), stored: PageRef::NONE, dirty: false };
            self.shards[shard_of(key)].write().entry(key).or_insert(slot);
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
            let slot = Slot { page: page.freeze(), stored: PageRef::NONE, dirty: true };
            self.shards[shard_of(key)].write().insert(key, slot);
            self.dirty.lock().push(key);
            *root = TableRoot { page: PageRef::NONE, height: root.height + 1 };
        }
    }

    /// Finds a page in memory or reads it; `None` where there is none.
    fn load(&self, medium: &Medium, key: PageKey) -> Result<Option<Frame>, StoreError> {
        if let Some(slot) = self.shards[shard_of(key)].read().get(&key) {
            return Ok(Some(slot.page.clone()));
        }
        let root = *self.root.read();
        if key.0 > root.height || key.0 == root.height && key.1 > 0 {
            return Ok(None);
        }
        let stored = if key.0 == root.height {
            root.page
        } else {
            let Some(parent) = self.load(medium, (key.0 + 1, key.1 / REFS_PER_DIRECTORY))? else {
                return Ok(None);
            };
            PageRef::in_directory(&parent[..], (key.1 % REFS_PER_DIRECTORY) as usize)
        };
        if stored.is_none() {
            return Ok(None);
        }
        let page = medium.read_page(stored)?;
        let mut shard = self.shards[shard_of(key)].write();
        // Another thread may have read it too, and the writer may have changed that copy since.
        let slot = shard.entry(key).or_insert(Slot { page, stored, dirty: false });
        Ok(Some(slot.page.clone()))
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
                        reference.put_in_directory(&mut directory[..], index);
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
        let slot = shard.get_mut(&key).expect("a dirty page is in memory");
        if slot.page.iter().all(|&byte| byte == 0) {
            if !slot.stored.is_none() {
                placer.release_page(slot.stored);
            }
            shard.remove(&key);
            return Ok(PageRef::NONE);
        }
        let place = placer.place_page(slot.stored)?;
        let reference = PageRef { place, checksum: medium.keys.page_sum(&slot.page[..]) };
        slot.stored = reference;
        slot.dirty = false;
        images.push(PageImage { page: slot.page.clone(), reference });
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
        let Some(page) = self.load(medium, key)? else { return Ok(()) };
        if let Some(slot) = self.shards[shard_of(key)].read().get(&key)
            && !slot.stored.is_none()
        {
            visit_page(slot.stored);
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
