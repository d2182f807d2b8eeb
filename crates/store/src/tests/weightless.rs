//! Groups that compress to fewer units than they have blocks: each of their blocks must count at
//! least one unit.

use super::*;
use crate::chunks::pack::UNPADDED;

/// Blocks whose bytes repeat every eight: eight of them take less than a unit each.
fn repeating(blocks: u64, seed: u64) -> Vec<u8> {
    let word = |block: u64| ((seed << 32) | ((block + 1) * 0x0101)).to_le_bytes();
    (0..blocks).flat_map(|block| word(block).repeat(512)).collect()
}

fn small() -> OpenOptions {
    OpenOptions { tuning: crate::Tuning::SMALL, memory_bytes: 0, ..OpenOptions::default() }
}

/// When all but the last block of the group is freed.
#[derive(Clone, Copy)]
enum Goes {
    /// Recovery finds the segment without live units.
    BeforeOpening,
    /// A checkpoint does.
    AfterOpening,
}

/// The last block of a group stays, and the rest of its segment is freed; then the log laps the
/// pool.
fn the_rest_of_a_group_outlives_its_segment(unpadded: bool, goes: Goes) {
    let disk = MemoryDisk::new((16 << 20) + (40 << 16));
    Store::create_with_segments(&*disk, &[7; 64], 64 << 10).unwrap();
    let store = Store::open(disk.clone(), small()).unwrap();
    let id = volume(&store, MIB);
    UNPADDED.set(unpadded);
    write(&store, id, 0, &repeating(8, 1)).unwrap();
    UNPADDED.set(false);
    // Nothing else may live in the segment, so nothing replaces it.
    let ranges = vec![SectorRange::new(0, 56)];
    let let_go = |store: &Store| {
        store.execute(VolumeRequest::Unmap { volume: id, ranges: ranges.clone() }).unwrap()
    };
    if let Goes::BeforeOpening = goes {
        let_go(&store);
    }
    drop(store);
    let store = Store::open(disk, small()).unwrap();
    if let Goes::AfterOpening = goes {
        let_go(&store);
    }
    for turn in 0..200 {
        write(&store, id, 512, &distinct(64, 100 + turn)).unwrap();
        if turn % 8 == 0 {
            store.checkpoint().unwrap();
        }
        while store.maintain().unwrap() == crate::Next::AtOnce {}
    }
    let kept = repeating(8, 1);
    assert!(read(&store, id, 56, 8) == kept[7 * 4096..], "the last block of the group is lost");
    assert_sound(&store);
}

#[test]
fn a_block_of_a_tiny_group_keeps_its_segment() {
    the_rest_of_a_group_outlives_its_segment(false, Goes::BeforeOpening);
}

#[test]
fn a_block_without_units_in_an_older_pool_keeps_its_segment() {
    the_rest_of_a_group_outlives_its_segment(true, Goes::BeforeOpening);
    the_rest_of_a_group_outlives_its_segment(true, Goes::AfterOpening);
}
