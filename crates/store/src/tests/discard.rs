//! Free segments are discarded, and nothing else is.

use super::upgraded::settle;
use super::*;

fn options() -> OpenOptions {
    OpenOptions { discard: true, ..OpenOptions::default() }
}

/// Blocks of the device that hold data, after segment 0.
fn held_blocks(disk: &MemoryDisk) -> usize {
    disk.written_blocks().into_iter().filter(|block| *block >= (16 << 20) / 4096).count()
}

#[test]
fn free_segments_are_discarded_and_others_are_not() {
    let (disk, store) = pool(1 << 30);
    drop(store);
    let store = Store::open(disk.clone(), options()).unwrap();
    let (kept, gone) = (volume(&store, 8 * 2_000), volume(&store, 8 * 60_000));
    write(&store, kept, 0, &distinct(8 * 1_000, 1)).unwrap();
    for part in 0..50 {
        write(&store, gone, part * 8 * 1_000, &distinct(8 * 1_000, part + 2)).unwrap();
    }
    store.checkpoint().unwrap();
    settle(&store);
    assert!(held_blocks(&disk) > 51_000);
    let range = SectorRange::new(0, 8 * 60_000);
    store.execute(VolumeRequest::Unmap { volume: gone, ranges: vec![range] }).unwrap();
    for _ in 0..3 {
        settle(&store);
        store.checkpoint().unwrap();
    }
    settle(&store);
    // The remaining blocks are in segments in use, dead blocks included.
    let used = store.pool_status().allocated_bytes / 4096;
    assert!(held_blocks(&disk) as u64 <= used, "{} blocks, {used} in use", held_blocks(&disk));
    assert!(used < 20_000, "{used}");
    assert!(read(&store, kept, 0, 8 * 1_000) == distinct(8 * 1_000, 1));
    assert_sound(&store);
    drop(store);
    // After a start all free segments are discarded again; written data is still there.
    let store = Store::open(disk.clone(), options()).unwrap();
    settle(&store);
    assert!(read(&store, kept, 0, 8 * 1_000) == distinct(8 * 1_000, 1));
    assert_sound(&store);
}

#[test]
fn nothing_is_discarded_unless_requested() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 8 * 6_000);
    for part in 0..6 {
        write(&store, id, part * 8_000, &distinct(8_000, part + 1)).unwrap();
    }
    let range = SectorRange::new(0, 8 * 6_000);
    store.execute(VolumeRequest::Unmap { volume: id, ranges: vec![range] }).unwrap();
    let before = held_blocks(&disk);
    for _ in 0..3 {
        settle(&store);
        store.checkpoint().unwrap();
    }
    assert!(held_blocks(&disk) >= before);
}

/// A segment can't be opened while it is being discarded, and the last few free segments are never
/// discarded: the log needs them soon.
#[test]
fn a_segment_is_not_free_while_it_is_discarded() {
    let (_disk, store) = pool(1 << 30);
    let mut writer = store.writer.lock();
    let segments = &mut writer.state.segments;
    assert!(!segments.has_to_discard(0), "the pool does not discard");
    segments.enable_discard();
    let free = segments.free_count();
    assert!(segments.has_to_discard(free - 1) && !segments.has_to_discard(free));
    assert_eq!(segments.take_to_discard(free), None);
    let taken = segments.take_to_discard(free - 1).unwrap();
    assert_eq!(segments.free_count(), free - 1);
    let opened: Vec<u32> =
        std::iter::from_fn(|| segments.open(format::SegmentState::Log, 9)).collect();
    assert!(opened.len() as u32 == free - 1 && !opened.contains(&taken));
    segments.discarded(taken, true);
    assert_eq!(segments.free_count(), 1);
    assert_eq!(segments.take_to_discard(0), None, "it is discarded");
    assert_eq!(segments.open(format::SegmentState::Log, 10), Some(taken));
}
