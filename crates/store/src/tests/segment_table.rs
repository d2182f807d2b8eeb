//! The segment table: what a checkpoint writes of it, and how far a pool may grow.

mod captured;

use std::collections::BTreeSet;
use std::time::Instant;

use format::geometry::{SEGMENT_BYTES_MIN, SEGMENTS_IN_STREAM_MAX};
use format::segment_row::SEGMENT_ROW_BYTES;
use format::{Features, FormatVersion, Place, SegmentState};

use super::*;
use crate::{StoreError, Tuning};

/// Makes a pool of `count` segments.
fn pool_of_segments(count: u64) -> (Arc<MemoryDisk>, Store) {
    pool(count * SEGMENT_BYTES_MIN)
}

const SMALL_BYTES: u64 = 64 << 10;

fn small() -> OpenOptions {
    OpenOptions { tuning: Tuning::SMALL, ..OpenOptions::default() }
}

fn bytes_of_small(count: u64) -> u64 {
    SEGMENT_BYTES_MIN + (count - 1) * SMALL_BYTES
}

/// Makes a pool of `count` small segments.
fn pool_of_small(count: u64) -> (Arc<MemoryDisk>, Store) {
    let disk = MemoryDisk::new(bytes_of_small(count));
    Store::create_with_segments(&*disk, &[5; 64], SMALL_BYTES).unwrap();
    let store = Store::open(disk.clone(), small()).unwrap();
    (disk, store)
}

#[test]
fn a_checkpoint_writes_only_changes_of_a_large_segment_table() {
    let (disk, store) = pool_of_segments(65_536);
    let id = volume(&store, 64 * MIB);
    let written = || store.pool_status().written.checkpoint_bytes;
    for round in 0..20 {
        write(&store, id, round * 8, &distinct(8, round + 1)).unwrap();
        let before = written();
        store.checkpoint().unwrap();
        let bytes = written() - before;
        assert!(bytes < 100 << 10, "{bytes} bytes for one change");
    }
    assert_sound(&store);
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert_eq!(read(&store, id, 19 * 8, 8), distinct(8, 20));
    assert_sound(&store);
}

/// Makes the log continue in segments from `first` on: those below are taken, and hold nothing.
fn go_on_behind(store: &Store, first: u32) {
    let mut writer = store.writer.lock();
    let segments = &mut writer.state.segments;
    while segments.open(SegmentState::Log, 1).unwrap() < first {}
}

/// Returns the segments of the log that hold live blocks.
fn log_segments(store: &Store) -> BTreeSet<u32> {
    let writer = store.writer.lock();
    let rows = writer.state.segments.rows();
    let live = rows.filter(|(_, row)| row.state == SegmentState::Log && row.live_units > 0);
    live.map(|(segment, _)| segment).collect()
}

#[test]
fn a_pool_grows_past_65_536_segments() {
    let (disk, store) = pool_of_small(SEGMENTS_IN_STREAM_MAX - 6);
    let id = volume(&store, 64 * MIB);
    (0..40).for_each(|at| write(&store, id, at * 8, &distinct(8, at + 1)).unwrap());
    store.checkpoint().unwrap();
    for count in [65_537, 70_000] {
        store.grow(bytes_of_small(count)).unwrap();
        assert_eq!(store.world.medium.geometry().segment_count, count as u32);
        assert_sound(&store);
    }
    go_on_behind(&store, 66_000);
    (40..120).for_each(|at| write(&store, id, at * 8, &distinct(8, at + 1)).unwrap());
    let holds = |store: &Store| {
        let segments = log_segments(store);
        let ends = [segments.first(), segments.last()];
        assert!(*ends[0].unwrap() < 65_536 && *ends[1].unwrap() > 66_000, "{ends:?}");
        for at in 0..120 {
            assert!(read(store, id, at * 8, 8) == distinct(8, at + 1), "block {at}");
        }
        assert_sound(store);
    };
    holds(&store);
    let store = Store::open(disk.copy(), small()).unwrap();
    holds(&store);
    store.checkpoint().unwrap();
    drop(store);
    let store = Store::open(disk, small()).unwrap();
    holds(&store);
    while store.housekeep() {}
    store.checkpoint().unwrap();
    holds(&store);
}

#[test]
fn a_pool_that_began_small_grows_past_1_tib() {
    let (disk, store) = pool(512 << 20);
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    store.grow(2 << 40).unwrap();
    assert_eq!(store.world.medium.geometry().segment_count, 131_072);
    go_on_behind(&store, 131_000);
    (0..10).for_each(|at| write(&store, id, at * 8, &distinct(256, at + 1)).unwrap());
    store.checkpoint().unwrap();
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert_eq!(read(&store, id, 0, 8), distinct(256, 1)[..4096]);
    assert_sound(&store);
    assert!(matches!(store.grow(1 << 40), Err(StoreError::Size(_))));
}

#[test]
fn a_pool_may_be_larger_than_256_tib() {
    let (disk, store) = pool(300 << 40);
    assert_eq!(store.world.medium.geometry().segment_count, 76_800);
    let id = volume(&store, 64 << 31);
    write(&store, id, (64 << 31) - 8, &distinct(8, 1)).unwrap();
    store.checkpoint().unwrap();
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert_eq!(read(&store, id, (64 << 31) - 8, 8), distinct(8, 1));
    store.grow(400 << 40).unwrap();
    assert_sound(&store);
}

#[test]
fn a_pool_without_the_table_has_at_most_65_536_segments() {
    let disk = MemoryDisk::new(bytes_of_small(65_530));
    let features = Features { incompatible: Features::LEAVES, ..Features::default() };
    let of = (FormatVersion::V3, features);
    Store::create_with(&*disk, &[5; 64], SMALL_BYTES, of).unwrap();
    let as_it_is = OpenOptions { upgrade: false, ..small() };
    let store = Store::open(disk, as_it_is).unwrap();
    let refused = store.grow(bytes_of_small(65_537)).unwrap_err();
    assert!(matches!(refused, StoreError::Size(_)), "{refused}");
    store.grow(bytes_of_small(65_536)).unwrap();
    assert!(store.upgrade().unwrap());
    store.grow(bytes_of_small(65_537)).unwrap();
    assert_sound(&store);
}

#[test]
fn check_reports_rows_that_differ_from_the_stored_data() {
    let (_disk, store) = pool(1 << 30);
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
    assert_sound(&store);
    store.writer.lock().state.segments.open(SegmentState::Log, 1).unwrap();
    assert_sound(&store);
    store.writer.lock().state.segments.take_changed_pages();
    let findings = store.check(CheckOptions::default()).unwrap().findings;
    let what = "page 0 of level 0 of the segment table differs from what was captured";
    assert_eq!(findings, [what]);
}

/// Opens a pool after a byte of segment 1's row was changed, and the checksum recomputed with the
/// pool's key.
fn with_other_row(at: usize, value: u8) -> Result<Store, StoreError> {
    let (disk, store) = pool(256 << 20);
    store.checkpoint().unwrap();
    let mut superblock = store.checkpointing.lock().superblock().clone();
    assert_eq!(superblock.segment_table.height, 0);
    let page = &mut superblock.segment_table.page;
    let medium = &store.world.medium;
    let mut bytes = medium.read_page(*page).unwrap().content.into_mut();
    bytes[SEGMENT_ROW_BYTES + at] = value;
    page.checksum = medium.keys.page_sum(&bytes[..]);
    let (frame, geometry) = (bytes.freeze(), medium.geometry());
    for place in [Some(page.place), geometry.copy_of(page.place, 4096)] {
        disk.overwrite(geometry.offset_bytes(place.unwrap()) / 4096, frame.clone());
    }
    for at in format::superblock::SUPERBLOCK_OFFSETS_BYTES {
        disk.overwrite(at / 4096, FrameMut::from_bytes(&superblock.encode()).freeze());
    }
    drop(store);
    Store::open(disk, OpenOptions::default())
}

#[test]
fn a_segment_row_with_unknown_values_is_refused_and_reported() {
    assert_sound(&with_other_row(0, 1).unwrap());
    for (at, value, what) in [
        (2, 1, "a segment in an unknown layout"),
        (4, 1, "a segment in an unknown layout"),
        (32, 1, "a segment row with unknown bytes"),
        (53, 1, "the row of another segment"),
        (127, 1, "a segment row with unknown bytes"),
        (11, 255, "segment 1 counts more than it holds"),
    ] {
        let Err(StoreError::Damaged(text)) = with_other_row(at, value) else {
            panic!("byte {at} is accepted");
        };
        assert!(text.contains(what) && text.contains("segment 1"), "{text}");
    }
}

/// Not a test of behaviour: prints bytes and time of a checkpoint after one write of 4 KiB, in
/// pools of various numbers of segments. `--ignored --nocapture` runs it.
#[test]
#[ignore = "a measurement"]
fn measure_checkpoint_of_segments() {
    for segments in [1000, 65_536, 655_360] {
        let (_disk, store) = pool_of_segments(segments.min(1000));
        if segments > 1000 {
            store.grow(segments * SEGMENT_BYTES_MIN).unwrap();
        }
        let id = volume(&store, 64 * MIB);
        let mut times = Vec::new();
        let mut before = 0;
        for round in 0..=20 {
            #[allow(clippy::disallowed_methods)]
            let now = Instant::now;
            write(&store, id, round * 8, &distinct(8, round + 1)).unwrap();
            let began = now();
            store.checkpoint().unwrap();
            times.push(began.elapsed());
            // The first one has more to write.
            if round == 0 {
                before = store.pool_status().written.checkpoint_bytes;
                times.clear();
            }
        }
        let bytes = (store.pool_status().written.checkpoint_bytes - before) / 20;
        times.sort_unstable();
        println!("{segments} segments: {bytes} bytes, {:?} (median of 20)", times[10]);
    }
}
