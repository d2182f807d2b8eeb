//! Log records that some device lacks.

use format::LogPosition;

use super::*;
use crate::log::log_reader::LogReader;
use crate::log::replay::next_record;

/// Returns the locations of the headers of all records after the checkpoint.
pub(in crate::tests) fn records(store: &Store) -> Vec<LogPosition> {
    let end = store.writer.lock().log.position().lsn;
    let mut at = store.checkpointing.lock().superblock().log;
    let mut reader = LogReader::new(&store.world.medium);
    let mut found = Vec::new();
    while at.lsn < end {
        let record = next_record(&mut reader, &at, 0).unwrap().unwrap();
        at = record.behind();
        found.push(record.at);
    }
    found
}

/// A pool of two devices with records after its checkpoint.
pub(super) fn with_log() -> (Pool, VolumeId, Vec<u8>) {
    with_log_on(2)
}

pub(super) fn with_log_on(count: usize) -> (Pool, VolumeId, Vec<u8>) {
    let pool = make(count);
    let id = volume(&pool.store, MIB);
    pool.store.checkpoint().unwrap();
    let data = distinct(16 * 8, 3);
    for at in 0..16 {
        write(&pool.store, id, at * 8, &data[at as usize * 4096..][..4096]).unwrap();
    }
    (pool, id, data)
}

#[test]
fn a_record_whose_header_is_torn_on_one_device_is_found() {
    let (pool, id, data) = with_log();
    for disk in 0..2 {
        let disks = pool.crashed();
        // Each header, so that no record has a copy of the previous one.
        for at in records(&pool.store) {
            let block = pool.at(Place::of_block(at.segment, at.block)) / 4096;
            disks[disk].overwrite(block, Frame::zeros());
        }
        let pool = open(disks);
        assert!(read(&pool.store, id, 0, 128) == data);
        assert_sound(&pool.store);
    }
}

/// The first record of a segment is searched on all devices.
#[test]
fn the_first_record_of_a_segment_is_found_if_one_device_has_lost_it() {
    let pool = make(2);
    let id = volume(&pool.store, 64 * MIB);
    pool.store.checkpoint().unwrap();
    let data = distinct(2 * MIB, 4);
    for at in 0..12 {
        let mut data = data.clone();
        data.chunks_exact_mut(4096).for_each(|block| block[0] ^= at as u8 + 1);
        write(&pool.store, id, at * 2 * MIB, &data).unwrap();
    }
    let first = records(&pool.store);
    let begins: Vec<_> = first.iter().filter(|at| at.block == 0 && at.lsn > 1).collect();
    assert!(begins.iter().any(|at| at.segment != first[0].segment), "the log has gone on");
    let disks = pool.crashed();
    for at in &first {
        let block = pool.at(Place::of_block(at.segment, at.block)) / 4096;
        disks[0].overwrite(block, Frame::zeros());
    }
    let pool = open(disks);
    for at in 0..12 {
        let found = read(&pool.store, id, at * 2 * MIB, 2 * MIB);
        assert!(found[0] == data[0] ^ (at as u8 + 1) && found[1..4096] == data[1..4096]);
    }
    assert_sound(&pool.store);
}

#[test]
fn a_record_that_only_one_device_has_is_on_all_after_recovery() {
    for (disk, payload_too) in [(0, true), (1, true), (0, false), (1, false)] {
        let (pool, id, data) = with_log();
        let last = *records(&pool.store).last().unwrap();
        let header = Place::of_block(last.segment, last.block);
        let end = pool.store.writer.lock().log.end().block;
        let disks = pool.crashed();
        // As if the crash had come before or during the write to that device.
        let from = last.block + u32::from(!payload_too);
        for block in from..end {
            let at = pool.at(Place::of_block(last.segment, block)) / 4096;
            disks[disk].overwrite(at, Frame::zeros());
        }
        let crashed = pool;
        let pool = open(disks);
        assert!(pool.store.mended_copies() > 0);
        for block in last.block..end {
            assert!(pool.is_alike(Place::of_block(last.segment, block)), "block {block}");
        }
        let is_as_before = crashed.disks[0].block(pool.at(header) / 4096)[..]
            == pool.disks[disk].block(pool.at(header) / 4096)[..];
        assert!(is_as_before, "what was recovered stays as it was");
        assert!(read(&pool.store, id, 0, 128) == data);
        let pool = open(vec![pool.disks[disk].copy()]);
        assert!(read(&pool.store, id, 0, 128) == data, "it has all by itself");
        assert_sound(&pool.store);
    }
}

/// A record that was never acknowledged may be lost, but then on all devices.
#[test]
fn a_record_that_no_device_has_completely_is_dropped() {
    let (pool, id, data) = with_log();
    let last = *records(&pool.store).last().unwrap();
    let disks = pool.crashed();
    let block = pool.at(Place::of_block(last.segment, last.block + 1)) / 4096;
    disks.iter().for_each(|disk| disk.overwrite(block, Frame::zeros()));
    let pool = open(disks);
    assert!(read(&pool.store, id, 0, 120) == data[..120 * 512]);
    assert!(read(&pool.store, id, 120, 8) == vec![0; 4096]);
    assert_sound(&pool.store);
}

#[test]
fn inspection_finds_such_a_record_and_does_not_change_it() {
    let (pool, id, data) = with_log();
    let last = *records(&pool.store).last().unwrap();
    let disks = pool.crashed();
    let block = pool.at(Place::of_block(last.segment, last.block)) / 4096;
    let first = pool.first(Place::of_block(last.segment, last.block));
    disks[first].overwrite(block, Frame::zeros());
    let before = disks[first].copy();
    let store = Store::load(device_set(&disks), COLD).unwrap();
    assert!(read(&store, id, 0, 128) == data);
    assert!(disks[first].same_as(&before));
}

/// Scrubbing checks headers on all devices.
#[test]
fn scrubbing_repairs_a_header_that_one_device_has_lost() {
    let (pool, ..) = with_log();
    let at = records(&pool.store)[7];
    let header = Place::of_block(at.segment, at.block);
    for disk in 0..2 {
        pool.spoil(disk, header, 8);
        let findings = pool.scrub();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].what, crate::What::Record(at.lsn));
        assert_eq!(findings[0].repair, crate::Repair::Done);
        assert!(pool.is_alike(header));
        assert_eq!(pool.scrub(), []);
    }
}
