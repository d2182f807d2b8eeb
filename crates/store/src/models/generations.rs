//! The generations of the page cache and of the nodes: what is read on the device while a newer
//! version is made, written and let go of is not taken for the newest.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use block::VolumeId;
use format::page::{PageRef, ROWS_PER_PAGE, TableRoot};
use format::{Geometry, Keys, Place};
use shuttle::thread;

use super::disk::ModelDisk;
use super::schedule::explore;
use super::{BLOCK, POOL_BYTES, Pool, SEGMENT_BYTES, stamp};
use crate::medium::Medium;
use crate::memory::Memory;
use crate::table::{PagePlacer, Table};
use crate::tests::{MemoryDisk, assert_sound, read, write};
use crate::world::World;
use crate::{Durability, Store, StoreError, Tuning};

#[test]
fn a_page_is_never_an_old_version() {
    explore("pages of a table", 4000, run_table);
}

#[test]
fn nodes_and_pages_are_never_old_versions() {
    explore("metadata of a store", 600, run_store);
}

/// Rows that count up, in two pages below one directory.
const ROWS: [u64; 3] = [1, 2, ROWS_PER_PAGE + 1];
/// Checkpoints.
const CHECKPOINTS: u64 = 3;
/// Blocks for all versions: what was freed is soon used again.
const PLACES: u32 = 8;

/// A table over a disk, and nothing else of a store.
struct Model {
    medium: Medium,
    memory: Arc<Memory>,
    table: Table,
    /// What the rows say at least.
    counted: AtomicU64,
}

impl Model {
    fn new() -> Self {
        let geometry = Geometry::of_segments(SEGMENT_BYTES, POOL_BYTES).unwrap();
        let disk = ModelDisk::new(MemoryDisk::new(POOL_BYTES));
        let medium = Medium::new(disk, geometry, Keys::derive(&[1; 32]), Tuning::SMALL);
        // Everything that may leave does, whenever something else comes.
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

    /// As a checkpoint of a store does it. What it has freed can be written again behind it.
    fn checkpoint(&self, free: &mut VecDeque<u32>) {
        self.memory.begin_capture();
        let mut placer = Places { free, released: Vec::new() };
        let (_, images) = self.table.capture(&self.medium, &mut placer).unwrap();
        let released = placer.released;
        for image in images {
            let offset_bytes = self.medium.geometry().offset_bytes(image.reference.place);
            self.medium.disk.write(offset_bytes, &[image.page]).unwrap();
        }
        self.memory.end_capture();
        free.extend(released);
    }

    fn evict(&self) {
        (0..2).for_each(|_| self.memory.make_room(0));
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
                    let least = model.counted.load(Relaxed);
                    let number = model.number(row);
                    let most = model.counted.load(Relaxed) + 1;
                    assert!((least..=most).contains(&number), "{number}: {least} to {most}");
                    model.evict();
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

/// Blocks of the volume, far enough from each other to be in nodes of their own.
const BLOCKS: [u64; 3] = [0, 40, 100];
/// How often each is written.
const ROUNDS: u64 = 3;

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
    let written: [AtomicU64; BLOCKS.len()] = Default::default();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for (at, written) in BLOCKS.into_iter().zip(&written) {
                    let least = written.load(Relaxed);
                    let number = number_in(&store, id, at);
                    assert!(number >= least, "block {at}: {number} behind {least}");
                }
            });
        }
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                for (at, written) in BLOCKS.into_iter().zip(&written) {
                    write(&store, id, at * BLOCK, &stamp(round)).unwrap();
                    written.store(round, Relaxed);
                }
            }
        });
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                store.checkpoint().unwrap();
                evict(&store.world);
            }
        });
    });
    evict(&store.world);
    BLOCKS.into_iter().for_each(|at| assert_eq!(number_in(&store, id, at), ROUNDS));
    assert_sound(&store);
}

fn number_in(store: &Store, id: VolumeId, block: u64) -> u64 {
    let held = read(store, id, block * BLOCK, BLOCK);
    let number = u64::from_le_bytes(held[..8].try_into().unwrap());
    assert!(held == stamp(number), "block {block} is another's");
    number
}

/// Lets go of what may leave: the hand clears the bits first.
fn evict(world: &World) {
    world.memory.plans.want();
    (0..2).for_each(|_| world.memory.make_room(1 << 30));
    world.cache.clear();
}
