//! Edits that wait for others: how often each is looked up, and which may overtake which.

use super::pieces::{GIB, Hand};
use super::*;
use crate::{Durability, Outcome, Started, StoreError};

/// Writes one commit; returns the answers.
fn commit_one(hand: &Hand) -> Vec<(u64, Outcome)> {
    let commit = hand.store.take_commit().expect("something is queued");
    hand.store.write_out(&commit).unwrap();
    hand.store.finish_commit(commit, Ok(()));
    hand.desk.0.lock().drain(..).collect()
}

/// Each of them examines nodes that the one before it grafts, so it has to be planned again.
#[test]
fn copies_that_wait_for_each_other_are_planned_a_few_times_each() {
    const COPIES: u64 = 64;
    const SEGMENTS: u64 = 16;
    let (disk, store) = pool(1 << 30);
    let volume = volume(&store, 64 * GIB);
    let pattern = FrameMut::from_bytes(&distinct(8, 1)).freeze();
    let range = SectorRange::new(0, 64 * GIB);
    store.execute(VolumeRequest::Fill { volume, range, pattern, fua: false }).unwrap();
    let hand = Hand::new(disk, store);
    let part = |n| segment(volume, n * GIB, volume, (32 + n) * GIB + 8, GIB - 16);
    for id in 0..COPIES {
        let segments = (0..SEGMENTS).map(part).collect();
        let started = hand.store.start(VolumeRequest::Copy { segments }, hand.token(id));
        assert!(hand.settle(id, started).is_none());
    }
    let (mut done, mut looked) = (0, 0);
    while done < COPIES {
        for (id, outcome) in commit_one(&hand) {
            let reply = match outcome {
                Outcome::Reply(reply) => Some(reply),
                Outcome::Again(operation) => {
                    looked += 1;
                    hand.settle(id, Started::Read(operation))
                }
            };
            if let Some(reply) = reply {
                reply.unwrap();
                done += 1;
            }
        }
    }
    assert!(looked <= 16 * COPIES, "{looked} plans for {COPIES} copies");
    assert_sound(&hand.store);
}

/// Starts UNMAPs of which one commit takes a few.
fn start_long_unmaps(hand: &Hand, volume: VolumeId, count: u64) {
    const RANGES: u64 = crate::edits::rest::UNMAP_PIECE_RANGES as u64;
    for id in 0..count {
        let range = |n| SectorRange::new((id * RANGES + n) * 4 * MIB + 8, MIB);
        let ranges = (0..RANGES).map(range).collect();
        let unmap = VolumeRequest::Unmap { volume, ranges };
        let started = hand.store.start(unmap, hand.token(id));
        assert!(hand.settle(id, started).is_none());
    }
}

/// They waited for the next commit, but there was none.
#[test]
fn long_requests_continue_after_the_checkpoint_that_all_waited_for() {
    const ALL_MEMORY: u64 = 1 << 40;
    let (disk, store) = pool(1 << 30);
    let long = volume(&store, 64 * GIB);
    let hand = Hand::new(disk, store);
    start_long_unmaps(&hand, long, 32);
    hand.store.world.memory.dirtied(ALL_MEMORY, 0);
    let mut left = 32 - commit_one(&hand).len();
    assert!(left > 0 && hand.store.take_commit().is_none(), "nothing waits for memory");
    hand.store.world.memory.drop_dirty(ALL_MEMORY);
    hand.store.checkpoint().unwrap();
    left -= hand.desk.0.lock().drain(..).count();
    while left > 0 {
        left -= commit_one(&hand).len();
    }
}

#[test]
fn cheap_requests_overtake_many_long_ones() {
    let (disk, store) = pool(1 << 30);
    let long = volume(&store, 64 * GIB);
    let short = volume(&store, MIB);
    let hand = Hand::new(disk, store);
    start_long_unmaps(&hand, long, 32);
    let data = DataOut::from_bytes(&distinct(8, 1), 0);
    let range = SectorRange::new(0, 8);
    let write = VolumeRequest::Write { volume: short, range, data, fua: false };
    let started = hand.store.start(write, hand.token(99));
    assert!(hand.settle(99, started).is_none());
    let answered: Vec<u64> = commit_one(&hand).into_iter().map(|(id, _)| id).collect();
    assert!(answered.contains(&99) && answered.len() < 16, "{answered:?}");
    let mut left = 33 - answered.len();
    while left > 0 {
        left -= commit_one(&hand).len();
    }
    assert!(read(&hand.store, short, 0, 8) == distinct(8, 1));
}

/// Requests that wait for memory wait for a checkpoint: if no checkpoint has room, they are
/// refused.
#[test]
fn requests_waiting_for_memory_are_refused_if_no_checkpoint_has_room() {
    for durability in [Durability::Commit, Durability::Flush] {
        let disk = MemoryDisk::new(256 << 20);
        Store::create(&*disk, &[7; 64]).unwrap();
        let tiny = OpenOptions { durability, memory_bytes: 0, ..OpenOptions::default() };
        let store = Store::open(disk.clone(), tiny).unwrap();
        let volume = volume(&store, 64 * MIB);
        let write = |mib: u64| {
            let data = DataOut::from_bytes(&distinct(8, mib + 1), 0);
            let range = SectorRange::new(mib * MIB, 8);
            VolumeRequest::Write { volume, range, data, fua: false }
        };
        // A leaf of its own each.
        let mut held_mib = 0;
        while !store.world.memory.is_full() {
            store.execute(write(held_mib)).unwrap();
            held_mib += 1;
        }
        take_all_free(&store);
        let by_caller = store.execute(write(63));
        assert!(matches!(by_caller, Err(VolumeError::NoSpace)), "{by_caller:?}");
        let hand = Hand::new(disk, store);
        let written = hand.store.start(write(62), hand.token(62));
        assert!(hand.settle(62, written).is_none());
        let flushed = hand.store.start(VolumeRequest::Flush { volume }, hand.token(1));
        let flushed = hand.settle(1, flushed);
        assert!(matches!(hand.store.maintain(), Err(StoreError::NoRoom { .. })));
        while hand.store.commit_here() {}
        let mut answers = std::mem::take(&mut *hand.desk.0.lock());
        answers.extend(flushed.map(|reply| (1, Outcome::Reply(reply))));
        let of = |wanted| answers.iter().find(|(id, _)| *id == wanted).map(|(_, outcome)| outcome);
        let refused = Outcome::Reply(Err(VolumeError::NoSpace));
        assert_eq!(format!("{:?}", of(62)), format!("{:?}", Some(&refused)));
        assert!(matches!(of(1), Some(Outcome::Reply(Ok(_)))), "{answers:?}");
        for mib in 0..held_mib {
            assert_eq!(read(&hand.store, volume, mib * MIB, 8), distinct(8, mib + 1));
        }
    }
}

/// In a full window of long copies all first parts are ready at once, and each part takes most of a
/// record: a small write waited for all of them.
#[test]
fn a_small_write_does_not_wait_for_parts_of_long_copies() {
    const COPIES: u64 = 32;
    const WRITES: u64 = 900;
    let (disk, store) = pool(2 << 30);
    let (source, other) = (volume(&store, GIB), volume(&store, GIB));
    (0..12).for_each(|mib| write(&store, source, mib * MIB, &distinct(MIB, mib + 1)).unwrap());
    let hand = Hand::new(disk, store);
    for id in 0..COPIES {
        let segments = vec![segment(source, 3, source, (id + 1) * 24 * MIB, 11 * MIB)];
        let started = hand.store.start(VolumeRequest::Copy { segments }, hand.token(id));
        assert!(hand.settle(id, started).is_none());
    }
    // More than a record takes beside a part.
    for id in COPIES..COPIES + WRITES {
        let data = DataOut::from_bytes(&distinct(8, id), 0);
        let range = SectorRange::new(id * 8, 8);
        let write = VolumeRequest::Write { volume: other, range, data, fua: false };
        let started = hand.store.start(write, hand.token(id));
        assert!(hand.settle(id, started).is_none());
    }
    let (mut written, mut parts) = (0, 0);
    for _ in 0..4 {
        for (id, outcome) in commit_one(&hand) {
            match outcome {
                Outcome::Reply(reply) => {
                    assert!(id >= COPIES && reply.is_ok());
                    written += 1;
                }
                Outcome::Again(_) => parts += 1,
            }
        }
    }
    assert_eq!(written, WRITES);
    assert!(parts >= 2, "{parts} parts");
}

/// Each staged part takes about 4 MiB of memory; a window of copies would have all of them there.
#[test]
fn a_window_of_long_copies_reads_a_few_parts_at_once() {
    // One is in the open record already, and has passed its slot to another.
    a_window_of_copies_moves_little_at_once(11 * MIB, 1);
}

/// The same holds for copies of one commit, and for pieces of a copy too long to be staged.
#[test]
fn a_window_of_copies_that_move_data_moves_little_at_once() {
    // A record takes one of 3 MiB, and six pieces of 1 MiB.
    a_window_of_copies_moves_little_at_once(3 * MIB, 1);
    a_window_of_copies_moves_little_at_once(66 * MIB, 6);
}

/// Copies `sectors` each, of which the open record takes up to `in_record`.
fn a_window_of_copies_moves_little_at_once(sectors: u64, in_record: usize) {
    const COPIES: u64 = 24;
    let (disk, store) = pool(4 << 30);
    let source = volume(&store, 4 * GIB);
    (0..12).for_each(|mib| write(&store, source, mib * MIB, &distinct(MIB, mib + 1)).unwrap());
    let hand = Hand::new(disk, store);
    let places = hand.store.tuning().parts_at_once;
    for id in 0..COPIES {
        let segments = vec![segment(source, 3, source, (id + 1) * 80 * MIB, sectors)];
        let started = hand.store.start(VolumeRequest::Copy { segments }, hand.token(id));
        assert!(hand.settle(id, started).is_none());
    }
    let waiting = hand.store.writer.lock().queues.placeless_count();
    assert!(waiting >= COPIES as usize - places - in_record, "{waiting} of {COPIES} wait");
    let mut done = 0;
    while done < COPIES {
        for (id, outcome) in commit_one(&hand) {
            let reply = match outcome {
                Outcome::Reply(reply) => Some(reply),
                Outcome::Again(operation) => hand.settle(id, Started::Read(operation)),
            };
            done += u64::from(reply.is_some_and(|reply| reply.is_ok()));
        }
        let writer = hand.store.writer.lock();
        let bulk = writer.queues.bulk().filter(|job| job.data_blocks() > 0);
        assert!(bulk.count() <= places);
    }
    for id in 0..COPIES {
        let copied = read(&hand.store, source, (id + 1) * 80 * MIB, 8);
        assert!(copied == read(&hand.store, source, 3, 8), "copy {id}");
    }
    assert_sound(&hand.store);
}
