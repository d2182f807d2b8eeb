//! What a nearly full pool costs: how much is moved before it reports that it is full, counted.

use super::*;
use crate::Tuning;

pub(super) const SEGMENT_BYTES: u64 = 1 << 20;
const SEGMENTS: u64 = 128;
/// 64 KiB, as one record.
const WRITE_BLOCKS: u64 = 16;

/// Sizes that relate to a segment of 1 MiB about as a pool's do to one of 16 MiB: a moved record
/// takes a quarter of it, and its header a sixty-fourth of that.
pub(super) const TUNING: Tuning = Tuning {
    record_blocks_max: 96,
    record_entries_bytes_max: 8 << 10,
    segment_rest_blocks_min: 1,
    edit_blocks_max: 66,
    part_blocks_max: 64,
    move_blocks_max: 64,
    move_blocks_min: 1,
    pace_bytes_max: 64 << 10,
    move_credit_bytes_max: 128 << 10,
    stream_piece_bytes_max: 64 << 10,
    ..Tuning::DEFAULT
};

/// A pool that was filled until it refused.
struct Full {
    store: Store,
    volume: VolumeId,
    /// The end of the written part of the volume.
    end: u64,
}

impl Full {
    fn new() -> Self {
        let disk = MemoryDisk::new((16 << 20) + SEGMENTS * SEGMENT_BYTES);
        Store::create_with_segments(&*disk, &[5; 64], SEGMENT_BYTES).unwrap();
        let store = Store::open(disk, OpenOptions { tuning: TUNING, ..OpenOptions::default() });
        let store = store.unwrap();
        let volume = volume(&store, 512 * MIB);
        let mut pool = Self { store, volume, end: 0 };
        while pool.write(WRITE_BLOCKS).is_ok() {}
        pool
    }

    /// Writes after the existing data.
    fn write(&mut self, blocks: u64) -> Result<(), VolumeError> {
        write(&self.store, self.volume, self.end * 8, &distinct(8 * blocks, self.end + 1))?;
        self.end += blocks;
        Ok(())
    }

    /// Leaves one block in this many dead, all over the pool.
    fn kill_one_in(&self, blocks: u64) {
        for at in (0..self.end).step_by(blocks as usize) {
            let ranges = vec![SectorRange::new(at * 8, 8)];
            let unmap = VolumeRequest::Unmap { volume: self.volume, ranges };
            assert!(matches!(self.store.execute(unmap), Ok(VolumeReply::Done)), "block {at}");
        }
    }

    fn moved_bytes(&self) -> u64 {
        self.store.pool_status().written.moved_bytes
    }

    fn work_bytes(&self) -> u64 {
        self.store.writer.lock().supply.work_bytes()
    }
}

/// Here each record's header is a seventeenth of it. A pool filled this way moved itself twice
/// before it reported that it was full, to gain three percent; and the moved records had headers
/// again, just large enough to make moving them worthwhile.
#[test]
fn filling_a_pool_moves_at_most_a_quarter_of_it_before_it_is_full() {
    let mut pool = Full::new();
    let capacity = pool.store.pool_status().capacity_bytes;
    assert!(pool.end * 4096 > capacity / 8 * 7, "{} of {capacity}", pool.end * 4096);
    let most = pool.store.work_bytes_max() / 4;
    assert!(pool.moved_bytes() <= most, "{} bytes are moved", pool.moved_bytes());
    // It is not retried for each write.
    let work_bytes = pool.work_bytes();
    assert_eq!(pool.write(1), Err(VolumeError::NoSpace));
    assert_eq!(pool.work_bytes(), work_bytes);
}

/// It moved 2.8 times the pool's content, for less gain, and as much again for each refusal.
#[test]
fn a_pool_with_dead_data_everywhere_moves_everything_at_most_once() {
    for one_in in [64, 32, 16] {
        let mut pool = Full::new();
        pool.kill_one_in(one_in);
        let (moved, end, mut last) = (pool.moved_bytes(), pool.end, pool.work_bytes());
        let mut longest = 0;
        while pool.write(1).is_ok() {
            let now = pool.work_bytes();
            longest = longest.max(now - std::mem::replace(&mut last, now));
        }
        let (moved, new) = (pool.moved_bytes() - moved, (pool.end - end) * 4096);
        let most = pool.store.work_bytes_max();
        let told = format!("1 in {one_in}: {moved} bytes moved, for one {longest}, {new} new");
        assert!(moved <= SEGMENTS * SEGMENT_BYTES && longest <= most / 4, "{told}");
        // With 1 of 16 blocks dead, more than these find room as new data.
        let dead = SEGMENTS * SEGMENT_BYTES / one_in;
        assert!(one_in > 16 || new > dead, "{told}");
        let work_bytes = pool.work_bytes();
        for _ in 0..3 {
            assert_eq!(pool.write(1), Err(VolumeError::NoSpace));
        }
        assert_eq!(pool.work_bytes(), work_bytes, "{told}");
        assert_sound(&pool.store);
    }
}

/// When new data was refused, the segments emptied for it were not freed, and UNMAP found no room:
/// it was refused as well, and nothing ever changed that.
#[test]
fn unmap_continues_after_new_data_was_refused() {
    let mut pool = Full::new();
    pool.kill_one_in(64);
    while pool.write(1).is_ok() {}
    pool.kill_one_in(63);
    assert_sound(&pool.store);
}

/// New data waits together with overwrites, for which reclaim does more: it is refused on its own.
#[test]
fn overwrites_continue_after_new_data_was_refused() {
    let mut pool = Full::new();
    for round in 0..4096 {
        let block = round * 7919 % pool.end;
        write(&pool.store, pool.volume, block * 8, &distinct(8, 1_000_000 + round)).unwrap();
        if round % 64 == 0 {
            // Overwrites have gained little budget.
            while pool.write(1).is_ok() {}
        }
    }
    assert_sound(&pool.store);
}
