//! Devices that miss writes made while they were absent.

use segments::DeviceState;

use super::records::{records, with_log, with_log_on};
use super::*;
use crate::{CatchingUp, Durability, Next};

impl Pool {
    pub(in crate::tests) fn state(&self, disk: usize) -> DeviceState {
        self.mirrors.devices()[disk].state
    }

    /// Runs maintenance until nothing is left to do.
    pub(in crate::tests) fn come_to_rest(&self) {
        for _ in 0..100_000 {
            if self.store.maintain().unwrap() == Next::Nothing {
                return;
            }
        }
        panic!("maintenance never ends");
    }

    /// Opens the pool from one of its disks alone.
    fn alone(&self, disk: usize) -> Pool {
        open(vec![self.disks[disk].copy()])
    }
}

#[test]
fn a_returned_device_has_everything_after_catching_up() {
    let pool = make(2);
    let id = volume(&pool.store, 64 * MIB);
    let data = distinct(8 * MIB, 1);
    write(&pool.store, id, 0, &data[..4 << 20]).unwrap();
    pool.store.checkpoint().unwrap();
    pool.mirrors.take_out(1, "a test").unwrap();
    write(&pool.store, id, 4 * MIB, &data[4 << 20..6 << 20]).unwrap();
    pool.store.checkpoint().unwrap();
    write(&pool.store, id, 6 * MIB, &data[6 << 20..]).unwrap();
    assert_eq!(pool.store.catching_up(), []);
    pool.mirrors.take_back(1).unwrap();
    let mut before = 0;
    assert_eq!(pool.store.maintain().unwrap(), Next::AtOnce);
    while let [CatchingUp { device: 1, done_bytes, all_bytes }] = pool.store.catching_up()[..] {
        assert!(pool.store.maintenance_due());
        assert!(before <= done_bytes && done_bytes <= all_bytes && all_bytes > 8 << 20);
        assert!(done_bytes - before <= 1 << 20, "one piece in a turn");
        before = done_bytes;
        pool.store.maintain().unwrap();
    }
    assert!(before > 8 << 20, "{before}");
    assert_eq!(pool.state(1), DeviceState::In);
    pool.come_to_rest();
    assert!(!pool.store.maintenance_due());
    let alone = pool.alone(1);
    for (at, part) in (0..).zip(data.chunks(2 << 20)) {
        assert!(read(&alone.store, id, at * 2 * MIB, 2 * MIB) == part);
    }
    assert_sound(&alone.store);
    assert_eq!(alone.scrub(), []);
}

/// What hosts have written, by block.
pub(in crate::tests) struct Model {
    pub(in crate::tests) blocks: Vec<u64>,
    pub(in crate::tests) next: u64,
}

pub(in crate::tests) const BLOCKS: u64 = 24 << 8;

impl Model {
    pub(in crate::tests) fn write(&mut self, store: &Store, id: VolumeId, count: u64) {
        for _ in 0..count {
            self.next += 1;
            let at = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let (first, length) = (at % (BLOCKS - 64), 1 + at / 7 % 64);
            write(store, id, first * 8, &self.bytes(first, length)).unwrap();
            self.blocks[first as usize..(first + length) as usize].fill(self.next);
        }
    }

    fn bytes(&self, first: u64, length: u64) -> Vec<u8> {
        let one = |block| distinct(8, self.next << 16 | block);
        (first..first + length).flat_map(one).collect()
    }

    pub(in crate::tests) fn check(&self, store: &Store, id: VolumeId) {
        for (block, seed) in (0..).zip(&self.blocks) {
            let want = match seed {
                0 => vec![0; 4096],
                seed => distinct(8, seed << 16 | block),
            };
            assert!(read(store, id, block * 8, 8) == want, "block {block}");
        }
    }
}

#[test]
fn a_device_catches_up_during_writes_reclaim_and_checkpoints() {
    let disks: Vec<_> = (0..2).map(|_| MemoryDisk::new(272 << 20)).collect();
    Store::create_on(&devices(&disks), &[7; 64]).unwrap();
    let pool = open(disks);
    let id = volume(&pool.store, BLOCKS * 8);
    let mut model = Model { blocks: vec![0; BLOCKS as usize], next: 0 };
    model.write(&pool.store, id, 600);
    pool.store.checkpoint().unwrap();
    for round in 0..3 {
        let (lost, left) = (round % 2, 1 - round % 2);
        pool.mirrors.take_out(lost as u16, "a test").unwrap();
        model.write(&pool.store, id, 300);
        pool.store.checkpoint().unwrap();
        pool.mirrors.take_back(lost as u16).unwrap();
        let (mut turns, mut freed) = (0, 0);
        while pool.state(lost) != DeviceState::In {
            assert_eq!(pool.state(lost), DeviceState::CatchingUp);
            turns += 1;
            assert!(turns < 10_000, "it never catches up");
            model.write(&pool.store, id, 3);
            let freed_before = pool.store.writer.lock().state.segments.free_count();
            match turns % 8 {
                3 => drop(pool.store.reclaim_segment().unwrap()),
                6 => pool.store.checkpoint().unwrap(),
                _ => {}
            }
            let free = pool.store.writer.lock().state.segments.free_count();
            freed += u64::from(free > freed_before);
            pool.store.maintain().unwrap();
        }
        assert!(turns > 20 && freed > 0, "{turns} turns, {freed} times something was freed");
        model.write(&pool.store, id, 20);
        // Now the other device is lost.
        let alone = pool.alone(lost);
        model.check(&alone.store, id);
        assert_sound(&alone.store);
        assert_eq!(alone.scrub(), []);
        model.check(&pool.alone(left).store, id);
    }
}

#[test]
fn writes_in_flight_when_a_device_returns_are_waited_for() {
    let pool = make(2);
    let id = volume(&pool.store, MIB);
    pool.mirrors.take_out(1, "a test").unwrap();
    let sink = Arc::new(crate::waiters::Waiters::default());
    let token = crate::Token { sink: pool.store.register_sink(sink), id: 1 };
    let range = SectorRange::new(0, 8);
    let data = distinct(8, 1);
    let request =
        VolumeRequest::Write { volume: id, range, data: DataOut::from_bytes(&data, 0), fua: false };
    assert!(matches!(pool.store.start(request, token), crate::Started::Queued));
    let commit = pool.store.take_commit().unwrap();
    // It was written to the other device only.
    pool.store.write_out(&commit).unwrap();
    pool.mirrors.take_back(1).unwrap();
    for _ in 0..100 {
        assert!(pool.store.catch_up_turn());
    }
    assert_eq!(pool.state(1), DeviceState::CatchingUp);
    assert_eq!(pool.store.catching_up()[0].done_bytes, 0);
    pool.store.finish_commit(commit, Ok(()));
    while pool.store.catch_up_turn() {}
    assert_eq!(pool.state(1), DeviceState::In);
    assert!(read(&pool.alone(1).store, id, 0, 8) == data);
}

#[test]
fn a_device_that_fails_while_catching_up_restarts_when_it_returns() {
    let (pool, id, data) = with_log();
    pool.mirrors.take_out(1, "a test").unwrap();
    write(&pool.store, id, 1024, &distinct(8, 5)).unwrap();
    pool.mirrors.take_back(1).unwrap();
    (0..3).for_each(|_| assert!(pool.store.catch_up_turn()));
    assert!(pool.store.catching_up()[0].done_bytes > 0);
    pool.disks[1].fail_after(0);
    assert!(!pool.store.catch_up_turn());
    assert_eq!((pool.state(1), pool.store.catching_up()), (DeviceState::Out, vec![]));
    pool.disks[1].fail_after(u64::MAX);
    write(&pool.store, id, 1032, &distinct(8, 6)).unwrap();
    pool.mirrors.take_back(1).unwrap();
    pool.come_to_rest();
    assert_eq!(pool.state(1), DeviceState::In);
    let alone = pool.alone(1);
    assert!(read(&alone.store, id, 0, 128) == data);
    assert!(read(&alone.store, id, 1032, 8) == distinct(8, 6));
}

/// The lost device has a record that no other has, and that was given up without it.
#[test]
fn a_record_abandoned_without_a_device_does_not_return_with_it() {
    given_up_and_caught_up(Durability::Commit);
}

/// Then no record without entries is written after the log's end.
#[test]
fn an_abandoned_record_does_not_return_with_early_acknowledgement() {
    given_up_and_caught_up(Durability::Flush);
}

fn given_up_and_caught_up(durability: Durability) {
    let (pool, id, data) = with_log();
    let last = *records(&pool.store).last().unwrap();
    let end = pool.store.writer.lock().log.end().block;
    let disks = pool.crashed();
    for block in last.block..end {
        let at = pool.at(Place::of_block(last.segment, block)) / 4096;
        disks[0].overwrite(at, Frame::zeros());
    }
    let without = open(vec![disks[0].clone()]);
    assert!(read(&without.store, id, 120, 8) == vec![0; 4096]);
    drop(without);
    let pool = open_as(disks, OpenOptions { durability, ..COLD });
    assert_eq!(pool.state(1), DeviceState::CatchingUp);
    // Nothing else runs.
    while pool.store.catch_up_turn() {}
    assert_eq!(pool.state(1), DeviceState::In);
    for disks in [pool.crashed(), vec![pool.disks[1].copy()]] {
        let pool = open(disks);
        assert!(read(&pool.store, id, 0, 120) == data[..120 * 512]);
        assert!(read(&pool.store, id, 120, 8) == vec![0; 4096], "it was read as zeros before");
    }
}

/// A crash tears the header of the last record, and the payload of the next one, which has the only
/// copy of that header left. The next one is given up, so a device that catches up never gets it.
#[test]
fn catching_up_copies_a_record_whose_header_is_only_in_the_next_one() {
    let flush = OpenOptions { durability: Durability::Flush, ..COLD };
    let pool = make(2);
    let id = volume(&pool.store, MIB);
    pool.store.checkpoint().unwrap();
    let disks = pool.crashed();
    let pool = open_as(disks, flush.clone());
    let data = distinct(8, 3);
    write(&pool.store, id, 0, &data).unwrap();
    write(&pool.store, id, 8, &distinct(8, 4)).unwrap();
    let [last, next] = records(&pool.store)[..] else { panic!("two writes are two records") };
    let disks = pool.crashed();
    let header = pool.at(Place::of_block(last.segment, last.block)) / 4096;
    let payload = pool.at(Place::of_block(next.segment, next.block + 1)) / 4096;
    for torn in [header, payload] {
        disks.iter().for_each(|disk| disk.overwrite(torn, Frame::zeros()));
    }
    let without = open_as(vec![disks[0].clone()], flush.clone());
    assert!(read(&without.store, id, 0, 8) == data);
    drop(without);
    let pool = open_as(disks, flush.clone());
    assert_eq!(pool.state(1), DeviceState::CatchingUp);
    while pool.store.catch_up_turn() {}
    assert_eq!(pool.state(1), DeviceState::In);
    for disks in [pool.crashed(), vec![pool.disks[0].copy()], vec![pool.disks[1].copy()]] {
        let pool = open_as(disks, flush.clone());
        assert!(read(&pool.store, id, 0, 8) == data);
        assert!(read(&pool.store, id, 8, 8) == vec![0; 4096], "it was read as zeros before");
        // And the log continues from there.
        write(&pool.store, id, 16, &data).unwrap();
        let pool = pool.reopened();
        assert!(read(&pool.store, id, 16, 8) == data);
        assert_sound(&pool.store);
    }
}

/// A block that no device can read is lost, and does not stop the copying of others.
#[test]
fn a_bad_block_of_the_other_device_does_not_stop_catching_up() {
    let (pool, id, data) = with_log();
    pool.mirrors.take_out(1, "a test").unwrap();
    let place = pool.chunks()[5].1.place;
    pool.disks[0].fail_reads_of(pool.at(place) / 4096);
    pool.mirrors.take_back(1).unwrap();
    while pool.store.catch_up_turn() {}
    assert_eq!(pool.state(1), DeviceState::In);
    pool.disks[0].fail_reads_of(u64::MAX);
    assert!(read(&pool.reopened().store, id, 0, 128) == data, "the first can read it again");
}

/// What a device receives is compared with another one, if there is one; checksums show which is
/// right.
#[test]
fn a_device_receives_correct_data_although_another_one_returns_wrong_data() {
    for liar in [0, 2] {
        let (mut pool, id, data) = with_log_on(3);
        let place = pool.chunks()[5].1.place;
        pool.spoil(liar, place, 100);
        pool.mirrors.take_out(1, "a test").unwrap();
        pool.replace(1, 9);
        while pool.store.catch_up_turn() {}
        assert_eq!(pool.state(1), DeviceState::In);
        for disk in [1, liar] {
            assert!(read(&pool.alone(disk).store, id, 0, 128) == data, "{disk} of {liar}");
        }
        assert_eq!(pool.scrub().len(), 0);
    }
}

/// By the time it would be copied, a freed segment may hold something else.
#[test]
fn segments_freed_since_are_not_copied() {
    let pool = make(2);
    let id = volume(&pool.store, 64 * MIB);
    pool.mirrors.take_out(1, "a test").unwrap();
    for at in 0..24 {
        write(&pool.store, id, at * 2 * MIB, &distinct(2 * MIB, at + 1)).unwrap();
    }
    pool.store.checkpoint().unwrap();
    let segment = pool.chunks()[10_000].1.place.segment;
    pool.mirrors.take_back(1).unwrap();
    assert!(pool.store.catch_up_turn());
    let ranges = vec![SectorRange::new(0, 48 * MIB)];
    pool.store.execute(VolumeRequest::Unmap { volume: id, ranges }).unwrap();
    while pool.store.housekeep() {}
    pool.store.checkpoint().unwrap();
    let row = pool.store.writer.lock().state.segments.row(segment);
    assert_eq!(row.state, format::SegmentState::Free);
    while pool.store.catch_up_turn() {}
    assert_eq!(pool.state(1), DeviceState::In);
    let first = pool.at(Place::of_block(segment, 0)) / 4096;
    let is_there = |block: &u64| (first..first + 4096).contains(block);
    assert!(pool.disks[0].written_blocks().iter().any(is_there));
    assert!(!pool.disks[1].written_blocks().iter().any(is_there));
    assert_sound(&pool.alone(1).store);
}
