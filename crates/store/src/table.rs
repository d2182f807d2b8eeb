//! A table of 32-byte rows, in pages that are read when they are first wanted.
//!
//! Rows are changed by the writer only; front ends read them at the same time. Pages are frames: a
//! checkpoint takes them as they are, and the first change meanwhile copies the page.

use std::collections::HashMap;

use block::{Frame, FrameMut};
use format::page::{PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE, TABLE_HEIGHT_MAX, TableRoot};
use format::row::ROW_BYTES;
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use crate::StoreError;
use crate::medium::Medium;

/// Locks over the pages, so that readers of different pages do not meet.
const SHARDS: usize = 64;
/// Neighbouring pages that are found together and share a lock: 8192 rows.
const PAGES_TOGETHER: usize = 64;
/// How many groups of pages a [`Cursor`] remembers.
const RECENT_GROUPS: usize = 16;
const FREE_ROW: [u8; ROW_BYTES] = [0; ROW_BYTES];

/// Hashes ids, which no stranger chooses: speed counts, and the same run must give the same order.
pub(crate) type FastState = foldhash::fast::FixedState;

/// A page by its level (0: rows) and its position in the level.
type PageKey = (u8, u64);

struct Slot {
    page: Page,
    /// Where it is on the medium; nowhere if it never was.
    stored: PageRef,
    dirty: bool,
}

/// The content of a page.
enum Page {
    /// The table's own.
    Own(FrameMut),
    /// A checkpoint has it too, or had.
    Shared(Frame),
}

impl Page {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(frame) => &frame[..],
            Self::Shared(frame) => &frame[..],
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        if let Self::Shared(frame) = self {
            *self = Self::Own(std::mem::replace(frame, Frame::zeros()).into_mut());
        }
        match self {
            Self::Own(frame) => &mut frame[..],
            Self::Shared(_) => unreachable!("it was made the table's own just now"),
        }
    }

    fn share(&mut self) -> Frame {
        let frame = match std::mem::replace(self, Self::Shared(Frame::zeros())) {
            Self::Own(frame) => frame.freeze(),
            Self::Shared(frame) => frame,
        };
        *self = Self::Shared(frame.clone());
        frame
    }
}

/// Neighbouring pages.
struct Group {
    key: PageKey,
    slots: [Option<Slot>; PAGES_TOGETHER],
    count: usize,
}

/// Groups under one lock. A group keeps its place until a checkpoint drops its last page.
#[derive(Default)]
struct Shard {
    index: HashMap<PageKey, u32, FastState>,
    groups: Vec<Group>,
}

/// The group of a page, and its place in there.
fn group_of((level, page): PageKey) -> (PageKey, usize) {
    let together = PAGES_TOGETHER as u64;
    ((level, page / together), (page % together) as usize)
}

impl Shard {
    fn get(&self, key: PageKey) -> Option<&Slot> {
        let (group, at) = group_of(key);
        self.index.get(&group).and_then(|index| self.groups[*index as usize].slots[at].as_ref())
    }

    fn get_mut(&mut self, key: PageKey) -> Option<&mut Slot> {
        let (group, at) = group_of(key);
        self.index.get(&group).and_then(|index| self.groups[*index as usize].slots[at].as_mut())
    }

    /// Puts a page in, if nobody has put it there meanwhile.
    fn add(&mut self, key: PageKey, page: Page, stored: PageRef, dirty: bool) {
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

    fn remove(&mut self, key: PageKey) {
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
    shards: Vec<RwLock<Shard>>,
    root: RwLock<TableRoot>,
    dirty: Mutex<Vec<PageKey>>,
}

fn shard_of(key: PageKey) -> usize {
    ((key.1 / PAGES_TOGETHER as u64) as usize ^ (usize::from(key.0) * 7)) % SHARDS
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
        Cursor { table: self, medium, shard: None, recent: [(u64::MAX, 0); RECENT_GROUPS] }
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

    fn mark(&self, slot: &mut Slot, key: PageKey) {
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.lock().push(key);
        }
    }

    /// Sees to it that a page and all directories above it are in memory.
    fn make(&self, medium: &Medium, mut key: PageKey) -> Result<(), StoreError> {
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
                placer.release_page(slot.stored);
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

/// Changes rows, in any order: holds the lock over neighbouring pages, and remembers where the last
/// groups of them are. Only the writer may have one, and use nothing else of the table meanwhile.
pub(crate) struct Cursor<'a> {
    table: &'a Table,
    medium: &'a Medium,
    shard: Option<(usize, RwLockWriteGuard<'a, Shard>)>,
    /// Groups of row pages by their number, and their places.
    recent: [(u64, u32); RECENT_GROUPS],
}

impl Cursor<'_> {
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
