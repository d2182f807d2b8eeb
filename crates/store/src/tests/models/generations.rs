//! The generations of the page cache and of the nodes: a version read from the device while a newer
//! one is made, written and evicted does not count as the newest.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use block::VolumeId;
use format::page::{PageRef, ROWS_PER_PAGE, TableRoot};
use format::{MapEntry, Place};
use shuttle::thread;

use super::disk::ModelDisk;
use super::schedule::explore;
use super::{BLOCK, POOL_BYTES, Pool, SEGMENT_BYTES, stamp};
use crate::checkpoint::captures::PagePlacer;
use crate::chunks::medium::Medium;
use crate::chunks::memory::Memory;
use crate::chunks::table::Table;
use crate::map::walk::entry_of;
use crate::tests::{MemoryDisk, assert_sound, read, write};
use crate::{Durability, Store, StoreError, Tuning};

#[test]
fn a_page_is_never_an_old_version() {
    explore("pages of a table", 1000, run_table);
}

#[test]
fn nodes_and_pages_are_never_old_versions() {
    explore("metadata of a store", 1500, run_store);
}

/// Rows that count up, in two pages below one directory.
const ROWS: [u64; 3] = [1, 2, ROWS_PER_PAGE + 1];
/// Checkpoints.
const CHECKPOINTS: u64 = 3;
/// Blocks for all versions: freed ones are soon reused.
const PLACES: u32 = 8;

/// A table over a disk, without the rest of a store.
struct Model {
    medium: Medium,
    memory: Arc<Memory>,
    table: Table,
    /// The least value of the rows.
    counted: AtomicU64,
}

impl Model {
    fn new() -> Self {
        let below = MemoryDisk::new(POOL_BYTES);
        crate::Store::create_with_segments(&*below, &[1; 64], SEGMENT_BYTES).unwrap();
        let disk = segments::Shared::from(ModelDisk::new(below));
        let superblock = disk.read_root().unwrap();
        disk.lay_out(superblock.geometry);
        let medium = Medium::new(disk, &superblock, Tuning::SMALL);
        // Everything evictable is evicted whenever something else comes.
        let memory = Memory::new(0);
        let table = Table::new(TableRoot::default(), &memory);
        Self { medium, memory, table, counted: AtomicU64::new(0) }
    }

    fn number(&self, row: u64) -> u64 {
        let number = |raw: &[u8]| u64::from_le_bytes(raw[..8].try_into().unwrap());
        self.table.get(&self.medium, row, number).unwrap()
    }

    fn count_up(&self) {
        let number = self.counted.load(Relaxed) + 1;
        for row in ROWS {
            let put = |raw: &mut [u8]| raw[..8].copy_from_slice(&number.to_le_bytes());
            self.table.update(&self.medium, row, put).unwrap();
        }
        self.counted.store(number, Relaxed);
    }

    /// Writes a checkpoint as a store does. What it frees can be written again after it.
    fn checkpoint(&self, free: &mut VecDeque<u32>) {
        self.memory.begin_capture();
        let mut placer = Places { free, released: Vec::new() };
        let (_, images) = self.table.capture(&self.medium, &mut placer).unwrap();
        let released = placer.released;
        for image in images {
            self.medium.disk.append(image.reference.place, &[image.page]).unwrap();
        }
        self.memory.end_capture();
        free.extend(released);
    }

    fn evict(&self) {
        self.memory.make_room(0);
    }
}

/// Blocks of segment 1.
struct Places<'a> {
    free: &'a mut VecDeque<u32>,
    released: Vec<u32>,
}

impl PagePlacer for Places<'_> {
    fn place_page(&mut self, old: PageRef) -> Result<Place, StoreError> {
        self.release_page(old)?;
        let offset_units = self.free.pop_front().expect("there are enough for two versions");
        Ok(Place { segment: 1, offset_units })
    }

    fn release_page(&mut self, old: PageRef) -> Result<(), StoreError> {
        self.released.extend((!old.is_none()).then_some(old.place.offset_units));
        Ok(())
    }
}

fn run_table() {
    let model = Model::new();
    let units = format::geometry::UNITS_PER_BLOCK;
    let mut free: VecDeque<u32> = (0..PLACES).map(|block| block * units).collect();
    model.count_up();
    model.checkpoint(&mut free);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for row in ROWS {
                    model.evict();
                    // The second look finds what the first one cached.
                    for _ in 0..2 {
                        let least = model.counted.load(Relaxed);
                        let number = model.number(row);
                        let most = model.counted.load(Relaxed) + 1;
                        assert!((least..=most).contains(&number), "{number}: {least} to {most}");
                    }
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..CHECKPOINTS {
                model.count_up();
                model.checkpoint(&mut free);
                model.evict();
            }
        });
    });
    ROWS.into_iter().for_each(|row| assert_eq!(model.number(row), CHECKPOINTS + 1));
}

/// Blocks of the volume, far enough apart to be in different nodes.
const BLOCKS: [u64; 2] = [0, 100];
/// How often each is written.
const ROUNDS: u64 = 2;

fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| {
        Pool::new(|store, id| {
            BLOCKS.into_iter().for_each(|at| write(store, id, at * BLOCK, &stamp(0)).unwrap());
        })
    })
}

fn run_store() {
    let (_disk, store, id) = pool().open(Durability::Commit);
    let written = BLOCKS.map(|at| AtomicU64::new(chunk_at(&store, id, at)));
    evict(&store);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for (at, written) in BLOCKS.into_iter().zip(&written) {
                    evict(&store);
                    // The second look finds what the first one cached.
                    for _ in 0..2 {
                        let least = written.load(Relaxed);
                        let chunk = chunk_at(&store, id, at);
                        assert!(chunk >= least, "block {at}: chunk {chunk} before {least}");
                    }
                }
            });
        }
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                for (at, written) in BLOCKS.into_iter().zip(&written) {
                    write(&store, id, at * BLOCK, &stamp(round)).unwrap();
                    written.store(chunk_at(&store, id, at), Relaxed);
                }
                store.checkpoint().unwrap();
                evict(&store);
            }
        });
    });
    let chunks = written.map(|written| written.load(Relaxed));
    assert_eq!(BLOCKS.map(|at| chunk_at(&store, id, at)), chunks);
    evict(&store);
    for at in BLOCKS {
        assert!(read(&store, id, at * BLOCK, BLOCK) == stamp(ROUNDS), "block {at}");
    }
    assert_sound(&store);
}

/// Returns what the map says of a block: later chunks have higher numbers. Looks up as `preload`
/// does ahead of a change, without the lock of the volume.
fn chunk_at(store: &Store, id: VolumeId, block: u64) -> u64 {
    let map = store.world.map_of(id).unwrap();
    match entry_of((&store.world).into(), &map, block) {
        Ok(MapEntry::Chunk(chunk)) => chunk.0,
        other => panic!("block {block}: {other:?}"),
    }
}

/// Evicts all that can be evicted: the clock hand goes round twice.
fn evict(store: &Store) {
    store.world.memory.plans.want();
    store.writer.lock().turn_plans(&store.world);
    store.world.memory.make_room(1 << 30);
    store.world.cache.clear();
}
