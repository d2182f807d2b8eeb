//! Readers against reclaim: segments are emptied, freed and rewritten during reads. A reader that
//! has looked up a location reads there what was there at that time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use block::VolumeId;
use shuttle::thread;

use super::schedule::explore;
use super::{BLOCK, Pool, stamp};
use crate::tests::{assert_sound, read, write};
use crate::{Durability, Store};

/// Segments that are mostly dead; each was written by one write, in blocks.
const GROUPS: u64 = 4;
const GROUP: u64 = 8;
/// Blocks at the start of each group that are not overwritten: they stay live, and move.
const KEPT: u64 = 2;
/// Where the writes go that overwrite the freed segments, and how many groups each time: each takes
/// most of a segment.
const OTHERS: u64 = GROUPS * GROUP;
const PARTS: u64 = 3;

/// In how many orders the old location of a moved block was rewritten.
static WRITTEN_AGAIN: AtomicU64 = AtomicU64::new(0);

#[test]
fn a_reader_never_sees_new_content_of_a_reused_location() {
    explore("readers and reclaim", 600, run);
    assert!(WRITTEN_AGAIN.load(Relaxed) > 0, "no segment was written again");
}

fn blocks(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    numbers.flat_map(stamp).collect()
}

fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| {
        Pool::new(|store, id| {
            for group in 0..GROUPS {
                let first = group * GROUP;
                write(store, id, first * BLOCK, &blocks(first..first + GROUP)).unwrap();
            }
            for group in 0..GROUPS {
                let first = group * GROUP + KEPT;
                let others = (first..first + GROUP - KEPT).map(|number| 1000 + number);
                write(store, id, first * BLOCK, &blocks(others)).unwrap();
            }
        })
    })
}

fn run() {
    let (disk, store, id) = pool().open(Durability::Commit);
    let place = store.world.chunk(format::ChunkId(1)).unwrap().place;
    let place = store.world.medium.geometry().offset_bytes(place) / 4096;
    let before = disk.block(place);
    thread::scope(|scope| {
        for reader in 0..2 {
            let store = &store;
            scope.spawn(move || read_kept(store, id, reader));
        }
        scope.spawn(|| {
            for round in 0..GROUPS {
                store.reclaim_segment().unwrap();
                // Frees the emptied segments, however few they are.
                store.checkpoint().unwrap();
                for part in 0..PARTS {
                    let first = 2000 + (round * PARTS + part) * GROUP;
                    let at = OTHERS + part % 2 * GROUP;
                    write(&store, id, at * BLOCK, &blocks(first..first + GROUP)).unwrap();
                }
            }
        });
    });
    WRITTEN_AGAIN.fetch_add(u64::from(disk.block(place)[..] != before[..]), Relaxed);
    read_kept(&store, id, 0);
    assert_sound(&store);
}

/// Reads the blocks that are not overwritten, from the device, from either end.
fn read_kept(store: &Store, id: VolumeId, reader: u64) {
    for at in 0..GROUPS {
        let group = if reader == 0 { at } else { GROUPS - 1 - at };
        for block in group * GROUP..group * GROUP + KEPT {
            store.world.cache.clear();
            assert!(read(store, id, block * BLOCK, BLOCK) == stamp(block), "block {block}");
        }
    }
}
