//! Data that one device holds differently from what was written.

use super::*;
use crate::{Finding, Next, Repair, What};

/// A pool with some blocks that are stored uncompressed; also returns the data.
fn of_blocks(count: usize, blocks: u64) -> (Pool, VolumeId, Vec<u8>) {
    let pool = make(count);
    let id = volume(&pool.store, MIB);
    let data = distinct(blocks * 8, 1);
    write(&pool.store, id, 0, &data).unwrap();
    pool.store.checkpoint().unwrap();
    (pool.reopened(), id, data)
}

#[test]
fn a_chunk_that_is_wrong_on_one_device_is_read_and_repaired() {
    for is_first in [false, true] {
        let (pool, id, data) = of_blocks(2, 4);
        let (chunk, row) = pool.chunks()[2];
        let first = pool.first(row.place);
        pool.spoil(if is_first { first } else { 1 - first }, row.place, 100);
        assert!(!pool.is_alike(row.place));
        assert!(read(&pool.store, id, 0, 32) == data);
        if !is_first {
            // It was never read there.
            assert_eq!(pool.store.mended_copies(), 0);
            continue;
        }
        assert!(pool.is_alike(row.place));
        assert_eq!((pool.store.mended_copies(), pool.mended(first)), (1, 1));
        // It is on the list.
        assert!(pool.store.maintenance_due());
        while pool.store.maintain().unwrap() != Next::Nothing {}
        let is_it = |finding: &Finding| finding.what == What::Chunk(chunk.0);
        let findings = pool.store.damage().findings;
        assert_eq!(findings.iter().find(|found| is_it(found)).unwrap().repair, Repair::Done);
        assert!(!pool.store.maintenance_due());
        assert_sound(&pool.store);
        assert_eq!(pool.store.mended_copies(), 1);
    }
}

#[test]
fn a_block_that_one_device_fails_to_read_is_rewritten() {
    let (pool, id, data) = of_blocks(2, 4);
    let place = pool.chunks()[1].1.place;
    let (block, first) = (pool.at(place) / 4096, pool.first(place));
    pool.disks[first].overwrite(block, Frame::zeros());
    pool.disks[first].fail_reads_of(block);
    assert!(read(&pool.store, id, 0, 32) == data);
    assert_eq!(pool.mended(first), 0, "the other device was read, and is right");
    pool.scrub();
    pool.disks[first].fail_reads_of(u64::MAX);
    assert!(pool.is_alike(place));
    assert_eq!(pool.mended(first), 1);
}

/// Groups of several blocks each, packed one after the other.
fn of_groups() -> (Pool, VolumeId, Vec<u8>, Vec<(ChunkId, ChunkRow)>) {
    let pool = make(2);
    let id = volume(&pool.store, MIB);
    let data = prose(64 * 8, 1);
    write(&pool.store, id, 0, &data).unwrap();
    pool.store.checkpoint().unwrap();
    let pool = pool.reopened();
    let chunks = pool.chunks();
    assert!(chunks.iter().all(|(_, row)| row.codec != Codec::Raw));
    (pool, id, data, chunks)
}

#[test]
fn neighbors_in_one_block_may_be_wrong_on_different_devices() {
    let (pool, id, data, chunks) = of_groups();
    let block = |place: Place| place.block_start();
    let (first, next) = chunks
        .iter()
        .zip(&chunks[1..])
        .map(|((_, first), (_, next))| (*first, *next))
        .find(|(first, next)| {
            let end = first.place.offset_units + u32::from(first.stored_units) - 1;
            first.place != next.place
                && block(Place { offset_units: end, ..first.place }) == block(next.place)
        })
        .expect("two groups share a block");
    // The last byte in use of the first group, and the first one of the other.
    let length = {
        let at = pool.at(first.place);
        let held = pool.disks[0].block(at / 4096);
        let at = (at % 4096) as usize;
        u64::from(u16::from_le_bytes([held[at], held[at + 1]])) + 2
    };
    pool.spoil(0, first.place, length - 1);
    pool.spoil(1, next.place, 2);
    assert!(read(&pool.store, id, 0, 64 * 8) == data);
    pool.scrub();
    assert!(pool.is_alike(next.place));
    assert_eq!((pool.mended(0), pool.mended(1)), (1, 1));
    for disk in 0..2 {
        let pool = open(vec![pool.disks[disk].copy()]);
        assert!(read(&pool.store, id, 0, 64 * 8) == data);
        assert_sound(&pool.store);
    }
}

/// Each device has a different block of one group wrong.
#[test]
fn blocks_of_one_group_may_be_wrong_on_different_devices() {
    let pool = make(2);
    let id = volume(&pool.store, MIB);
    // Each block is half noise, so that a flipped byte affects no other block.
    let data: Vec<u8> =
        (0..8).flat_map(|seed| [distinct(4, seed + 1), vec![seed as u8; 2048]].concat()).collect();
    write(&pool.store, id, 0, &data).unwrap();
    pool.store.checkpoint().unwrap();
    let pool = pool.reopened();
    let group: Vec<_> = pool.chunks();
    let (_, row) = group[0];
    assert!(group.len() == 8 && group.iter().all(|(_, other)| other.place == row.place));
    let bytes = u64::from(row.stored_units) * 64;
    pool.spoil(0, row.place, bytes / 16);
    pool.spoil(1, row.place, bytes / 16 * 13);
    assert!(read(&pool.store, id, 0, 64) == data, "each block is right somewhere");
    pool.scrub();
    assert_eq!((pool.mended(0), pool.mended(1)), (1, 1));
    for disk in 0..2 {
        let pool = open(vec![pool.disks[disk].copy()]);
        assert!(read(&pool.store, id, 0, 64) == data);
    }
}

#[test]
fn a_chunk_that_is_wrong_on_all_devices_is_an_error() {
    let (pool, id, data) = of_blocks(3, 4);
    let (chunk, row) = pool.chunks()[2];
    (0..3).for_each(|disk| pool.spoil(disk, row.place, 100 + disk as u64));
    let lost = try_read(&pool.store, id, 0, 32);
    assert_eq!(lost, Err(VolumeError::Medium { sector: Sector(16) }));
    assert!(read(&pool.store, id, 0, 16) == data[..8192]);
    let findings = pool.scrub();
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].what, findings[0].repair), (What::Chunk(chunk.0), Repair::Impossible));
    assert_eq!(pool.store.mended_copies(), 0);
}

#[test]
fn scrubbing_repairs_errors_in_any_copy() {
    let (pool, id, data) = of_blocks(3, 64);
    let chunks = pool.chunks();
    pool.scrub();
    let before = pool.store.scrub_status();
    for disk in 0..3 {
        (0..3).for_each(|at| pool.spoil(disk, chunks[disk * 9 + at].1.place, 7));
    }
    let findings = pool.scrub();
    assert_eq!(findings.len(), 9);
    assert!(findings.iter().all(|finding| finding.repair == Repair::Done));
    let status = pool.store.scrub_status();
    assert_eq!((status.repairs - before.repairs, status.damaged), (9, 0));
    assert_eq!(pool.store.mended_copies(), 9);
    assert!(chunks.iter().all(|(_, row)| pool.is_alike(row.place)));
    assert_eq!(pool.scrub(), []);
    assert!(read(&pool.store, id, 0, 512) == data);
}

/// A device that is out has nothing right, and nothing is written to it.
#[test]
fn scrubbing_skips_a_device_that_is_out() {
    let (pool, ..) = of_blocks(2, 8);
    let place = pool.chunks()[3].1.place;
    pool.spoil(1, place, 9);
    pool.mirrors.take_out(1, "a test").unwrap();
    assert_eq!(pool.scrub(), []);
    assert_eq!(pool.mended(1), 0);
}

/// Reclaim moves what it can read from any copy.
#[test]
fn reclaim_moves_chunks_that_are_wrong_on_one_device() {
    let (pool, id, data) = of_blocks(2, 64);
    let chunks = pool.chunks();
    let segment = chunks[0].1.place.segment;
    // They are read together.
    let first = pool.first(chunks[0].1.place);
    chunks.iter().for_each(|(_, row)| pool.spoil(first, row.place, 11));
    let live = pool.store.live_chunks(segment).unwrap();
    assert_eq!(live.len(), 64);
    assert!(pool.store.move_chunks(&live).unwrap());
    assert_eq!(pool.store.mended_copies(), 64);
    let moved = pool
        .chunks()
        .iter()
        .all(|(id, row)| chunks.iter().any(|(before, old)| before == id && old.place != row.place));
    assert!(moved, "all are elsewhere");
    assert!(read(&pool.store, id, 0, 512) == data);
    assert_sound(&pool.store);
}

/// An inspection reads the right copy from any device, and writes nothing.
#[test]
fn inspection_repairs_nothing() {
    let (pool, ..) = of_blocks(2, 4);
    let place = pool.chunks()[1].1.place;
    pool.spoil(pool.first(place), place, 5);
    let disks = pool.crashed();
    let mirrors = device_set(&disks);
    let store = Store::load(mirrors.clone(), COLD).unwrap();
    assert_sound(&store);
    assert!(!pool.is_alike(place));
    assert_eq!(store.mended_copies(), 0);
    assert!(disks[0].same_as(&pool.disks[0]) && disks[1].same_as(&pool.disks[1]));
}
