//! Open files, and their blocks.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use futures::lock::Mutex;

use super::descriptor::{Description, check_file};
use super::detached::{Detached, DeviceRange};
use super::error::DatastoreError;
use super::extent::{AllocateAs, BlockState, FileExtent, Placement, follows};
use super::layout::{BLOCK_BYTES, Pool};
use super::lock::Held;
use super::lock_record::Mode;
use super::map::Map;
use super::mount::{Closed, Core};
use super::table::Pointer;

/// An open file. Clones are the same opening; a file that is not closed stays locked until the
/// datastore is unmounted or the file opened again by the same host.
#[derive(Clone, Debug)]
pub struct File(Rc<Opening>);

#[derive(Debug)]
struct Opening {
    inner: Rc<Inner>,
    is_closed: Cell<bool>,
}

/// What all openings of a file in one host share.
pub(super) struct Inner {
    core: Rc<Core>,
    file: u32,
    generation: u64,
    pub(super) name: String,
    pub(super) mode: Mode,
    size_bytes: Cell<u64>,
    /// Changes of blocks take turns.
    map: Mutex<Map>,
    held: RefCell<Option<Held>>,
    /// Whether its description on disk is what is known here.
    is_sure: Cell<bool>,
    openings: Cell<u32>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Inner {
    pub(super) fn new(
        core: &Rc<Core>,
        file: u32,
        description: Description,
        map: Map,
        mode: Mode,
        held: Held,
    ) -> Self {
        Self {
            core: core.clone(),
            file,
            generation: description.generation,
            name: description.name,
            mode,
            size_bytes: Cell::new(description.size_bytes),
            map: Mutex::new(map),
            held: RefCell::new(Some(held)),
            is_sure: Cell::new(true),
            openings: Cell::new(0),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.held.borrow().is_some()
    }

    fn description(&self, size_bytes: u64) -> Description {
        let Self { generation, name, .. } = self;
        Description { is_used: true, generation: *generation, size_bytes, name: name.clone() }
    }

    /// Gives up the lock, if the file is no longer open, or in any case.
    pub(super) async fn close(&self, in_any_case: bool) -> Result<(), DatastoreError> {
        let _turn = self.core.descriptor_turns[self.file as usize].lock().await;
        if self.openings.get() > 0 && !in_any_case {
            // It was opened again while this waited.
            return Ok(());
        }
        // Changes of its blocks in progress end under the lock.
        let mut map = self.map.lock().await;
        let Some(held) = self.held.borrow_mut().take() else { return Ok(()) };
        let core = &self.core;
        core.open.borrow_mut().remove(&self.file);
        let place = core.layout.description(self.file);
        let description = self.description(self.size_bytes.get()).encode(self.file, place);
        let known = self.is_sure.get().then_some(&description[..]);
        if let Some(image) = core.give_up(&held, known).await? {
            let map = std::mem::replace(&mut *map, Map::new(self.file, self.generation));
            let closed = Closed { image, name: self.name.clone(), map };
            core.closed.borrow_mut().insert(self.file, closed);
        }
        Ok(())
    }
}

impl File {
    pub(super) fn again(inner: Rc<Inner>) -> Self {
        inner.openings.set(inner.openings.get() + 1);
        Self(Rc::new(Opening { inner, is_closed: Cell::new(false) }))
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.0.inner.name
    }

    /// Returns its size.
    pub fn size_bytes(&self) -> u64 {
        self.0.inner.size_bytes.get()
    }

    /// Returns the number of blocks for its size.
    pub fn size_blocks(&self) -> u64 {
        self.size_bytes().div_ceil(BLOCK_BYTES)
    }

    fn check_open(&self) -> Result<(), DatastoreError> {
        if self.0.is_closed.get() || !self.0.inner.is_open() {
            return Err(DatastoreError::NotOpen(self.name().to_owned()));
        }
        Ok(())
    }

    /// Called with the map locked, so that the file's lock stays held meanwhile.
    fn check_change(&self) -> Result<(), DatastoreError> {
        self.check_open()?;
        if self.0.inner.mode != Mode::Exclusive {
            return Err(DatastoreError::NotOpen(self.name().to_owned()));
        }
        Ok(())
    }

    fn check_range(&self, first_block: u64, count: u64) -> Result<Range<u32>, DatastoreError> {
        let size = self.size_blocks();
        let end = first_block.checked_add(count).filter(|end| *end <= size);
        match (u32::try_from(first_block), end.map(u32::try_from)) {
            (Ok(first), Some(Ok(end))) => Ok(first..end),
            _ => Err(DatastoreError::Argument(format!(
                "{count} blocks from {first_block} on are not within the {size} of {}",
                self.name()
            ))),
        }
    }

    fn extent_of(&self, block: u32, pointer: Pointer) -> FileExtent {
        let layout = &self.0.inner.core.layout;
        let state = match pointer {
            Pointer::Absent => BlockState::Absent,
            Pointer::Present(data) => BlockState::Present(layout.data(data)),
            Pointer::ToBeZeroed(data) => BlockState::ToBeZeroed(layout.data(data)),
        };
        FileExtent { first_block: u64::from(block), count: 1, state }
    }

    fn merged(&self, pointers: impl Iterator<Item = (u32, Pointer)>) -> Vec<FileExtent> {
        let mut extents: Vec<FileExtent> = Vec::new();
        for (block, pointer) in pointers {
            let extent = self.extent_of(block, pointer);
            match extents.last_mut() {
                Some(last) if follows(last, &extent) => last.count += 1,
                _ => extents.push(extent),
            }
        }
        extents
    }

    /// Returns how many blocks it has, to be zeroed or not.
    ///
    /// # Errors
    /// Those of the device; invalid content.
    pub async fn allocated_blocks(&self) -> Result<u64, DatastoreError> {
        let mut map = self.0.inner.map.lock().await;
        self.check_open()?;
        Ok(map.all(&self.0.inner.core).await?.0.len() as u64)
    }

    /// Returns the state of `count` blocks from `first_block` on; adjacent ones are merged.
    ///
    /// # Errors
    /// Beyond the file's size; those of the device.
    pub async fn extents(
        &self,
        first_block: u64,
        count: u64,
    ) -> Result<Vec<FileExtent>, DatastoreError> {
        let mut map = self.0.inner.map.lock().await;
        self.check_open()?;
        let blocks = self.check_range(first_block, count)?;
        let pointers = map.get(&self.0.inner.core, blocks.clone()).await?;
        Ok(self.merged(blocks.zip(pointers)))
    }

    /// Allocates missing blocks among `count` from `first_block` on; returns these, so that of
    /// several tasks only one has to zero each. Blocks are taken in their clusters, then added to
    /// the file: a host that dies in between leaves blocks that are taken and unreferenced.
    ///
    /// # Errors
    /// [`DatastoreError::Full`], and nothing is allocated; those of the locks and the device.
    pub async fn allocate(
        &self,
        first_block: u64,
        count: u64,
        allocate_as: AllocateAs,
        placement: Placement,
    ) -> Result<Vec<FileExtent>, DatastoreError> {
        self.allocate_all(&[(first_block, count)], allocate_as, placement).await
    }

    /// Does the same as [`File::allocate`] for several ranges (first block, count) at once, in
    /// order.
    ///
    /// # Errors
    /// As there.
    pub async fn allocate_all(
        &self,
        ranges: &[(u64, u64)],
        allocate_as: AllocateAs,
        placement: Placement,
    ) -> Result<Vec<FileExtent>, DatastoreError> {
        let mut map = self.0.inner.map.lock().await;
        self.check_change()?;
        let core = &self.0.inner.core;
        let mut absent: Vec<u32> = Vec::new();
        for (first_block, count) in ranges {
            let blocks = self.check_range(*first_block, *count)?;
            let held = blocks.clone().zip(map.get(core, blocks).await?);
            absent.extend(held.filter(|(_, to)| *to == Pointer::Absent).map(|(block, _)| block));
        }
        if absent.is_empty() {
            return Ok(Vec::new());
        }
        let lacking = map.missing(core, &absent).await?;
        let (taken, new_blocks) = self.take(absent.len() as u32, placement, lacking).await?;
        let pointer_to = |block: u32| match allocate_as {
            AllocateAs::Present => Pointer::Present(block),
            AllocateAs::ToBeZeroed => Pointer::ToBeZeroed(block),
        };
        let changes: Vec<(u32, Pointer)> =
            absent.into_iter().zip(taken.into_iter().map(pointer_to)).collect();
        // What is taken but could not be added to the file is leaked: it may be on disk.
        map.set(core, &changes, new_blocks).await?;
        Ok(self.merged(changes.into_iter()))
    }

    /// Takes data blocks and pointer blocks in parallel: neither is referred to yet.
    async fn take(
        &self,
        data: u32,
        placement: Placement,
        pointers: u32,
    ) -> Result<(Vec<u32>, Vec<u32>), DatastoreError> {
        let core = &self.0.inner.core;
        let take_data = async {
            match placement {
                Placement::Contiguous => core.take_contiguous(data).await,
                Placement::AsItComes => core.take_blocks(Pool::Data, data).await,
            }
        };
        match futures::join!(take_data, core.take_blocks(Pool::Pointer, pointers)) {
            (Ok(data), Ok(pointers)) => Ok((data, pointers)),
            (Ok(data), Err(error)) => {
                core.give_back(Pool::Data, data).await?;
                Err(error)
            }
            (Err(error), pointers) => {
                core.give_back(Pool::Pointer, pointers.unwrap_or_default()).await?;
                Err(error)
            }
        }
    }

    /// Marks blocks that were to be zeroed as valid on the device.
    ///
    /// # Errors
    /// Beyond the file's size; those of the device.
    pub async fn mark_present(&self, first_block: u64, count: u64) -> Result<(), DatastoreError> {
        self.mark_present_in(&[(first_block, count)]).await
    }

    /// Does the same for several ranges (first block, count) at once, in order: one write for each
    /// affected pointer block.
    ///
    /// # Errors
    /// As [`File::mark_present`], and nothing is changed; also if ranges overlap or are not in
    /// order.
    pub async fn mark_present_in(&self, ranges: &[(u64, u64)]) -> Result<(), DatastoreError> {
        let mut map = self.0.inner.map.lock().await;
        self.check_change()?;
        let core = &self.0.inner.core;
        let (mut changes, mut end) = (Vec::new(), 0);
        for (first_block, count) in ranges {
            let blocks = self.check_range(*first_block, *count)?;
            if blocks.start < end {
                let text = format!("blocks from {first_block} on are out of order");
                return Err(DatastoreError::Argument(text));
            }
            end = blocks.end;
            let pointers = map.get(core, blocks.clone()).await?;
            changes.extend(blocks.zip(pointers).filter_map(|(block, pointer)| match pointer {
                Pointer::ToBeZeroed(data) => Some((block, Pointer::Present(data))),
                _ => None,
            }));
        }
        map.set(core, &changes, Vec::new()).await
    }

    /// Takes blocks from the file without freeing them yet, for callers that unmap them.
    ///
    /// Order: first they are no longer referred to, then no longer taken.
    ///
    /// # Errors
    /// Beyond the file's size; those of the device.
    pub async fn detach(&self, first_block: u64, count: u64) -> Result<Detached, DatastoreError> {
        let mut map = self.0.inner.map.lock().await;
        self.check_change()?;
        let blocks = self.check_range(first_block, count)?;
        self.detach_from(&mut map, blocks).await
    }

    async fn detach_from(
        &self,
        map: &mut Map,
        blocks: Range<u32>,
    ) -> Result<Detached, DatastoreError> {
        let core = &self.0.inner.core;
        let pointers = map.get(core, blocks.clone()).await?;
        let had: Vec<(u32, u32)> = blocks
            .zip(pointers)
            .filter_map(|(block, pointer)| Some((block, pointer.block()?)))
            .collect();
        let changes: Vec<(u32, Pointer)> =
            had.iter().map(|(block, _)| (*block, Pointer::Absent)).collect();
        map.set(core, &changes, Vec::new()).await?;
        Ok(Detached::new(core, had.into_iter().map(|(_, data)| data).collect()))
    }

    /// Frees blocks; returns their ranges. They may be another host's by now, so callers that unmap
    /// use [`File::detach`]; or this host does it ([`Detached::let_go`]).
    ///
    /// # Errors
    /// As [`File::detach`].
    pub async fn release(
        &self,
        first_block: u64,
        count: u64,
    ) -> Result<Vec<DeviceRange>, DatastoreError> {
        let detached = self.detach(first_block, count).await?;
        let ranges = detached.ranges();
        detached.let_go().await?;
        Ok(ranges)
    }

    /// Extends it without allocating, or shortens it: blocks beyond the end are freed.
    ///
    /// # Errors
    /// Too large for this datastore; those of the locks and the device.
    pub async fn resize(&self, size_bytes: u64) -> Result<(), DatastoreError> {
        let mut map = self.0.inner.map.lock().await;
        self.check_change()?;
        let inner = &*self.0.inner;
        let core = &inner.core;
        check_file(&inner.name, size_bytes, core.layout.file_blocks_max())?;
        // Blocks beyond the end of a file are damage, so they are removed first.
        let blocks = self.check_range(0, self.size_blocks())?;
        let kept = size_bytes.div_ceil(BLOCK_BYTES).min(u64::from(blocks.end)) as u32;
        let detached = self.detach_from(&mut map, kept..blocks.end).await?;
        inner.is_sure.set(false);
        core.write_description(inner.file, &inner.description(size_bytes)).await?;
        inner.size_bytes.set(size_bytes);
        inner.is_sure.set(true);
        detached.let_go().await
    }

    /// Closes this opening; with the last one of this host its lock is given back.
    ///
    /// # Errors
    /// Those of the lock and the device; it is closed nevertheless.
    pub async fn close(&self) -> Result<(), DatastoreError> {
        if self.0.is_closed.replace(true) {
            return Ok(());
        }
        let inner = &self.0.inner;
        inner.openings.set(inner.openings.get().saturating_sub(1));
        if inner.openings.get() == 0 { inner.close(false).await } else { Ok(()) }
    }
}
