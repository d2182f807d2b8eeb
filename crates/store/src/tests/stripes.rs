//! Pools on four devices and more: columns of data, and two of parity.

mod known_by_next;
mod replayed;

use block::FrameMut;
use format::{Codec, Place};
use segments::{DeviceState, Segments};
use sys::Disk;

use super::mirrors::catch_up::{BLOCKS, Model};
use super::mirrors::records::records;
use super::mirrors::{Pool, devices, make, open};
use super::reduction::prose;
use super::*;
use crate::{Repair, What};

impl Pool {
    /// Returns the number of rows of a segment.
    fn rows(&self) -> u32 {
        self.store.world.medium.geometry().rows()
    }

    /// Returns the disk with a column of a segment; for metadata, with a copy of its first column.
    fn disk_of(&self, segment: u32, column: u32) -> usize {
        (segment + column) as usize % self.disks.len()
    }

    /// Returns the disk that holds a location of the log.
    fn own(&self, place: Place) -> usize {
        self.disk_of(place.segment, place.offset_units / 64 / self.rows())
    }

    fn spoil_own(&self, place: Place) {
        self.disks[self.own(place)].flip_one(self.at(place) + 100, 3);
    }

    /// Returns the pool without two of its disks, as they are now.
    fn without(&self, lost: [usize; 2]) -> Pool {
        let disks = self.disks.iter().enumerate();
        let left = disks.filter(|(at, _)| !lost.contains(at)).map(|(_, disk)| disk.copy());
        open(left.collect())
    }
}

/// Returns all pairs of `count` disks.
fn pairs(count: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..count).flat_map(move |a| (a + 1..count).map(move |b| [a, b]))
}

/// A pool with data in the log only, and data in a checkpoint; uncompressed and compressed.
fn filled(count: usize) -> (Pool, VolumeId, Vec<u8>) {
    let pool = make(count);
    let id = volume(&pool.store, 64 * MIB);
    let mut data = Vec::new();
    for at in 0..24 {
        // Of all sizes, so that records have rows of all lengths.
        let sectors = [8, 8, 24, 200, 520, 2048][at as usize % 6];
        let part = if at % 2 == 0 { prose(sectors, at + 1) } else { distinct(sectors, at + 1) };
        write(&pool.store, id, data.len() as u64 / 512, &part).unwrap();
        data.extend(part);
        if at == 14 {
            pool.store.checkpoint().unwrap();
        }
    }
    (pool, id, data)
}

fn reads(pool: &Pool, id: VolumeId, data: &[u8]) {
    for (at, part) in (0..).zip(data.chunks(1 << 20)) {
        assert!(read(&pool.store, id, at * 2048, part.len() as u64 / 512) == part, "MiB {at}");
    }
}

/// Asserts that it holds everything without any of these pairs.
fn holds(pool: &Pool, pairs: impl Iterator<Item = [usize; 2]>, id: VolumeId, data: &[u8]) {
    for lost in pairs {
        let left = pool.without(lost);
        reads(&left, id, data);
        assert_sound(&left.store);
    }
}

#[test]
fn any_two_of_four_to_six_devices_may_be_lost() {
    for count in 4..=6 {
        let (pool, id, data) = filled(count);
        assert!(pool.chunks().iter().any(|(_, row)| row.codec != Codec::Raw));
        for lost in pairs(count) {
            let left = pool.without(lost);
            reads(&left, id, &data);
            assert_sound(&left.store);
            // And it accepts writes.
            write(&left.store, id, 0, &distinct(64, 77)).unwrap();
            left.store.checkpoint().unwrap();
            assert!(read(&left.reopened().store, id, 0, 64) == distinct(64, 77));
        }
        assert_eq!(pool.scrub(), []);
    }
}

#[test]
fn with_a_third_device_lost_the_pool_does_not_open() {
    let (pool, ..) = filled(5);
    let left = pool.crashed().drain(..2).collect::<Vec<_>>();
    let opened = segments::DeviceSet::open(devices(&left), true);
    assert!(opened.is_err(), "two of five columns give no third");
}

#[test]
fn two_devices_that_fail_while_hosts_write_cost_nothing() {
    for lost in pairs(5) {
        let (pool, id, mut data) = filled(5);
        for (at, disk) in lost.into_iter().enumerate() {
            pool.disks[disk].fail_after(at as u64 * 7);
            for more in 0..8 {
                let part = distinct(40, 100 + more);
                write(&pool.store, id, data.len() as u64 / 512, &part).unwrap();
                data.extend(part);
            }
            assert_eq!(pool.state(disk), DeviceState::Out);
        }
        pool.store.checkpoint().unwrap();
        reads(&pool, id, &data);
        reads(&pool.without(lost), id, &data);
    }
}

#[test]
fn a_wrong_block_is_reconstructed_and_repaired() {
    let (pool, id, data) = filled(6);
    let pool = pool.reopened();
    let chunks = pool.chunks();
    let places: Vec<Place> = chunks.iter().step_by(29).map(|(_, row)| row.place).collect();
    places.iter().for_each(|place| pool.spoil_own(*place));
    reads(&pool, id, &data);
    assert!(pool.store.mended_copies() >= places.len() as u64 / 2);
    let pool = pool.reopened();
    reads(&pool, id, &data);
    assert_eq!((pool.store.mended_copies(), pool.scrub()), (0, vec![]));
}

/// What is reconstructed from the others is wrong too, unless the second bad one is left out as
/// well.
#[test]
fn two_wrong_devices_in_one_row_are_repaired() {
    let (pool, id, data) = filled(6);
    let pool = pool.reopened();
    let place = pool.chunks()[40].1.place;
    for other in 0..6 {
        let disk = pool.disk_of(place.segment, other);
        if disk != pool.own(place) {
            pool.spoil_own(place);
            pool.disks[disk].flip_one(pool.at(place) + 100, 5);
            reads(&pool, id, &data);
            pool.scrub();
            // All of it is right again.
            assert_eq!(pool.scrub(), [], "column {other}");
            let without = [pool.own(place), (disk + 1) % 6];
            reads(&pool.without(without), id, &data);
        }
    }
}

#[test]
fn scrubbing_finds_and_recomputes_wrong_parity() {
    let (pool, id, data) = filled(5);
    let place = pool.chunks()[3].1.place;
    for parity in [3, 4] {
        let disk = pool.disk_of(place.segment, parity);
        pool.disks[disk].flip_one(pool.at(place) + 9, 1);
        reads(&pool, id, &data);
        assert_eq!(pool.store.mended_copies(), 0, "it is never read");
        let findings = pool.scrub();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(matches!(findings[0].what, What::Record(_)), "{findings:?}");
        assert_eq!(findings[0].repair, Repair::Done);
        assert_eq!(pool.scrub(), []);
    }
    pairs(5).for_each(|lost| reads(&pool.without(lost), id, &data));
}

/// After the last record of a segment there may be records of its earlier use, which may differ on
/// a device that has since caught up.
#[test]
fn apparent_records_after_the_last_one_are_not_scrubbed() {
    let (pool, ..) = filled(5);
    let end = pool.store.writer.lock().log.end();
    let geometry = pool.store.world.medium.geometry();
    assert!(end.block > 0 && end.block + 8 < geometry.rows());
    let row_bytes = |row: u32| geometry.part_offset_bytes(end.segment) + u64::from(row) * 4096;
    for (at, disk) in pool.disks.iter().enumerate() {
        for row in 0..8.min(end.block) {
            let mut frame = [FrameMut::stale()];
            disk.read(row_bytes(row), &mut frame).unwrap();
            let [mut frame] = frame;
            if at == pool.disk_of(end.segment, 3) {
                frame[0] ^= 1;
            }
            disk.write(row_bytes(end.block + row), &[frame.freeze()]).unwrap();
        }
    }
    assert_eq!(pool.scrub(), []);
}

/// When the power fails a record may be whole in its data columns, and not in parity.
#[test]
fn opening_recomputes_the_parity_of_the_logs_tail() {
    let pool = make(6);
    let id = volume(&pool.store, MIB);
    pool.store.checkpoint().unwrap();
    let data = distinct(8 * 8, 3);
    (0..8).for_each(|at| {
        write(&pool.store, id, at * 8, &data[at as usize * 4096..][..4096]).unwrap();
    });
    let disks = pool.crashed();
    let last = *records(&pool.store).last().unwrap();
    for parity in [4, 5] {
        let block = pool.at(Place::of_block(last.segment, last.block)) / 4096;
        disks[pool.disk_of(last.segment, parity)].overwrite(block, Frame::zeros());
    }
    let pool = open(disks);
    reads(&pool, id, &data);
    holds(&pool, pairs(6), id, &data);
}

/// The power fails while the row is written, and one disk is out: its header is in parity only, and
/// its two groups are reconstructed from different columns. Repairing the first must not overwrite
/// what the other group needs.
#[test]
fn a_torn_row_reconstructed_from_different_columns_is_not_repaired_piecewise() {
    let pool = make(4);
    let id = volume(&pool.store, MIB);
    pool.store.checkpoint().unwrap();
    // So few bytes of each block that two groups of eight are in one block.
    let mut data = distinct(128, 3);
    data.chunks_mut(4096).for_each(|block| block[200..].fill(0));
    write(&pool.store, id, 0, &data).unwrap();
    let mut disks = pool.crashed();
    let chunks = pool.chunks();
    let [(_, first), .., (_, second)] = &chunks[..] else { panic!("{chunks:?}") };
    let record = *records(&pool.store).last().unwrap();
    let second_at = pool.at(second.place) as usize % 4096;
    assert!(first.place < second.place && second_at > 512, "{first:?} {second:?}");
    let row = pool.at(Place::of_block(record.segment, record.block)) / 4096;
    let [header, payload, _, q] = [0, 1, 2, 3].map(|at| pool.disk_of(record.segment, at));
    disks[header].overwrite(row, Frame::zeros());
    let mut torn = FrameMut::from_bytes(&disks[q].block(row)[..]);
    torn[second_at..].fill(0);
    disks[q].overwrite(row, torn.freeze());
    disks.remove(payload);
    let left = open(disks);
    reads(&left, id, &data);
    assert_sound(&left.store);
}

#[test]
fn two_devices_with_only_wrong_bytes_cost_nothing() {
    for wrong in pairs(4) {
        let (pool, id, data) = filled(4);
        let pool = pool.reopened();
        wrong.iter().for_each(|disk| pool.disks[*disk].scramble());
        reads(&pool, id, &data);
        pool.store.checkpoint().unwrap();
        reads(&pool, id, &data);
    }
}

/// While hosts write, segments are emptied and checkpoints continue.
#[test]
fn replaced_devices_are_rebuilt() {
    let disks: Vec<_> = (0..5).map(|_| MemoryDisk::new(272 << 20)).collect();
    Store::create_on(&devices(&disks), &[7; 64]).unwrap();
    let mut pool = open(disks);
    let id = volume(&pool.store, BLOCKS * 8);
    let mut model = Model { blocks: vec![0; BLOCKS as usize], next: 0 };
    model.write(&pool.store, id, 500);
    pool.store.checkpoint().unwrap();
    for lost in [[0, 3], [1, 2], [4, 0]] {
        for disk in lost {
            pool.mirrors.take_out(disk as u16, "a test").unwrap();
            model.write(&pool.store, id, 60);
        }
        for disk in lost {
            let number = pool.replace(disk, disk as u8);
            assert_eq!(number, disk as u16, "it has the place of the other");
        }
        let mut turns = 0;
        while lost.iter().any(|disk| pool.state(*disk) != DeviceState::In) {
            turns += 1;
            assert!(turns < 20_000, "they never catch up");
            model.write(&pool.store, id, 1);
            match turns % 64 {
                3 => drop(pool.store.reclaim_segment().unwrap()),
                40 => pool.store.checkpoint().unwrap(),
                _ => {}
            }
            pool.store.maintain().unwrap();
        }
        model.write(&pool.store, id, 20);
        model.check(&pool.store, id);
        let without: Vec<usize> = (0..5).filter(|disk| !lost.contains(disk)).collect();
        let left = pool.without([without[0], without[1]]);
        model.check(&left.store, id);
        assert_sound(&left.store);
    }
    pool.come_to_rest();
    assert_eq!(pool.scrub(), []);
    assert_sound(&pool.store);
}

/// A device's missing data is reconstructed from others, one of which differs from what was
/// written: checksums identify that one, and it is repaired too.
#[test]
fn a_device_receives_correct_data_although_another_one_returns_wrong_data() {
    let (mut pool, id, data) = filled(5);
    pool.store.checkpoint().unwrap();
    let place = pool.chunks()[3].1.place;
    let liar = pool.own(place);
    pool.spoil_own(place);
    let lost = (liar + 1) % 5;
    pool.mirrors.take_out(lost as u16, "a test").unwrap();
    pool.replace(lost, 9);
    while pool.store.catch_up_turn() {}
    assert_eq!(pool.state(lost), DeviceState::In);
    // Now both are needed.
    let gone = pairs(5).filter(|gone| !gone.contains(&liar) && !gone.contains(&lost));
    holds(&pool, gone, id, &data);
    assert_eq!(pool.scrub(), []);
}

/// Progress made for the previous device with the same number says nothing about the next one.
#[test]
fn a_device_replaced_while_catching_up_is_rebuilt_from_the_start() {
    let (mut pool, id, data) = filled(4);
    pool.store.checkpoint().unwrap();
    for round in 0..2 {
        pool.mirrors.take_out(1, "a test").unwrap();
        pool.replace(1, round);
        // The loss of the first one is not even noticed.
        (0..3 + round * 100).for_each(|_| _ = pool.store.catch_up_turn());
        assert!(round > 0 || pool.state(1) == DeviceState::CatchingUp);
    }
    while pool.store.catch_up_turn() {}
    assert_eq!(pool.state(1), DeviceState::In);
    for other in [0, 2, 3] {
        let rest: Vec<usize> = [0, 2, 3].into_iter().filter(|at| *at != other).collect();
        let left = pool.without([rest[0], rest[1]]);
        reads(&left, id, &data);
        assert_sound(&left.store);
    }
}

/// Others have it, but that device could not be opened by itself.
#[test]
fn superblocks_are_checked_on_each_device() {
    let (pool, id, data) = filled(5);
    pool.store.checkpoint().unwrap();
    for offset_bytes in format::superblock::SUPERBLOCK_OFFSETS_BYTES {
        pool.disks[3].flip_one(offset_bytes + 40, 2);
    }
    let found = pool.scrub();
    assert!(
        matches!(found[..], [ref one] if matches!(one.what, What::Superblock(_))
        && one.repair == Repair::Done),
        "{found:?}"
    );
    assert_eq!(pool.scrub(), []);
    // Two of those that were intact are lost.
    let left = pool.without([0, 1]);
    reads(&left, id, &data);
    drop(left);
    let alone = segments::DeviceSet::open(devices(&pool.disks[3..4]), true);
    assert!(alone.is_err());
    let copies = segments::Local::over(pool.disks[3].clone()).root_copies();
    assert!(copies.iter().any(Result::is_ok), "{copies:?}");
}
