//! Pools of earlier format versions: they are readable as they are, and become pools of the latest
//! version while they are in use.

use std::collections::BTreeMap;

use format::{FormatVersion, SegmentState};

use super::features::{V3, V3_LEAVES, V3_SEGMENT_TABLE};
use super::*;
use crate::{Next, ScrubStep, Tuning};

/// A pool of version 2 as left by the last program of that version when it was killed: volumes,
/// snapshots and clones, compressed and shared data, patterns, zeros and holes, a persistent
/// reservation, and 15 records after the last checkpoint. It has each block that is not zeros,
/// after its number (4 bytes).
const V2: &[u8] = include_bytes!("golden/v2.zst");

/// What that program read of each volume: a hash of all blocks that are not zeros ([`hash`]).
const V2_HOLDS: [(u64, u64); 9] = [
    (2, 0xb274_670f_f1c4_c2ec),
    (3, 0x79c7_48a5_2785_1a20),
    (4, 0xe481_9a81_859c_06aa),
    (5, 0x80e8_4875_b834_e8e8),
    (6, 0xc21f_511d_7f67_ecd8),
    (7, 0x41fb_d955_ad57_3a68),
    (8, 0xc21f_511d_7f67_ecd8),
    (9, 0xe481_9a81_859c_06aa),
    (10, 0x682b_b344_30b9_03a8),
];

pub(super) fn golden(packed: &[u8]) -> Arc<MemoryDisk> {
    let disk = MemoryDisk::new(1 << 30);
    let blocks = zstd::bulk::decompress(packed, 4 << 20).unwrap();
    for held in blocks.chunks_exact(4 + 4096) {
        let at = u32::from_le_bytes(held[..4].try_into().unwrap());
        disk.overwrite(at.into(), FrameMut::from_bytes(&held[4..]).freeze());
    }
    disk
}

fn golden_v2() -> Arc<MemoryDisk> {
    golden(V2)
}

/// FNV-1a over words of 64 bits: the number of each block that is not zeros, and its content.
pub(super) fn hash(store: &Store, id: u64) -> u64 {
    let volume = VolumeId(id);
    let sectors = store.volume_status(volume).unwrap().size.0;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| hash = (hash ^ word).wrapping_mul(0x0100_0000_01b3);
    let mut left = SectorRange::new(0, sectors);
    while !left.is_empty() {
        let request = VolumeRequest::Extents { volume, range: left, limit: 1 };
        let Ok(VolumeReply::Extents(extents)) = store.execute(request) else { panic!("no extent") };
        let extent = left.take_front(extents[0].range.count.0.min(256 * 8));
        // Skips a hole of any length at once.
        if extents[0].state != block::LbaState::Mapped {
            left.take_front(extents[0].range.count.0 - extent.count.0);
            continue;
        }
        let bytes = read(store, volume, extent.start.0, extent.count.0);
        for (index, block) in bytes.chunks_exact(4096).enumerate() {
            if block.iter().any(|byte| *byte != 0) {
                add(extent.start.0 / 8 + index as u64);
                let words = block.chunks_exact(8);
                words.for_each(|word| add(u64::from_le_bytes(word.try_into().unwrap())));
            }
        }
    }
    hash
}

fn assert_holds_all_of_v2(store: &Store) {
    let held: Vec<(u64, u64)> = V2_HOLDS.iter().map(|(id, _)| (*id, hash(store, *id))).collect();
    assert_eq!(held, V2_HOLDS);
    assert_sound(store);
}

pub(super) fn options(upgrade: bool) -> OpenOptions {
    OpenOptions { upgrade, ..OpenOptions::default() }
}

/// Runs maintenance until nothing is left to do.
pub(super) fn settle(store: &Store) {
    for _ in 0..10_000 {
        if store.maintain().unwrap() == Next::Nothing {
            return;
        }
    }
    panic!("maintenance never ends");
}

/// Asserts that all metadata is written twice, and both copies are right.
pub(super) fn assert_stands_twice(store: &Store) {
    assert_eq!(store.upgrade_status().left_bytes, 0);
    let rows: Vec<_> = store.writer.lock().state.segments.rows().collect();
    let metadata = rows.iter().filter(|(_, row)| row.state == SegmentState::Metadata);
    assert!(metadata.clone().all(|(_, row)| row.mirrored || row.live_units == 0));
    assert!(metadata.count() > 0);
    assert!(store.scrub_start(1));
    while store.scrub_step(1 << 20, 2).unwrap() != ScrubStep::Complete {}
    assert_eq!(store.damage().findings, []);
}

#[test]
fn a_pool_of_version_2_is_read_as_it_is() {
    let disk = golden_v2();
    let before = disk.copy();
    let store = Store::load(disk.clone(), options(true)).unwrap();
    assert_holds_all_of_v2(&store);
    drop(store);
    assert!(disk.same_as(&before), "inspection changed the pool");
}

#[test]
fn a_pool_of_version_2_stays_one_if_not_upgraded() {
    let disk = golden_v2();
    for _ in 0..2 {
        let store = Store::open(disk.clone(), options(false)).unwrap();
        assert_eq!(store.upgrade_status().version, 2);
        write(&store, VolumeId(10), 8 * 900, &distinct(8, 1)).unwrap();
        settle(&store);
        store.checkpoint().unwrap();
        write(&store, VolumeId(10), 8 * 900, &[0; 4096]).unwrap();
        assert_holds_all_of_v2(&store);
    }
}

#[test]
fn a_pool_of_version_2_becomes_one_of_version_3_when_it_is_opened() {
    let disk = golden_v2();
    let store = Store::open(disk.clone(), options(true)).unwrap();
    assert_eq!(store.upgrade_status().version, 3);
    assert!(store.upgrade_status().left_bytes > 0);
    assert_holds_all_of_v2(&store);
    settle(&store);
    assert_stands_twice(&store);
    assert_holds_all_of_v2(&store);
    drop(store);
    let store = Store::open(disk, options(true)).unwrap();
    assert_stands_twice(&store);
    assert_holds_all_of_v2(&store);
}

#[test]
fn a_pool_of_version_2_becomes_one_of_version_3_while_it_is_used() {
    let disk = golden_v2();
    let store = Store::open(disk.clone(), options(false)).unwrap();
    write(&store, VolumeId(10), 8 * 900, &distinct(8, 1)).unwrap();
    assert!(store.upgrade().unwrap());
    assert!(!store.upgrade().unwrap(), "the pool is already of version 3");
    write(&store, VolumeId(10), 8 * 900, &[0; 4096]).unwrap();
    // The log has records of both versions.
    drop(store);
    let store = Store::open(disk.clone(), options(false)).unwrap();
    assert_eq!(store.upgrade_status().version, 3);
    assert_holds_all_of_v2(&store);
    settle(&store);
    assert_stands_twice(&store);
}

/// The device ends at each write of an upgrade: what is left is a pool of either version.
#[test]
fn an_interrupted_upgrade_leaves_a_pool_of_either_version() {
    let mut versions = BTreeMap::new();
    for writes in 0..60 {
        let disk = golden_v2();
        disk.fail_after(writes);
        if let Ok(store) = Store::open(disk.clone(), options(true)) {
            while matches!(store.maintain(), Ok(next) if next != Next::Nothing) {}
        }
        let left = disk.copy();
        let store = Store::open(left.clone(), options(false)).unwrap();
        *versions.entry(store.upgrade_status().version).or_insert(0) += 1;
        assert_holds_all_of_v2(&store);
        drop(store);
        let store = Store::open(left, options(true)).unwrap();
        settle(&store);
        assert_stands_twice(&store);
        assert_holds_all_of_v2(&store);
    }
    assert!(versions[&2] > 0 && versions[&3] > 0, "{versions:?}");
}

/// More metadata than one pass empties, in small segments.
#[test]
fn an_upgrade_of_many_segments_ends_and_survives_restarts() {
    let disk = MemoryDisk::new((16 << 20) + (512 << 16));
    Store::create_as(&*disk, &[5; 64], 64 << 10, FormatVersion::V2).unwrap();
    let small = |upgrade| OpenOptions { tuning: Tuning::SMALL, ..options(upgrade) };
    let store = Store::open(disk.clone(), small(false)).unwrap();
    let id = volume(&store, 64 * MIB);
    for at in 0..1500 {
        write(&store, id, at * 7 % 1024 * 128, &distinct(8, at + 1)).unwrap();
        if at % 100 == 0 {
            store.checkpoint().unwrap();
        }
    }
    let segments = store.writer.lock().state.segments.tally().metadata.len();
    assert!(segments > 4, "{segments}");
    drop(store);
    for turns in [1, 3, 10, 100_000] {
        let store = Store::open(disk.clone(), small(true)).unwrap();
        for _ in 0..turns {
            if store.maintain().unwrap() == Next::Nothing {
                break;
            }
        }
        assert_sound(&store);
    }
    let store = Store::open(disk, small(true)).unwrap();
    assert_stands_twice(&store);
    for at in 476..1500 {
        let start = at * 7 % 1024 * 128;
        assert!(read(&store, id, start, 8) == distinct(8, at + 1), "block {at}");
    }
}

#[test]
fn inspect_reports_the_format() {
    let format = |disk: &Arc<MemoryDisk>| {
        let report = crate::inspect(disk.clone(), crate::InspectOptions::default()).unwrap();
        let text = report.to_string();
        let line = text.lines().find_map(|line| line.strip_prefix("superblock  0: format "));
        line.and_then(|line| line.split(", sequence").next()).unwrap().to_owned()
    };
    assert_eq!(format(&golden_v2()), "2");
    let disk = golden(V3);
    assert_eq!(format(&disk), "3");
    drop(Store::open(disk.clone(), options(true)).unwrap());
    assert_eq!(format(&disk), "3 with labels, leaves, segment-table");
    assert_eq!(format(&golden(V3_LEAVES)), "3 with leaves");
    assert_eq!(format(&golden(V3_SEGMENT_TABLE)), "3 with leaves, segment-table");
}

#[test]
fn inspect_reports_the_device_label() {
    let labels = |disk: &Arc<MemoryDisk>| -> Vec<String> {
        let report = crate::inspect(disk.clone(), crate::InspectOptions::default()).unwrap();
        let text = report.to_string();
        text.lines().filter(|line| line.starts_with("label ")).map(str::to_owned).collect()
    };
    assert_eq!(labels(&golden(V3)), Vec::<String>::new());
    let (disk, store) = pool(1 << 30);
    let device = format::DeviceId::first_of(store.pool_id);
    drop(store);
    disk.flip_one(format::label::LABEL_OFFSETS_BYTES[1], 5);
    let first = format!("label       0: device 0 of 1, {device}, epoch 0");
    assert_eq!(labels(&disk), [&first, "label       1: no label at byte 0"]);
}

#[test]
fn pools_of_later_versions_are_refused_and_distinguished_from_other_data() {
    let changes: [fn(&mut format::Superblock); 2] = [
        |superblock| superblock.features.incompatible = 1 << 50,
        |superblock| superblock.features.read_compatible = 1 << 50,
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let (disk, store) = pool(1 << 30);
        drop(store);
        let mut later = super::damaged::superblock(&disk);
        change(&mut later);
        for at in format::superblock::SUPERBLOCK_OFFSETS_BYTES {
            disk.overwrite(at / 4096, FrameMut::from_bytes(&later.encode()).freeze());
        }
        let opened = Store::open(disk.clone(), OpenOptions::default());
        assert!(matches!(opened, Err(crate::StoreError::Newer(_))), "{index}");
        // A pool with only read-compatible features may be inspected.
        let looked = Store::load(disk, OpenOptions::default());
        assert_eq!(looked.is_ok(), index == 1);
    }
}
