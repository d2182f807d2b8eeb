//! Where the log ends, and where it only seems to: damage to headers, superblocks, and the segments
//! around them.

use format::geometry::UNITS_PER_BLOCK;
use format::superblock::SUPERBLOCK_OFFSETS_BYTES;
use format::{Geometry, LogPosition, Place};

use super::*;
use crate::StoreError;

/// Flips a bit of a record's header.
fn spoil(disk: &MemoryDisk, store: &Store, at: LogPosition) {
    let place = Place { segment: at.segment, offset_units: at.block * UNITS_PER_BLOCK };
    flip(disk, store.world.medium.geometry().offset_bytes(place) + 100);
}

fn flip(disk: &MemoryDisk, byte: u64) {
    disk.flip(byte, 0);
}

fn is_refused(disk: &Arc<MemoryDisk>) -> bool {
    match Store::open(disk.clone(), OpenOptions::default()) {
        Ok(_) => false,
        Err(StoreError::Damaged(text)) => text.contains("was flushed but can't be read"),
        Err(other) => panic!("{other}"),
    }
}

fn position(store: &Store) -> LogPosition {
    store.writer.lock().log.position()
}

/// Writes until the next record begins a segment, and returns where it will be.
fn fill_segment(store: &Store, id: VolumeId) -> LogPosition {
    let mut seed = 1;
    let mut before = position(store);
    loop {
        write(store, id, 0, &distinct(2048, seed)).unwrap();
        let now = position(store);
        if now.segment != before.segment {
            return LogPosition { segment: now.segment, block: 0, ..before };
        }
        (before, seed) = (now, seed + 1);
    }
}

/// The first record of a segment is proven by later ones, in the segment that it is in.
#[test]
fn the_loss_of_a_segments_first_record_is_detected() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 8 * MIB);
    let first = fill_segment(&store, id);
    (0..3).for_each(|at| write(&store, id, at * 8, &distinct(8, 7000 + at)).unwrap());
    spoil(&disk, &store, first);
    drop(store);
    assert!(is_refused(&disk), "later acknowledged writes would be rolled back silently");
}

/// Like the one before, with a gap over the rest of one segment and all of the next: the later
/// records name the segments that they are in.
#[test]
fn witnesses_are_searched_in_segments_that_records_name() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 8 * MIB);
    let first = fill_segment(&store, id);
    let second = fill_segment(&store, id);
    assert_ne!(first.segment, second.segment);
    write(&store, id, 0, &distinct(8, 9000)).unwrap();
    let end = position(&store);
    spoil(&disk, &store, first);
    // Only the record that begins the second segment, and the next one, are left of it.
    for block in 1..4096 {
        let at = LogPosition { block, ..first };
        let header = crate::log::log_reader::LogReader::new(&store.world.medium)
            .record_at(at.segment, at.block)
            .unwrap()
            .map(|found| (found.header, found.entries));
        if let Some((header, _)) = header
            && header.lsn + 3 < end.lsn
            && header.lsn > first.lsn + 1
        {
            spoil(&disk, &store, at);
        }
    }
    drop(store);
    assert!(is_refused(&disk));
}

/// A pool of more than 4 TiB has segments of more than 64 MiB: the log may end anywhere in them.
#[test]
fn the_loss_of_a_record_is_detected_anywhere_in_a_large_segment() {
    let disk = MemoryDisk::new(9 << 40);
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    assert!(store.world.medium.geometry().part_bytes > 64 << 20);
    let id = volume(&store, 128 * MIB);
    let mut seed = 0;
    while position(&store).block < 17_000 {
        seed += 1;
        write(&store, id, 0, &distinct(2048, seed)).unwrap();
    }
    let at = position(&store);
    (0..3).for_each(|at| write(&store, id, at * 8, &distinct(8, 7000 + at)).unwrap());
    spoil(&disk, &store, at);
    drop(store);
    assert!(is_refused(&disk));
}

/// The check of a pool that is not in use reads all of the log, also what recovery trusts.
#[test]
fn check_verifies_the_log_and_its_payload() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    let at = position(&store);
    // Overwritten at once: no map references the damaged block any longer, and recovery trusts it.
    (0..3).for_each(|seed| write(&store, id, 0, &distinct(8, seed + 1)).unwrap());
    let payload = Place { segment: at.segment, offset_units: (at.block + 1) * UNITS_PER_BLOCK };
    flip(&disk, store.world.medium.geometry().offset_bytes(payload) + 5);
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    let report = store.check(CheckOptions::default()).unwrap();
    assert_eq!(report.records, 4);
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert!(finding.contains(&format!("payload of record {}", at.lsn)), "{finding}");
}

/// Either copy of the superblock may be lost at any time: right after opening, after a checkpoint,
/// and after growing. The pool opens from the other one, with all acknowledged writes.
#[test]
fn either_superblock_may_be_lost_at_any_time() {
    for copy in SUPERBLOCK_OFFSETS_BYTES {
        let disk = MemoryDisk::new(512 << 20);
        Store::create(&*disk, &[7; 64]).unwrap();
        flip(&disk, copy + 77);
        let mut store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
        let id = volume(&store, 8 * MIB);
        for round in 0..6 {
            let data = distinct(256, round + 1);
            write(&store, id, round * 256, &data).unwrap();
            match round {
                2 => store.checkpoint().unwrap(),
                3 => store.grow(1 << 30).unwrap(),
                4 => {
                    // The log that led to this state is gone.
                    store.checkpoint().unwrap();
                    fill_segment(&store, id);
                    fill_segment(&store, id);
                    write(&store, id, 0, &[0; 1 << 20]).unwrap();
                    (0..=round).for_each(|round| {
                        write(&store, id, round * 256, &distinct(256, round + 1)).unwrap();
                    });
                    store.checkpoint().unwrap();
                }
                _ => {}
            }
            drop(store);
            flip(&disk, copy + 77 + round);
            store = Store::open(disk.clone(), OpenOptions::default())
                .unwrap_or_else(|error| panic!("copy at {copy}, round {round}: {error}"));
            for round in 0..=round {
                assert!(read(&store, id, round * 256, 256) == distinct(256, round + 1));
            }
            assert_sound(&store);
        }
    }
}

/// A power loss tears the last record's data, and leaves its header: the record was not
/// acknowledged, and does not exist.
#[test]
fn a_record_whose_data_is_torn_is_not_followed() {
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(64, 1)).unwrap();
    let LogPosition { segment, block, .. } = position(&store);
    write(&store, id, 0, &distinct(64, 2)).unwrap();
    drop(store);
    // The header takes one block.
    let place = Place { segment, offset_units: (block + 1 + 5) * UNITS_PER_BLOCK };
    flip(&disk, Geometry::for_capacity(256 << 20).unwrap().offset_bytes(place));
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    assert!(read(&store, id, 0, 64) == distinct(64, 1));
    write(&store, id, 0, &distinct(64, 3)).unwrap();
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert!(read(&store, id, 0, 64) == distinct(64, 3));
    assert_sound(&store);
}

/// Writes the first record of a new pool, and returns its position.
fn first_record(store: &Store) -> LogPosition {
    let id = volume(store, MIB);
    write(store, id, 0, &distinct(8, 1)).unwrap();
    store.checkpointing.lock().superblock().log
}

#[test]
fn a_record_of_another_chain_is_not_followed() {
    let (_, store) = pool(1 << 30);
    let at = first_record(&store);
    let mut reader = crate::log::log_reader::LogReader::new(&store.world.medium);
    assert!(reader.record(&at, 0).unwrap().is_some());
    let previous = format::Seal([9; 16]);
    assert!(reader.record(&LogPosition { previous, ..at }, 0).unwrap().is_none());
    assert!(reader.record(&LogPosition { lsn: at.lsn + 1, ..at }, 0).unwrap().is_none());
}

#[test]
fn a_record_of_an_abandoned_epoch_is_not_followed() {
    let (_, store) = pool(1 << 30);
    let at = first_record(&store);
    let epoch = store.pool_status().epoch;
    let mut reader = crate::log::log_reader::LogReader::new(&store.world.medium);
    let mut next = |epoch| crate::log::replay::next_record(&mut reader, &at, epoch).unwrap();
    assert!(next(epoch).is_some());
    assert!(next(epoch + 1).is_none());
}

/// A recovery that writes a checkpoint half-way keeps the proof that a record was lost, also in a
/// segment that only records after the lost one name.
#[test]
fn a_checkpoint_during_recovery_keeps_the_witnesses() {
    let (disk, store) = pool(1 << 30);
    drop(store);
    let options = OpenOptions { durability: crate::Durability::Flush, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options.clone()).unwrap();
    let id = volume(&store, 8 * MIB);
    // Nothing is flushed until the last record but one: only that one is a witness.
    let first = fill_segment(&store, id);
    let second = fill_segment(&store, id);
    store.execute(VolumeRequest::Flush { volume: id }).unwrap();
    write(&store, id, 0, &distinct(8, 9000)).unwrap();
    spoil(&disk, &store, first);
    drop(store);
    assert!(is_refused(&disk));

    let disk = segments::Shared::from(disk);
    let superblock = disk.root_copies();
    let superblock = superblock.into_iter().flatten().max_by_key(|found| found.sequence).unwrap();
    let geometry = superblock.geometry;
    disk.lay_out(geometry);
    let medium = crate::chunks::medium::Medium::new(disk, &superblock, options.tuning);
    let mut checkpointer = crate::log::checkpointer::Checkpointer::new(superblock.clone());
    let budgets =
        crate::chunks::memory::Budgets::split(options.memory_bytes, geometry.pool_bytes());
    let (world, state) =
        crate::checkpoint::load::load_checkpoint(medium, budgets, &mut checkpointer).unwrap();
    let (epoch, log) = (superblock.epoch, superblock.log);
    let mut writer = crate::writer::Writer::new(state, epoch, &options, log, &world.medium);
    crate::opening::relief::keep_what_is_ahead(&world, &mut writer).unwrap();
    for segment in [first.segment, second.segment] {
        assert!(writer.log.segments().contains(&segment), "segment {segment} may be written over");
    }
}

/// Returns a pool whose log ends with `left` blocks left in its segment, and the device blocks of
/// the log's end and of the next segment's start.
fn ending_with(left: u32) -> (Arc<MemoryDisk>, VolumeId, [u64; 2]) {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 8 * MIB);
    let blocks = store.world.medium.geometry().blocks_per_segment();
    while blocks - position(&store).block > left {
        let is_far = blocks - position(&store).block > left + 300;
        let sectors = if is_far { 2048 } else { 8 };
        write(&store, id, 0, &distinct(sectors, u64::from(position(&store).block))).unwrap();
    }
    write(&store, id, 0, &distinct(8, 77)).unwrap();
    let at = position(&store);
    let block = |segment, block| {
        let place = Place { segment, offset_units: block * UNITS_PER_BLOCK };
        store.world.medium.geometry().offset_bytes(place) / 4096
    };
    (disk, id, [block(at.segment, at.block), block(at.next_segment, 0)])
}

/// The block after the last record may hold the next one, and nothing shows whether it does. Such a
/// pool was refused as if its device had failed, without a mention of salvage.
#[test]
fn an_unreadable_block_at_the_logs_end_is_damage() {
    let refused = |disk: &Arc<MemoryDisk>| match Store::open(disk.clone(), OpenOptions::default()) {
        Err(StoreError::Damaged(text)) => assert!(text.contains("can't be read"), "{text}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a record may be lost"),
    };
    let (disk, _, [end, _]) = ending_with(3000);
    disk.fail_reads_of(end);
    refused(&disk);
    // The first block of the next segment, if a record may not have fitted after the last one.
    let (disk, id, [_, next]) = ending_with(1000);
    disk.fail_reads_of(next);
    refused(&disk);
    disk.fail_reads_of(u64::MAX);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert!(read(&store, id, 0, 8) == distinct(8, 77));
}

#[test]
fn an_unreadable_block_that_can_hold_no_record_does_not_hide_the_logs_end() {
    let (disk, id, [_, next]) = ending_with(3000);
    disk.fail_reads_of(next);
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    assert!(read(&store, id, 0, 8) == distinct(8, 77));
    assert_sound(&store);
}

/// A location that refuses writes often can't be read either. A record that was written elsewhere
/// is found.
#[test]
fn a_record_is_found_after_a_location_that_is_neither_writable_nor_readable() {
    let (disk, id, [end, _]) = ending_with(3000);
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    disk.refuse_writes_to([end]);
    disk.fail_reads_of(end);
    for round in 0..3 {
        write(&store, id, round * 8, &distinct(8, 500 + round)).unwrap();
    }
    drop(store);
    for _ in 0..2 {
        let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
        for round in 0..3 {
            assert!(read(&store, id, round * 8, 8) == distinct(8, 500 + round));
        }
        assert_sound(&store);
    }
}

/// The known end of the log saves a search, and nothing else.
#[test]
fn a_record_at_the_known_end_of_the_log_is_applied() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 8 * MIB);
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    let log_end = store.log_end();
    assert!(log_end.is_some(), "everything is durable");
    write(&store, id, 8, &distinct(8, 2)).unwrap();
    drop(store);
    let options = OpenOptions { log_end, ..OpenOptions::default() };
    let store = Store::open(disk, options).unwrap();
    assert_eq!(read(&store, id, 0, 8), distinct(8, 1));
    assert_eq!(read(&store, id, 8, 8), distinct(8, 2));
}

/// The end of an earlier epoch hides no loss.
#[test]
fn the_known_end_of_the_log_counts_only_in_its_epoch() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 8 * MIB);
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    let log_end = store.log_end();
    drop(store);
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    assert_eq!(log_end.map(|end| end.position), Some(position(&store)));
    let first = position(&store);
    (0..3).for_each(|at| write(&store, id, at * 8, &distinct(8, 7000 + at)).unwrap());
    spoil(&disk, &store, first);
    drop(store);
    let options = OpenOptions { log_end, ..OpenOptions::default() };
    assert!(Store::open(disk.clone(), options).is_err(), "an acknowledged write would be lost");
}
