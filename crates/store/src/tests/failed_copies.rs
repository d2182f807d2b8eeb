//! Staged copies that fail in their midst: nothing stays staged, no place is taken, others go on.

use super::pieces::Hand;
use super::*;
use crate::{Outcome, Started};

/// A copy of so many MiB to somewhere else, at another offset in its blocks: it is staged.
fn copy_of(id: VolumeId, from: u64, to: u64, mib: u64) -> VolumeRequest {
    VolumeRequest::Copy { segments: vec![segment(id, from * MIB + 3, id, to * MIB, mib * MIB - 8)] }
}

/// Starts a request; its answer, if it has one already.
fn start(hand: &Hand, id: u64, request: VolumeRequest, replies: &mut Vec<(u64, Reply)>) {
    let started = hand.store.start(request, hand.token(id));
    replies.extend(hand.settle(id, started).map(|reply| (id, reply)));
}

type Reply = Result<VolumeReply, VolumeError>;

/// Goes on until so many requests were answered. What waits for ever is noticed.
fn finish(hand: &Hand, count: usize, replies: &mut Vec<(u64, Reply)>) {
    while replies.len() < count {
        let commit = hand.store.take_commit();
        if let Some(commit) = commit {
            sys::Disk::write(&*hand.disk, commit.offset_bytes, &commit.frames).unwrap();
            hand.store.finish_commit(commit, Ok(()));
        }
        let outcomes: Vec<_> = hand.desk.0.lock().drain(..).collect();
        let is_stuck = outcomes.is_empty() && hand.store.writer.lock().is_idle();
        assert!(!is_stuck || hand.store.maintenance_due(), "{} are answered", replies.len());
        if is_stuck {
            hand.store.maintain().unwrap();
        }
        for (id, outcome) in outcomes {
            let reply = match outcome {
                Outcome::Reply(reply) => Some(reply),
                Outcome::Again(operation) => hand.settle(id, Started::Read(operation)),
            };
            replies.extend(reply.map(|reply| (id, reply)));
        }
    }
}

/// Nothing is staged, nor waits to be released, once what is under way has ended.
fn assert_nothing_staged(store: &Store) {
    while store.housekeep() || store.commit_here() {}
    let writer = store.writer.lock();
    assert!(writer.released.is_empty() && writer.state.staged.is_empty());
}

/// As many parts can be brought at once as ever.
fn assert_places_free(hand: &Hand, id: VolumeId, to: u64) {
    let places = hand.store.tuning().parts_at_once;
    let mut replies = Vec::new();
    for copy in 0..places as u64 + 2 {
        start(hand, copy, copy_of(id, 0, to + copy * 5, 5), &mut replies);
        // One is in the open record already, and has given its place to another.
        let waiting = hand.store.writer.lock().placeless.len();
        assert_eq!(waiting, usize::from(copy > places as u64), "copy {copy}");
    }
    finish(hand, places + 2, &mut replies);
    assert!(replies.iter().all(|(_, reply)| reply.is_ok()), "{replies:?}");
}

#[test]
fn copies_that_meet_an_unreadable_block_leave_nothing_behind() {
    let disk = MemoryDisk::new(1 << 30);
    Store::create(&*disk, &[7; 64]).unwrap();
    let options = OpenOptions { memory_bytes: 0, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options.clone()).unwrap();
    let id = volume(&store, 512 * MIB);
    (0..24).for_each(|mib| write(&store, id, mib * MIB, &distinct(MIB, mib + 1)).unwrap());
    store.checkpoint().unwrap();
    let held = store.pool_status().data_bytes;
    // The parts of a copy are 4 MiB: this block is in the second of those that begin at 8 MiB.
    let bad = store.world.chunk(format::ChunkId(1 + 13 * 256)).unwrap().place;
    let bad_block = store.world.medium.geometry().offset_bytes(bad) / 4096;
    disk.fail_reads_of(bad_block);
    let hand = Hand::new(disk.clone(), store);
    let failing = 2 * hand.store.tuning().parts_at_once as u64;
    let mut replies = Vec::new();
    for copy in 0..failing {
        start(&hand, copy, copy_of(id, 8, 100 + copy * 11, 11), &mut replies);
    }
    // One that can be done waits behind them all.
    start(&hand, failing, copy_of(id, 0, 90, 6), &mut replies);
    finish(&hand, failing as usize + 1, &mut replies);
    for (copy, reply) in replies {
        match reply {
            Ok(_) => assert_eq!(copy, failing),
            Err(VolumeError::Medium { .. }) => assert!(copy < failing),
            other => panic!("{copy}: {other:?}"),
        }
    }
    assert_nothing_staged(&hand.store);
    // So that the small memory is no reason to wait.
    hand.store.checkpoint().unwrap();
    assert_places_free(&hand, id, 200);
    let copied = (6 + 5 * (hand.store.tuning().parts_at_once as u64 + 2)) * 256 - 1;
    assert!(hand.store.pool_status().data_bytes <= held + copied * 4096);
    assert!(read(&hand.store, id, 90 * MIB, MIB) == read(&hand.store, id, 3, MIB));
    assert_eq!(read(&hand.store, id, 100 * MIB, MIB), vec![0; 1 << 20]);
    disk.fail_reads_of(u64::MAX);
    assert_sound(&hand.store);
    drop(hand);
    assert_sound(&Store::open(disk, options).unwrap());
}

#[test]
fn copies_that_a_full_pool_refuses_leave_nothing_behind() {
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, 2048 * MIB);
    let mut mib = 0;
    while store.space_use().0 + (48 << 20) < store.space_use().1 {
        write(&store, id, mib * MIB, &distinct(MIB, mib + 1)).unwrap();
        mib += 1;
    }
    let held = store.volume_status(id).unwrap().mapped_bytes;
    std::thread::scope(|scope| {
        let copies = 2 * store.tuning().parts_at_once as u64;
        let copy = |to| {
            scope.spawn({
                let store = &store;
                move || store.execute(copy_of(id, 0, 300 + to * 64, 60))
            })
        };
        for copy in (0..copies).map(copy).collect::<Vec<_>>() {
            assert_eq!(copy.join().unwrap().unwrap_err(), VolumeError::NoSpace);
        }
    });
    assert_eq!(store.volume_status(id).unwrap().mapped_bytes, held);
    assert_nothing_staged(&store);
    // What they had brought can be had again.
    let ranges = vec![SectorRange::new(40 * MIB, 40 * MIB)];
    store.execute(VolumeRequest::Unmap { volume: id, ranges }).unwrap();
    while store.housekeep() {}
    store.checkpoint().unwrap();
    let hand = Hand::new(disk.clone(), store);
    assert_places_free(&hand, id, 300);
    assert!(read(&hand.store, id, 300 * MIB, MIB) == read(&hand.store, id, 3, MIB));
    assert_sound(&hand.store);
    hand.store.checkpoint().unwrap();
    assert_sound(&hand.store);
    drop(hand);
    assert_sound(&Store::open(disk, OpenOptions::default()).unwrap());
}
