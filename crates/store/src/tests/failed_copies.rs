//! Staged copies that fail half-way: nothing stays staged, no copy slot leaks, others continue.

use super::pieces::Hand;
use super::*;
use crate::{Outcome, Started};

/// A copy of this many MiB to another offset within its blocks, so that it is staged.
fn copy_of(id: VolumeId, from: u64, to: u64, mib: u64) -> VolumeRequest {
    VolumeRequest::Copy { segments: vec![segment(id, from * MIB + 3, id, to * MIB, mib * MIB - 8)] }
}

/// Starts a request; adds its answer if it has one already.
fn start(hand: &Hand, id: u64, request: VolumeRequest, replies: &mut Vec<(u64, Reply)>) {
    let started = hand.store.start(request, hand.token(id));
    replies.extend(hand.settle(id, started).map(|reply| (id, reply)));
}

type Reply = Result<VolumeReply, VolumeError>;

/// Continues until `count` requests have completed. Fails if a request waits forever.
fn finish(hand: &Hand, count: usize, replies: &mut Vec<(u64, Reply)>) {
    while replies.len() < count {
        let commit = hand.store.take_commit();
        if let Some(commit) = commit {
            hand.store.write_out(&commit).unwrap();
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

/// Nothing is staged or waits to be released once the work in progress has ended.
fn assert_nothing_staged(store: &Store) {
    while store.housekeep() || store.commit_here() {}
    let writer = store.writer.lock();
    assert!(writer.released().is_empty() && writer.state.staged.is_empty());
}

/// Asserts that as many parts can be staged at once as before.
fn assert_places_free(hand: &Hand, id: VolumeId, to: u64) {
    let places = hand.store.tuning().parts_at_once;
    let mut replies = Vec::new();
    for copy in 0..places as u64 + 2 {
        start(hand, copy, copy_of(id, 0, to + copy * 5, 5), &mut replies);
        // One is already in the open record, and has passed its slot to another.
        let waiting = hand.store.writer.lock().queues.placeless_count();
        assert_eq!(waiting, usize::from(copy > places as u64), "copy {copy}");
    }
    finish(hand, places + 2, &mut replies);
    assert!(replies.iter().all(|(_, reply)| reply.is_ok()), "{replies:?}");
}

/// A volume of 24 MiB with one unreadable block, the rest of which is not in memory. The parts of a
/// copy are 4 MiB: the block is in the second part of copies that begin at 8 MiB.
fn with_bad_block() -> (Hand, VolumeId) {
    let disk = MemoryDisk::new(1 << 30);
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = Store::open(disk.clone(), least_memory()).unwrap();
    let id = volume(&store, 512 * MIB);
    (0..24).for_each(|mib| write(&store, id, mib * MIB, &distinct(MIB, mib + 1)).unwrap());
    store.checkpoint().unwrap();
    let bad = store.world.chunk(format::ChunkId(1 + 13 * 256)).unwrap().place;
    disk.fail_reads_of(store.world.medium.geometry().offset_bytes(bad) / 4096);
    (Hand::new(disk, store), id)
}

fn least_memory() -> OpenOptions {
    OpenOptions { memory_bytes: 0, ..OpenOptions::default() }
}

#[test]
fn copies_of_an_unreadable_block_clean_up() {
    let (hand, id) = with_bad_block();
    let held = hand.store.pool_status().data_bytes;
    let failing = 2 * hand.store.tuning().parts_at_once as u64;
    let mut replies = Vec::new();
    for copy in 0..failing {
        start(&hand, copy, copy_of(id, 8, 100 + copy * 11, 11), &mut replies);
    }
    // One that can succeed waits after all of them.
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
    // So that the small memory budget is no reason to wait.
    hand.store.checkpoint().unwrap();
    assert_places_free(&hand, id, 200);
    let copied = (6 + 5 * (hand.store.tuning().parts_at_once as u64 + 2)) * 256 - 1;
    assert!(hand.store.pool_status().data_bytes <= held + copied * 4096);
    assert!(read(&hand.store, id, 90 * MIB, MIB) == read(&hand.store, id, 3, MIB));
    assert_eq!(read(&hand.store, id, 100 * MIB, MIB), vec![0; 1 << 20]);
    hand.disk.fail_reads_of(u64::MAX);
    assert_sound(&hand.store);
    let Hand { disk, store, .. } = hand;
    drop(store);
    assert_sound(&Store::open(disk, least_memory()).unwrap());
}

/// All copies with slots fail before they have staged anything: no commit and no turn of
/// maintenance follows. So the first that fails must wake the waiting one.
#[test]
fn a_waiting_copy_continues_when_earlier_ones_fail() {
    let (hand, id) = with_bad_block();
    let places = hand.store.tuning().parts_at_once as u64;
    let first = |copy| hand.store.start(copy_of(id, 12, 100 + copy * 5, 5), hand.token(copy));
    let reading: Vec<Started> = (0..places).map(first).collect();
    let mut replies = Vec::new();
    start(&hand, places, copy_of(id, 0, 90, 6), &mut replies);
    assert_eq!(hand.store.writer.lock().queues.placeless_count(), 1);
    for (copy, started) in (0..).zip(reading) {
        assert!(hand.settle(copy, started).is_some_and(|reply| reply.is_err()));
        assert!(hand.store.writer.lock().queues.placeless_count() == 0);
    }
    finish(&hand, 1, &mut replies);
    assert!(replies.iter().all(|(_, reply)| reply.is_ok()));
    assert!(read(&hand.store, id, 90 * MIB, MIB) == read(&hand.store, id, 3, MIB));
}

/// Returns the outcome of a queued request.
fn next_outcome(hand: &Hand) -> Outcome {
    loop {
        if let Some((_, outcome)) = hand.desk.0.lock().pop_front() {
            return outcome;
        }
        match hand.store.take_commit() {
            Some(commit) => {
                hand.store.write_out(&commit).unwrap();
                hand.store.finish_commit(commit, Ok(()));
            }
            // It waits for a checkpoint.
            None => drop(hand.store.maintain().unwrap()),
        }
    }
}

/// Continues a copy, and aborts it after this many reads. Returns its result if it has one, else
/// how much was staged then.
fn abort_after(hand: &Hand, mut reads: u64, copy: VolumeRequest) -> Result<Reply, usize> {
    let mut started = hand.store.start(copy, hand.token(1));
    loop {
        let mut operation = match started {
            Started::Done(reply) => return Ok(reply),
            Started::Read(operation) => operation,
            Started::Queued => match next_outcome(hand) {
                Outcome::Reply(reply) => return Ok(reply),
                Outcome::Again(operation) => operation,
            },
        };
        if reads == 0 {
            let staged = hand.store.writer.lock().state.staged.len();
            hand.store.abandon(operation);
            return Err(staged);
        }
        reads -= 1;
        for read in &mut operation.reads {
            hand.store.segments().read(read.place, &mut read.frames).unwrap();
        }
        started = hand.store.resume(operation, hand.token(1));
    }
}

/// A copy is aborted at each of its reads, those of metadata included.
#[test]
fn copies_abandoned_at_any_read_clean_up() {
    let disk = MemoryDisk::new(1 << 30);
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = Store::open(disk.clone(), least_memory()).unwrap();
    let id = volume(&store, 512 * MIB);
    (0..10).for_each(|mib| write(&store, id, mib * MIB, &distinct(MIB, mib + 1)).unwrap());
    let held = store.pool_status().data_bytes;
    let hand = Hand::new(disk, store);
    let mut staged_max = 0;
    for reads in 0.. {
        hand.store.checkpoint().unwrap();
        super::memory::evict_all(&hand.store);
        match abort_after(&hand, reads, copy_of(id, 0, 100, 9)) {
            Ok(reply) => {
                reply.unwrap();
                break;
            }
            Err(staged) => staged_max = staged_max.max(staged),
        }
        assert_nothing_staged(&hand.store);
        assert_eq!(hand.store.pool_status().data_bytes, held, "{reads} reads");
    }
    assert!(staged_max >= 2, "{staged_max} parts");
    assert!(read(&hand.store, id, 100 * MIB, MIB) == read(&hand.store, id, 3, MIB));
    hand.store.checkpoint().unwrap();
    assert_places_free(&hand, id, 200);
    assert_sound(&hand.store);
}

#[test]
fn copies_refused_by_a_full_pool_clean_up() {
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
    // The space they had staged is available again.
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
