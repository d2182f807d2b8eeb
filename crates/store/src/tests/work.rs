//! The cost to apply a commit with any content is counted: duplicate and repeated blocks, and
//! staged parts. New data is bounded by its room, and counts as nothing.

use super::pieces::{GIB, Hand};
use super::*;
use crate::tuning::NODE_WORK;
use crate::{Outcome, Started, Tuning};

const BUDGET: u64 = Tuning::DEFAULT.commit_work;

fn start_write(hand: &Hand, id: u64, volume: VolumeId, sector: u64, data: &[u8]) {
    let range = SectorRange::new(sector, data.len() as u64 / 512);
    let data = DataOut::from_bytes(data, 0);
    let write = VolumeRequest::Write { volume, range, data, fua: false };
    let started = hand.store.start(write, hand.token(id));
    assert!(hand.settle(id, started).is_none());
}

/// Writes commits until nothing is left; returns how many requests each has completed.
fn answered_by_commits(hand: &Hand) -> Vec<u64> {
    let mut answered = Vec::new();
    while let Some(commit) = hand.store.take_commit() {
        hand.store.write_out(&commit).unwrap();
        hand.store.finish_commit(commit, Ok(()));
        let mut count = 0;
        for (id, outcome) in hand.desk.0.lock().split_off(0) {
            let reply = match outcome {
                Outcome::Reply(reply) => Some(reply),
                Outcome::Again(operation) => hand.settle(id, Started::Read(operation)),
            };
            count += u64::from(reply.is_some_and(|reply| reply.is_ok()));
        }
        answered.push(count);
    }
    answered
}

/// Returns blocks of `base`, no two of which were neighbours there.
fn scattered(base: &[u8], blocks: usize) -> Vec<u8> {
    let count = base.len() / 4096;
    (0..blocks).flat_map(|n| base[n * 7 % count * 4096..][..4096].to_vec()).collect()
}

#[test]
fn each_run_of_duplicates_costs_a_descent() {
    let (disk, store) = pool(1 << 30);
    let volume = volume(&store, GIB);
    let base = distinct(4 * MIB, 1);
    write(&store, volume, 0, &base[..2 << 20]).unwrap();
    write(&store, volume, 2 * MIB, &base[2 << 20..]).unwrap();
    let hand = Hand::new(disk, store);
    for (blocks, writes) in [(1024, 16), (32, 64)] {
        let data = scattered(&base, blocks as usize);
        for id in 0..writes {
            start_write(&hand, id, volume, (id + 1) * 8 * MIB, &data);
        }
        let answered = answered_by_commits(&hand);
        // One in any case; else as many paths down as the budget has.
        let most = (BUDGET / (blocks * NODE_WORK)).max(1);
        assert!(answered.iter().all(|count| *count <= most), "{blocks}: {answered:?}");
        assert_eq!(answered.iter().sum::<u64>(), writes);
        assert!(read(&hand.store, volume, writes * 8 * MIB, blocks * 8) == data);
    }
    assert_sound(&hand.store);
}

#[test]
fn a_block_repeated_in_a_write_is_one_entry() {
    const WRITES: u64 = 16;
    let (disk, store) = pool(1 << 30);
    let volume = volume(&store, GIB);
    let hand = Hand::new(disk.clone(), store);
    let data = |id| [distinct(8, id + 1).repeat(1023), distinct(8, 99)].concat();
    for id in 0..WRITES {
        start_write(&hand, id, volume, (id + 1) * 8 * MIB + 24, &data(id));
    }
    // The duplicates, the repeated block, and the last one.
    let entries = hand.store.writer.lock().open_record().entries.len() as u64;
    assert!(entries <= 3 * WRITES, "{entries} entries");
    assert_eq!(answered_by_commits(&hand), [WRITES]);
    let check = |store: &Store| {
        for id in 0..WRITES {
            assert!(read(store, volume, (id + 1) * 8 * MIB + 24, 4 * MIB) == data(id), "{id}");
        }
        assert_sound(store);
    };
    check(&hand.store);
    check(&Store::open(disk.copy(), OpenOptions::default()).unwrap());
}

/// Continues a staged copy until all the parts that reference its blocks are there.
pub(super) fn stage_parts(hand: &Hand, copy: CopySegment, id: u64, parts: u64) -> Started {
    let started = hand.store.start(VolumeRequest::Copy { segments: vec![copy] }, hand.token(id));
    assert!(hand.settle(id, started).is_none());
    for part in 1.. {
        let commit = hand.store.take_commit().unwrap();
        hand.store.write_out(&commit).unwrap();
        hand.store.finish_commit(commit, Ok(()));
        let Some((_, Outcome::Again(operation))) = hand.desk.0.lock().pop_front() else { panic!() };
        if part == parts {
            return Started::Read(operation);
        }
        assert!(hand.settle(id, Started::Read(operation)).is_none());
    }
    unreachable!()
}

#[test]
fn staged_copies_are_mapped_one_after_another() {
    // In parts of 4 MiB: each copy references 5,888 blocks in the end.
    const COPIES: u64 = 3;
    let (disk, store) = pool(1 << 30);
    let (source, target) = (volume(&store, GIB), volume(&store, GIB));
    let mib = |n| distinct(MIB, n + 1);
    (0..24).for_each(|n| write(&store, source, n * MIB, &mib(n)).unwrap());
    let hand = Hand::new(disk, store);
    let copy = |id| segment(source, 3, target, id * 64 * MIB, 23 * MIB);
    let staged: Vec<_> = (0..COPIES).map(|id| stage_parts(&hand, copy(id), id, 6)).collect();
    for (id, last) in (0..).zip(staged) {
        assert!(hand.settle(id, last).is_none());
    }
    assert_eq!(answered_by_commits(&hand), [1; COPIES as usize]);
    for id in 0..COPIES {
        let (copied, held) = (id * 64 * MIB + 22 * MIB, 22 * MIB + 3);
        assert!(read(&hand.store, target, copied, MIB) == read(&hand.store, source, held, MIB));
    }
    assert_sound(&hand.store);
}

/// Data of which half is noise.
fn halves(blocks: u64, seed: u64) -> Vec<u8> {
    let block = |n| [distinct(4, seed * 1000 + n), vec![0; 2048]].concat();
    (0..blocks).flat_map(block).collect()
}

#[test]
fn new_data_costs_only_its_room() {
    let (disk, store) = pool(1 << 30);
    let volume = volume(&store, 8 * GIB);
    let hand = Hand::new(disk, store);
    let small = Tuning::DEFAULT.record_blocks_max as u64;
    for id in 0..small {
        start_write(&hand, id, volume, id * 7919 % 4096 * 1024, &distinct(8, id + 1));
    }
    assert_eq!(answered_by_commits(&hand), [small]);
    for id in 0..16 {
        start_write(&hand, id, volume, id * 8 * MIB, &halves(128, id + 1));
    }
    assert_eq!(answered_by_commits(&hand), [16]);
    assert_sound(&hand.store);
}

/// A write of some runs costs something, but overtakes heavy requests.
#[test]
fn a_small_write_does_not_wait_for_heavy_requests() {
    const LONG: u64 = 100;
    let (disk, store) = pool(1 << 30);
    let volume = volume(&store, 64 * GIB);
    let base = distinct(MIB, 1);
    write(&store, volume, 0, &base).unwrap();
    let hand = Hand::new(disk, store);
    for id in 0..LONG {
        let ranges = (0..16).map(|n| SectorRange::new((id * 16 + n) * 32 * MIB + MIB, MIB));
        let unmap = VolumeRequest::Unmap { volume, ranges: ranges.collect() };
        let started = hand.store.start(unmap, hand.token(id));
        assert!(hand.settle(id, started).is_none());
    }
    start_write(&hand, LONG, volume, 60 * GIB, &scattered(&base, 8));
    let first = hand.store.take_commit().unwrap();
    hand.store.write_out(&first).unwrap();
    hand.store.finish_commit(first, Ok(()));
    let answered: Vec<u64> = hand.desk.0.lock().drain(..).map(|(id, _)| id).collect();
    assert!(answered.contains(&LONG) && (answered.len() as u64) < LONG, "{answered:?}");
}
