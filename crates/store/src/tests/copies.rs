//! Copies: what they graft, what they cost, and that they are correct at any alignment.

use block::{SectorRange, VolumeRequest};

use super::*;
use crate::Started;

fn copy(store: &Store, segments: Vec<CopySegment>) {
    store.execute(VolumeRequest::Copy { segments }).unwrap();
}

#[test]
fn an_aligned_copy_shares_all_data_and_costs_one_commit() {
    let (_, store) = pool(1 << 30);
    let source = volume(&store, 600 * MIB);
    let target = volume(&store, 600 * MIB);
    for mib in 0..20 {
        write(&store, source, mib * MIB, &distinct(MIB, mib + 1)).unwrap();
    }
    let before = store.pool_status();
    copy(&store, vec![segment(source, 0, target, 256 * MIB, 300 * MIB)]);
    let after = store.pool_status();
    assert_eq!(after.commit_count, before.commit_count + 1);
    assert_eq!(after.data_bytes, before.data_bytes);
    // A block of its own, and another one for the copied part of the MiB written before.
    assert_eq!(after.log_bytes - before.log_bytes, 8192);
    assert_eq!(read(&store, target, 270 * MIB + 7, 9), distinct(MIB, 15)[7 * 512..16 * 512]);
    assert_sound(&store);
    write(&store, target, 256 * MIB, &distinct(8, 99)).unwrap();
    assert_eq!(read(&store, source, 0, 8), distinct(MIB, 1)[..4096]);
    assert_sound(&store);
}

#[test]
fn copies_of_any_alignment_and_overlap_are_correct() {
    let (_, store) = pool(1 << 30);
    let id = volume(&store, 8 * MIB);
    let sectors = 8 * MIB;
    let mut expected = distinct(sectors, 5);
    for mib in 0..8 {
        let part = &expected[(mib * MIB * 512) as usize..((mib + 1) * MIB * 512) as usize];
        write(&store, id, mib * MIB, part).unwrap();
    }
    let cases = [
        (0, 2048, 2048),
        (3, 5003, 3001),
        (3, 5004, 1001),
        (100, 101, 1500),
        (101, 100, 1500),
        (0, 8, 4096),
        (8, 0, 4096),
        (7, 9, 2),
    ];
    for (from, to, count) in cases {
        copy(&store, vec![segment(id, from, id, to, count)]);
        let (from, to, count) = (from as usize * 512, to as usize * 512, count as usize * 512);
        expected.copy_within(from..from + count, to);
        for start in (0..sectors).step_by(4096) {
            let at = start as usize * 512;
            assert!(
                read(&store, id, start, 4096) == expected[at..at + (4096 * 512)],
                "{from} {to}"
            );
        }
    }
    assert_sound(&store);
}

#[test]
fn segments_of_one_copy_see_the_effects_of_earlier_ones() {
    let (_, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(64, 7)).unwrap();
    let mut expected = distinct(64, 7);
    expected.resize(MIB as usize * 512, 0);
    let moves = [(0, 33, 13), (35, 101, 9), (99, 40, 11)];
    copy(&store, moves.iter().map(|&(a, b, n)| segment(id, a, id, b, n)).collect());
    for (from, to, count) in moves {
        let (from, to, count) = (from as usize * 512, to as usize * 512, count as usize * 512);
        expected.copy_within(from..from + count, to);
    }
    assert!(read(&store, id, 0, MIB) == expected);
    assert_sound(&store);
}

#[test]
fn ranges_of_one_unmap_may_share_a_block() {
    let (_, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    let mut expected = distinct(24, 3);
    write(&store, id, 0, &expected).unwrap();
    let ranges = vec![
        SectorRange::new(1, 2),
        SectorRange::new(5, 1),
        SectorRange::new(8, 4),
        SectorRange::new(12, 4),
        SectorRange::new(2, 2),
    ];
    for range in &ranges {
        let (start, count) = (range.start.0 as usize * 512, range.count.0 as usize * 512);
        expected[start..start + count].fill(0);
    }
    store.execute(VolumeRequest::Unmap { volume: id, ranges }).unwrap();
    assert_eq!(read(&store, id, 0, 24), expected);
    assert_eq!(store.volume_status(id).unwrap().mapped_bytes, 2 * 4096);
    assert_sound(&store);
}

#[test]
fn a_long_copy_between_alignments_is_staged_and_cleans_up() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 64 * MIB);
    let mut expected = vec![0; 64 << 20];
    for mib in 0..24u64 {
        let part = if mib % 5 == 4 { vec![0; 1 << 20] } else { distinct(MIB, mib + 1) };
        write(&store, id, mib * MIB, &part).unwrap();
        expected[(mib << 20) as usize..((mib + 1) << 20) as usize].copy_from_slice(&part);
    }
    // The second segment reads what the first one wrote.
    let moves = [(3, 30 * MIB + 5, 20 * MIB + 1), (31 * MIB + 7, 9 * MIB + 2, 11 * MIB + 3)];
    copy(&store, moves.iter().map(|&(a, b, n)| segment(id, a, id, b, n)).collect());
    for (from, to, count) in moves {
        let (from, to, count) = (from as usize * 512, to as usize * 512, count as usize * 512);
        expected.copy_within(from..from + count, to);
    }
    let same = |store: &Store| {
        (0..64).all(|mib| {
            let at = (mib << 20) as usize;
            read(store, id, mib * MIB, MIB) == expected[at..at + (1 << 20)]
        })
    };
    assert!(same(&store));
    assert!(store.writer.lock().state.staged.is_empty());
    assert_sound(&store);
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert!(same(&store));
    assert_sound(&store);
}

/// Writes MiBs until the pool has no room for that many more.
fn fill(store: &Store, id: VolumeId, left_mib: u64) -> u64 {
    let used = || store.space_use();
    let mut mib = 0;
    while used().0 + (left_mib << 20) < used().1 {
        write(store, id, mib * MIB, &distinct(MIB, mib + 1)).unwrap();
        mib += 1;
    }
    mib
}

#[test]
fn a_long_copy_refused_by_a_full_pool_changes_nothing() {
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, 512 * MIB);
    let written = fill(&store, id, 40);
    let segments = vec![segment(id, 1, id, 300 * MIB, 60 * MIB)];
    let full = store.execute(VolumeRequest::Copy { segments }).unwrap_err();
    assert_eq!(full, VolumeError::NoSpace);
    assert_eq!(store.volume_status(id).unwrap().mapped_bytes, written << 20);
    store
        .execute(VolumeRequest::Zero { volume: id, range: SectorRange::new(0, 8), fua: true })
        .unwrap();
    assert!(store.writer.lock().state.staged.is_empty());
    assert_sound(&store);
    store.checkpoint().unwrap();
    assert_sound(&store);
    drop(store);
    assert_sound(&Store::open(disk, OpenOptions::default()).unwrap());
}

#[test]
fn an_abandoned_long_copy_cleans_up() {
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, 512 * MIB);
    (0..12).for_each(|mib| write(&store, id, mib * MIB, &distinct(MIB, mib + 1)).unwrap());
    let held = store.pool_status().data_bytes;
    let hand = super::pieces::Hand::new(disk, store);
    let copy = segment(id, 3, id, 300 * MIB, 11 * MIB);
    let Started::Read(last) = super::work::stage_parts(&hand, copy, 1, 3) else { panic!() };
    assert_eq!(hand.store.writer.lock().state.staged.len(), 3);
    hand.store.abandon(last);
    hand.store.execute(VolumeRequest::Flush { volume: id }).unwrap();
    write(&hand.store, id, 0, &distinct(8, 99)).unwrap();
    assert!(hand.store.writer.lock().state.staged.is_empty());
    assert_eq!(hand.store.pool_status().data_bytes, held);
    assert_sound(&hand.store);
}

/// All of a node but its last block, or its first: grafting the whole node would copy that too.
#[test]
fn a_copy_that_ends_one_block_before_its_node_copies_no_more() {
    let (_, store) = pool(1 << 30);
    for (blocks, level) in [(256, "a leaf"), (65_536, "a node of leaves")] {
        let source = volume(&store, 2 * blocks * 8);
        // So that nodes exist along the whole range, with data at both ends.
        for block in [0, 1, blocks - 1, blocks, 2 * blocks - 1] {
            write(&store, source, block * 8, &distinct(8, 1 + block)).unwrap();
        }
        for (from, count) in
            [(0, blocks - 1), (1, blocks - 1), (0, blocks + 1), (0, 2 * blocks - 1)]
        {
            let target = volume(&store, 2 * blocks * 8);
            let own = distinct(8, 99);
            for block in [0, blocks - 1, blocks, blocks + 1, 2 * blocks - 1] {
                write(&store, target, block * 8, &own).unwrap();
            }
            copy(&store, vec![segment(source, from * 8, target, from * 8, count * 8)]);
            for block in [0, 1, blocks - 1, blocks, blocks + 1, 2 * blocks - 1] {
                let whose = if (from..from + count).contains(&block) { source } else { target };
                let told = format!("block {block} after {count} from {from}, {level}");
                if whose == source {
                    assert!(
                        read(&store, target, block * 8, 8) == read(&store, source, block * 8, 8),
                        "{told}"
                    );
                } else if block != 1 {
                    assert!(read(&store, target, block * 8, 8) == own, "{told}");
                }
            }
        }
        assert_sound(&store);
    }
}
