//! A pool that grows while it is in use.

use super::*;
use sys::Disk;

/// Fills the pool from `start` on; returns the sector at which it is full.
fn fill(store: &Store, id: VolumeId, mut start: u64) -> u64 {
    loop {
        match write(store, id, start, &distinct(MIB, start + 1)) {
            Ok(()) => start += MIB,
            Err(error) => {
                assert_eq!(error, VolumeError::NoSpace);
                return start;
            }
        }
        assert!(start < 600 * MIB, "more than any of these pools holds");
    }
}

fn assert_filled(store: &Store, id: VolumeId, end: u64) {
    for start in (0..end).step_by(MIB as usize) {
        assert!(read(store, id, start, MIB) == distinct(MIB, start + 1), "sector {start}");
    }
}

#[test]
fn a_full_pool_that_grows_continues_and_keeps_all_data_over_a_restart() {
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, 1 << 21);
    let full = fill(&store, id, 0);
    let (used, capacity) = store.space_use();
    assert_eq!(used, capacity, "hosts are refused");
    // Requests that need no space succeed.
    let zero = VolumeRequest::Zero { volume: id, range: SectorRange::new(full, 8), fua: false };
    store.execute(zero).unwrap();
    store.grow(512 << 20).unwrap();
    assert_eq!(disk.len_bytes(), 512 << 20);
    assert_eq!(store.pool_status().capacity_bytes, (512 << 20) - (capacity / 15));
    let (used, capacity) = store.space_use();
    assert!(used < capacity / 2 + (32 << 20), "{used} of {capacity}");
    let end = fill(&store, id, full);
    assert!(end > full + 200 * MIB, "{full}, then {end}");
    assert_filled(&store, id, end);
    assert_sound(&store);
    drop(store);
    // Recovered from the log: the records in the new segments are found.
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    assert_filled(&store, id, end);
    assert_sound(&store);
    store.checkpoint().unwrap();
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert_filled(&store, id, end);
    store.grow(544 << 20).unwrap();
    assert!(fill(&store, id, end) > end);
}

#[test]
fn a_crash_at_any_write_of_growing_leaves_a_pool_that_opens() {
    for writes in 0.. {
        let (disk, store) = pool(256 << 20);
        let id = volume(&store, 1 << 21);
        write(&store, id, 0, &distinct(MIB, 1)).unwrap();
        disk.fail_after(writes);
        let grown = store.grow(512 << 20).is_ok();
        drop(store);
        disk.fail_after(u64::MAX);
        let store = Store::open(disk, OpenOptions::default()).unwrap();
        assert_filled(&store, id, MIB);
        assert_sound(&store);
        let capacity = store.pool_status().capacity_bytes;
        assert!(!grown || capacity > 400 << 20, "{capacity}");
        // After a crash at any write, growing can be retried.
        if capacity < 400 << 20 {
            store.grow(512 << 20).unwrap();
        }
        write(&store, id, MIB, &distinct(MIB, MIB + 1)).unwrap();
        assert_filled(&store, id, 2 * MIB);
        assert_sound(&store);
        if grown {
            assert!(fill(&store, id, 2 * MIB) > 300 * MIB, "more than the old pool held");
            assert!(writes > 1, "a checkpoint and a superblock");
            return;
        }
    }
}

#[test]
fn either_superblock_knows_the_new_segments() {
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, 1 << 21);
    let full = fill(&store, id, 0);
    store.grow(512 << 20).unwrap();
    let end = fill(&store, id, full);
    drop(store);
    for offset in format::superblock::SUPERBLOCK_OFFSETS_BYTES {
        let mut kept = [FrameMut::zeroed()];
        disk.read(offset, &mut kept).unwrap();
        let [kept] = kept;
        let kept = kept.freeze();
        disk.write(offset, &[FrameMut::zeroed().freeze()]).unwrap();
        let store = Store::load(disk.clone(), OpenOptions::default()).unwrap();
        assert_filled(&store, id, end);
        drop(store);
        disk.write(offset, &[kept]).unwrap();
    }
}

#[test]
fn growing_to_less_or_to_too_much_is_refused_and_changes_nothing() {
    let (disk, store) = pool(256 << 20);
    for wrong in [0, 256 << 20, (256 << 20) + 4096, u64::MAX / 4096 * 4096] {
        assert!(matches!(store.grow(wrong), Err(crate::StoreError::Size(_))), "{wrong}");
    }
    assert_eq!(disk.len_bytes(), 256 << 20);
    assert_sound(&store);
}
