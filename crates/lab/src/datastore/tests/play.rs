//! Hosts that do anything to the files of a datastore, and a model of the expected state.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use futures::lock::Mutex;

use super::memory::Memory;
use crate::datastore::{
    AllocateAs, BLOCK_BYTES, BlockState, Datastore, DatastoreError, DeviceRange, File, Mode,
    Placement,
};
use crate::random::Random;

pub const NAMES: u64 = 6;
const BLOCKS_MAX: u64 = 14;

/// The expected state of a file: its size in blocks, and which it has, present or not.
#[derive(Clone, Debug, Default)]
struct Entry {
    size: u64,
    blocks: BTreeMap<u64, bool>,
}

/// The expected state on disk. A name in use when a host died is in an unknown state until it is
/// examined.
#[derive(Default)]
pub struct Model {
    files: RefCell<BTreeMap<String, Option<Entry>>>,
    /// Creating and deleting a name is serialised, so that the last operation is known.
    names: Vec<Mutex<()>>,
}

impl Model {
    pub fn new() -> Rc<Self> {
        let names = (0..NAMES).map(|_| Mutex::new(())).collect();
        Rc::new(Self { names, ..Self::default() })
    }

    fn set(&self, name: &str, entry: Option<Entry>) {
        self.files.borrow_mut().insert(name.to_owned(), entry);
    }

    /// Returns the number of blocks that files have; exact only if every name's state is known.
    fn allocated(&self) -> u64 {
        self.files.borrow().values().flatten().map(|entry| entry.blocks.len() as u64).sum()
    }

    /// Compares the state with the model, when no host is at work.
    pub async fn compare(&self, store: &Datastore, medium: &Memory, has_leaks: bool) {
        let list = store.list().await.unwrap();
        let known = self.files.borrow().clone();
        for (name, entry) in known {
            let listed = list.iter().find(|file| file.name == name);
            let Some(Entry { size, .. }) = entry else { continue };
            assert_eq!(listed.map(|file| file.size_bytes), Some(size * BLOCK_BYTES), "{name}");
        }
        for file in &list {
            assert!(self.files.borrow().contains_key(&file.name), "{}", file.name);
            let file = store.open(&file.name, Mode::Exclusive).await.unwrap();
            self.check(&file, medium).await.unwrap();
            file.close().await.unwrap();
        }
        let sum = store.free_blocks().await.unwrap() + self.allocated();
        assert!(sum <= store.capacity_blocks(), "blocks of files are free");
        assert!(has_leaks || sum == store.capacity_blocks(), "blocks are lost");
    }

    /// Compares a file that this host has for itself; one in no known state becomes known.
    async fn check(&self, file: &File, medium: &Memory) -> Result<(), DatastoreError> {
        let known = self.files.borrow().get(file.name()).cloned().flatten();
        let mut found = Entry { size: file.size_blocks(), blocks: BTreeMap::new() };
        for extent in file.extents(0, found.size).await? {
            let (at, present) = match extent.state {
                BlockState::Absent => continue,
                BlockState::Present(at) => (at, true),
                BlockState::ToBeZeroed(at) => (at, false),
            };
            for index in 0..extent.count {
                let (block, at) = (extent.first_block + index, at + index * BLOCK_BYTES);
                found.blocks.insert(block, present);
                let tag = tag(file.name(), block);
                if known.is_some() && present {
                    assert_eq!(medium.guest_read(at).await?, tag, "{} {block}", file.name());
                } else {
                    medium.guest_write(at, &tag).await?;
                }
            }
        }
        assert_eq!(file.allocated_blocks().await?, found.blocks.len() as u64);
        if let Some(known) = &known {
            assert_eq!((known.size, &known.blocks), (found.size, &found.blocks), "{}", file.name());
        }
        self.set(file.name(), Some(found));
        Ok(())
    }
}

fn tag(name: &str, block: u64) -> Vec<u8> {
    let mut tag = format!("{name} {block}").into_bytes();
    tag.resize(512, b'.');
    tag
}

/// A player: some operations of one host.
pub struct Player {
    pub store: Datastore,
    pub medium: Memory,
    pub model: Rc<Model>,
    pub random: Random,
}

/// Returns whether an operation may be refused like this while others are at work.
fn is_refusal(error: &DatastoreError) -> bool {
    matches!(
        error,
        DatastoreError::Locked { .. }
            | DatastoreError::InUse(_)
            | DatastoreError::NotFound(_)
            | DatastoreError::Exists(_)
            | DatastoreError::Full
    )
}

impl Player {
    /// Runs operations until one fails, as they do when the host has died.
    pub async fn play(&mut self, count: u32) -> Result<(), DatastoreError> {
        for _ in 0..count {
            match self.step().await {
                Err(error) if !is_refusal(&error) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<(), DatastoreError> {
        let number = self.random.below(NAMES);
        let name = format!("disk {number}");
        match self.random.below(10) {
            0..3 => self.create(number as usize, &name).await,
            3 => self.delete(number as usize, &name).await,
            4 => self.read_together(&name).await,
            _ => {
                let file = self.store.open(&name, Mode::Exclusive).await?;
                let end = self.change(&file).await;
                let closed = file.close().await;
                end.and(closed)
            }
        }
    }

    async fn create(&mut self, number: usize, name: &str) -> Result<(), DatastoreError> {
        let size = self.random.below(BLOCKS_MAX);
        let model = self.model.clone();
        let _turn = model.names[number].lock().await;
        let was_known = model.files.borrow().get(name).cloned();
        match self.store.create(name, size * BLOCK_BYTES).await {
            Ok(file) => {
                assert!(!matches!(was_known, Some(Some(_))), "{name} existed already");
                model.set(name, Some(Entry { size, blocks: BTreeMap::new() }));
                let end = self.change(&file).await;
                end.and(file.close().await)
            }
            Err(error) => {
                if !is_refusal(&error) {
                    model.set(name, None);
                }
                assert!(
                    !matches!(error, DatastoreError::Exists(_)) || was_known.is_some(),
                    "{name} was not there"
                );
                Err(error)
            }
        }
    }

    async fn delete(&mut self, number: usize, name: &str) -> Result<(), DatastoreError> {
        let model = self.model.clone();
        let _turn = model.names[number].lock().await;
        let blocks = model.files.borrow().get(name).cloned();
        match self.store.delete(name).await {
            Ok(ranges) => {
                assert!(blocks.is_some(), "{name} was not there");
                let freed: u64 = ranges.iter().map(|range: &DeviceRange| range.bytes).sum();
                let known = model.files.borrow_mut().remove(name).flatten();
                if let Some(entry) = known {
                    assert_eq!(freed, entry.blocks.len() as u64 * BLOCK_BYTES);
                }
                Ok(())
            }
            Err(error) => {
                if !is_refusal(&error) {
                    model.set(name, None);
                }
                Err(error)
            }
        }
    }

    /// Several tasks of several hosts may have it open like this.
    async fn read_together(&mut self, name: &str) -> Result<(), DatastoreError> {
        let one = self.store.open(name, Mode::Shared).await?;
        let two = self.store.open(name, Mode::Shared).await?;
        let extents = one.extents(0, one.size_blocks()).await?;
        assert!(one.resize(0).await.is_err() && one.allocate_one().await.is_err());
        one.close().await?;
        assert!(one.extents(0, 0).await.is_err());
        assert_eq!(two.extents(0, two.size_blocks()).await?, extents);
        two.close().await
    }

    async fn change(&mut self, file: &File) -> Result<(), DatastoreError> {
        self.model.check(file, &self.medium).await?;
        let name = file.name().to_owned();
        for _ in 0..self.random.below(5) {
            let before = self.model.files.borrow().get(&name).cloned().flatten().unwrap();
            let mut entry = before.clone();
            self.model.set(&name, None);
            match self.change_once(file, &mut entry).await {
                Ok(()) => self.model.set(&name, Some(entry)),
                Err(error) => {
                    // A refused operation has changed nothing.
                    self.model.set(&name, is_refusal(&error).then_some(before));
                    return Err(error);
                }
            }
        }
        self.model.check(file, &self.medium).await
    }

    async fn change_once(&mut self, file: &File, entry: &mut Entry) -> Result<(), DatastoreError> {
        let first = self.random.below(entry.size.max(1));
        let count = self.random.below(entry.size - first.min(entry.size) + 1);
        let first = first.min(entry.size);
        match self.random.below(8) {
            0..4 => {
                let present = self.random.percent(50);
                let how = if present { AllocateAs::Present } else { AllocateAs::ToBeZeroed };
                let contiguous = self.random.percent(50);
                let place = if contiguous { Placement::Contiguous } else { Placement::AsItComes };
                self.allocate(file, entry, first..first + count, how, place).await
            }
            4 => self.mark(file, entry, first..first + count).await,
            5 | 6 => {
                let ranges = file.release(first, count).await?;
                let freed: u64 = ranges.iter().map(|range| range.bytes).sum();
                let had = entry.blocks.len();
                entry.blocks.retain(|block, _| !(first..first + count).contains(block));
                assert_eq!(freed, (had - entry.blocks.len()) as u64 * BLOCK_BYTES);
                Ok(())
            }
            _ => {
                let size = self.random.below(BLOCKS_MAX);
                file.resize(size * BLOCK_BYTES).await?;
                entry.size = size;
                entry.blocks.retain(|block, _| *block < size);
                Ok(())
            }
        }
    }

    /// From two tasks at once: each block goes to only one of them.
    async fn allocate(
        &mut self,
        file: &File,
        entry: &mut Entry,
        blocks: std::ops::Range<u64>,
        how: AllocateAs,
        place: Placement,
    ) -> Result<(), DatastoreError> {
        let count = blocks.end - blocks.start;
        let one = file.allocate(blocks.start, count, how, place);
        let two = file.allocate(blocks.start, count, how, place);
        let (one, two) = futures::future::join(one, two).await;
        let new = match (one, two) {
            (Ok(one), Ok(two)) => [one, two].concat(),
            // Something became free in between.
            (Err(DatastoreError::Full), Ok(new)) => new,
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let absent = blocks.clone().filter(|block| !entry.blocks.contains_key(block)).count();
        assert_eq!(new.iter().map(|extent| extent.count).sum::<u64>(), absent as u64);
        for extent in new {
            for index in 0..extent.count {
                let block = extent.first_block + index;
                assert!(blocks.contains(&block));
                assert!(entry.blocks.insert(block, how == AllocateAs::Present).is_none());
                if let BlockState::Present(at) = extent.state {
                    let tag = tag(file.name(), block);
                    self.medium.guest_write(at + index * BLOCK_BYTES, &tag).await?;
                }
            }
        }
        Ok(())
    }

    async fn mark(
        &mut self,
        file: &File,
        entry: &mut Entry,
        blocks: std::ops::Range<u64>,
    ) -> Result<(), DatastoreError> {
        file.mark_present(blocks.start, blocks.end - blocks.start).await?;
        for (block, present) in entry.blocks.range_mut(blocks.clone()) {
            if !std::mem::replace(present, true) {
                let extents = file.extents(*block, 1).await?;
                let BlockState::Present(at) = extents[0].state else { panic!("{extents:?}") };
                self.medium.guest_write(at, &tag(file.name(), *block)).await?;
            }
        }
        Ok(())
    }
}

impl File {
    async fn allocate_one(&self) -> Result<(), DatastoreError> {
        self.allocate(0, 0, AllocateAs::Present, Placement::AsItComes).await.map(drop)
    }
}
