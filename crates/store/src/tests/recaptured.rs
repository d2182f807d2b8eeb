//! Checkpoints of which the device refuses a part, where segments are few: the segments they opened
//! become free again.

use format::SegmentState;
use format::geometry::{SEGMENT_BYTES_MIN, UNITS_PER_BLOCK};

use super::*;
use crate::{StoreError, Tuning};

const SEGMENT_BYTES: u64 = 64 << 10;
const SEGMENT_BLOCKS: u32 = (SEGMENT_BYTES / 4096) as u32;
const SEGMENTS: u64 = 96;
/// Each in a leaf of its own.
const BLOCKS_WRITTEN: u64 = 40;

fn options() -> OpenOptions {
    OpenOptions { tuning: Tuning::SMALL, ..OpenOptions::default() }
}

struct Bench {
    disk: Arc<MemoryDisk>,
    store: Store,
    volume: VolumeId,
}

impl Bench {
    /// A pool in which much metadata has changed.
    fn new() -> Self {
        let disk = MemoryDisk::new(SEGMENT_BYTES_MIN + SEGMENTS * SEGMENT_BYTES);
        Store::create_with_segments(&*disk, &[5; 64], SEGMENT_BYTES).unwrap();
        let store = Store::open(disk.clone(), options()).unwrap();
        let volume = volume(&store, 8 * MIB);
        let bench = Self { disk, store, volume };
        bench.write_all(1);
        bench
    }

    fn write_all(&self, round: u64) {
        for at in 0..BLOCKS_WRITTEN {
            write(&self.store, self.volume, at * 64, &distinct(8, round * 1000 + at)).unwrap();
        }
    }

    fn claim(&self) -> u32 {
        self.store.writer.lock().exact_claim(&self.store.world).segments
    }

    fn free(&self) -> Vec<u32> {
        let writer = self.store.writer.lock();
        let rows = writer.state.segments.rows();
        let free = rows.filter(|(at, row)| *at > 0 && row.state == SegmentState::Free);
        free.map(|(at, _)| at).collect()
    }

    /// Takes all free segments, the lowest first, except `count`.
    fn take_all_free_but(&self, count: usize) {
        let mut writer = self.store.writer.lock();
        while writer.state.segments.free_count() as usize > count {
            writer.state.segments.open(SegmentState::Log, 1).unwrap();
        }
    }

    fn refuse(&self, segment: u32, block: u32) {
        let place = format::Place { segment, offset_units: block * UNITS_PER_BLOCK };
        let geometry = self.store.world.medium.geometry();
        self.disk.refuse_writes_to([geometry.offset_bytes(place) / 4096]);
    }

    /// Makes all writes fail except those of superblocks.
    fn refuse_all(&self) {
        self.disk.refuse_writes_to(SEGMENT_BYTES_MIN / 4096..2 * SEGMENT_BYTES_MIN / 4096);
    }

    fn holds(&self, round: u64) {
        assert!(!self.store.has_failed());
        let reopened = Store::open(self.disk.copy(), options()).unwrap();
        for store in [&self.store, &reopened] {
            for at in 0..BLOCKS_WRITTEN {
                let expected = distinct(8, round * 1000 + at);
                assert!(read(store, self.volume, at * 64, 8) == expected, "block {at}");
            }
            assert_sound(store);
        }
    }
}

/// The checkpoint kept all that it had opened, so a pool with few free segments took no more writes
/// until its next start. Found by the simulator.
#[test]
fn segments_of_a_refused_checkpoint_are_free_for_the_next_try() {
    // In the first segment that it opens and in a later one, and in their second halves.
    for (is_first, block) in
        [0, 1, SEGMENT_BLOCKS / 2].into_iter().flat_map(|block| [(true, block), (false, block)])
    {
        let bench = Bench::new();
        let claim = bench.claim() as usize;
        assert!(claim > 3, "it opens {claim}");
        bench.take_all_free_but(claim + 1);
        let free = bench.free();
        let bad = free[if is_first { 0 } else { claim / 2 }];
        bench.refuse(bad, block);
        bench.store.checkpoint().unwrap();
        assert_eq!(bench.store.moved_writes(), 1, "no part of it was refused");
        bench.holds(1);
        let live = bench.store.writer.lock().state.segments.row(bad).live_units;
        assert_eq!(live, 0, "something is at a location that refused it");
        bench.disk.refuse_writes_to([]);
        bench.store.checkpoint().unwrap();
        bench.holds(1);
    }
}

/// The old data is untouched, so the device may accept it later.
#[test]
fn a_device_that_refuses_checkpoints_temporarily_costs_no_segment() {
    let bench = Bench::new();
    bench.store.checkpoint().unwrap();
    bench.write_all(2);
    let free = bench.free();
    let live_bytes = bench.store.writer.lock().state.segments.live_bytes();
    for _ in 0..3 {
        bench.refuse_all();
        let error = bench.store.checkpoint().unwrap_err();
        assert!(matches!(error, StoreError::NoRoom { .. }), "{error}");
        bench.disk.refuse_writes_to([]);
        assert_eq!(bench.free(), free);
        assert_eq!(bench.store.writer.lock().state.segments.live_bytes(), live_bytes);
        bench.holds(2);
    }
    bench.store.checkpoint().unwrap();
    bench.holds(2);
    bench.write_all(3);
    bench.store.checkpoint().unwrap();
    bench.holds(3);
}

/// No record may go to a new segment before both superblocks cover it, even if a checkpoint has
/// opened it and given it back; and a pool that does not grow has no new segments.
#[test]
fn new_segments_are_given_back_as_new() {
    let bench = Bench::new();
    let old_bytes = SEGMENT_BYTES_MIN + SEGMENTS * SEGMENT_BYTES;
    let free = bench.free();
    bench.refuse_all();
    bench.store.grow(old_bytes + 8 * SEGMENT_BYTES).unwrap_err();
    bench.disk.refuse_writes_to([]);
    assert_eq!(bench.free(), free);
    assert_eq!(bench.store.writer.lock().state.segments.free_count() as usize, free.len());
    bench.holds(1);
    // One of them is opened, and given back.
    let mut writer = bench.store.writer.lock();
    let segments = &mut writer.state.segments;
    segments.extend(SEGMENTS as u32 + 9);
    let opened = segments.open(SegmentState::Metadata, 1).unwrap();
    assert_eq!(opened, SEGMENTS as u32 + 1);
    segments.give_back([opened]);
    assert_eq!(segments.free_count() as usize, free.len(), "the log may use it");
    assert_eq!(segments.free_for_metadata() as usize, free.len() + 8);
    assert!(segments.shrink(SEGMENTS as u32 + 1));
    assert_eq!(segments.free_for_metadata() as usize, free.len());
}

/// The table grows a level while the checkpoint is written: its old root is below a new one when
/// the capture is undone.
#[test]
fn a_former_root_is_given_back_below_the_new_one() {
    let bench = Bench::new();
    let table = &bench.store.world.chunks;
    let rows = table.root.read().height;
    assert_eq!(rows, 0);
    bench.store.checkpoint().unwrap();
    write(&bench.store, bench.volume, 0, &distinct(8, 1000)).unwrap();
    let root = table.root.read().page;
    let key = (0, 0);
    // As a capture leaves it.
    let captured = format::page::PageRef { checksum: !root.checksum, ..root };
    {
        let mut shard = table.shards.of(key).write();
        shard.get_mut(key).unwrap().stored = captured;
    }
    table.root.write().page = captured;
    table.make(&bench.store.world.medium, (0, 1)).unwrap();
    assert_eq!(table.root.read().height, 1);
    let medium = &bench.store.world.medium;
    assert!(table.give_back(medium, key, (captured, root)).unwrap());
    assert_eq!(table.stored_at(medium, key), Some(root));
}
