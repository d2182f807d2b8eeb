//! Flushes of the log that fail, on a device that then loses everything unflushed, and does not
//! report it at the next flush.

use super::power::{PowerDisk, open, put};
use super::*;
use crate::writer::unflushed::TRIES_MAX;
use crate::{Durability, StoreError, Tuning};

struct Bench {
    disk: Arc<PowerDisk>,
    store: Store,
    volume: VolumeId,
}

/// A pool with a volume of 64 MiB, all of it durable.
fn bench() -> Bench {
    let disk = PowerDisk::new(1 << 30);
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = open(&disk, Durability::Flush);
    let volume = volume(&store, 64 * MIB);
    let bench = Bench { disk, store, volume };
    bench.flush().unwrap();
    bench
}

impl Bench {
    fn put(&self, block: u64, seed: u64) {
        put(&self.store, self.volume, block, seed, false);
    }

    fn flush(&self) -> Result<VolumeReply, VolumeError> {
        self.store.execute(VolumeRequest::Flush { volume: self.volume })
    }

    /// Asserts that block `n` holds the data of seed `seeds + n`.
    fn assert_holds(&self, blocks: std::ops::Range<u64>, seeds: u64) {
        for block in blocks {
            let found = read(&self.store, self.volume, block * 8, 8);
            assert!(found == distinct(8, seeds + block), "block {block}");
        }
    }

    /// The power fails, and everything that was not durable is lost.
    fn lose_power(self) -> Self {
        let Self { disk, store, volume } = self;
        drop(store);
        disk.lose_power();
        let store = open(&disk, Durability::Flush);
        assert_sound(&store);
        Self { disk, store, volume }
    }
}

/// A failed flush, regardless of its requester, completes once everything was rewritten and
/// flushed: what was written before and after it survives a power loss.
#[test]
fn writing_continues_after_a_failed_flush_of_the_log() {
    for by_fua in [true, false] {
        for failures in [1, 2, 3, 9, 20] {
            let bench = bench();
            (0..7).for_each(|block| bench.put(block, 100 + block));
            bench.disk.fail_flushes(failures);
            match by_fua {
                true => put(&bench.store, bench.volume, 7, 107, true),
                false => {
                    bench.put(7, 107);
                    bench.flush().unwrap();
                }
            }
            assert_eq!(bench.store.failed_flushes(), failures);
            assert_eq!(bench.store.unflushed_bytes(), 0);
            let bench = bench.lose_power();
            bench.assert_holds(0..8, 100);

            // Afterwards writing continues, with a checkpoint, and without a further failure.
            (0..8).for_each(|block| bench.put(block, 200 + block));
            bench.store.checkpoint().unwrap();
            (8..16).for_each(|block| bench.put(block, 200 + block));
            bench.flush().unwrap();
            let bench = bench.lose_power();
            bench.assert_holds(0..16, 200);
        }
    }
}

/// Between a failed flush and the next one, reads are right: what the device has lost is in memory.
/// So is what is written meanwhile.
#[test]
fn reads_are_right_while_a_flush_fails() {
    let bench = bench();
    (0..5).for_each(|block| bench.put(block, 300 + block));
    bench.flush().unwrap();
    (0..5).for_each(|block| bench.put(block, 100 + block));
    bench.disk.fail_flushes(1);
    let token = bench.store.waiting_token();
    let flush = VolumeRequest::Flush { volume: bench.volume };
    assert!(matches!(bench.store.start(flush, token), crate::Started::Queued));
    let commit = bench.store.take_commit().unwrap();
    let result = sys::Disk::flush(&*bench.disk);
    assert!(result.is_err());
    bench.assert_holds(0..5, 100);
    bench.store.finish_commit(commit, result);
    bench.assert_holds(0..5, 100);
    (5..9).for_each(|block| bench.put(block, 100 + block));
    bench.store.scrub_start(1);
    while bench.store.scrub_step(1_000, 6).unwrap() != crate::ScrubStep::Complete {}
    assert_eq!(bench.store.damage().findings, [], "what is written again is no damage");
    bench.flush().unwrap();
    let bench = bench.lose_power();
    bench.assert_holds(0..9, 100);
}

/// A failed flush of another origin, here a checkpoint's, may have lost log records as well: the
/// log's next flush does not cover them.
#[test]
fn a_checkpoint_with_a_failed_flush_does_not_lose_later_writes() {
    // The flush before the capture, the one after its images, and those of the superblocks.
    for io in 0..4 {
        let bench = bench();
        (0..4).for_each(|block| bench.put(block, 100 + block));
        bench.store.commit_here();
        let before = bench.disk.flushes.load(Ordering::Relaxed);
        bench.disk.fail_flush_after(io);
        bench.store.checkpoint().unwrap();
        assert_eq!(bench.store.failed_flushes(), 1, "flush {io}");
        assert_eq!(bench.disk.flushes.load(Ordering::Relaxed), before + 5);
        let bench = bench.lose_power();
        bench.assert_holds(0..4, 100);
    }
    let bench = bench();
    (0..4).for_each(|block| bench.put(block, 100 + block));
    bench.store.commit_here();
    bench.disk.fail_flushes(1);
    assert!(sys::Disk::flush(&*bench.disk).is_err(), "somebody else's");
    bench.flush().unwrap();
    let bench = bench.lose_power();
    bench.assert_holds(0..4, 100);
}

/// If the same locations fail repeatedly, the records go elsewhere.
#[test]
fn records_that_flushes_keep_losing_are_moved() {
    let bench = bench();
    (0..4).for_each(|block| bench.put(block, 100 + block));
    let segment = bench.store.writer.lock().log.end().segment;
    bench.disk.fail_flushes(1);
    bench.flush().unwrap();
    assert_eq!((bench.store.moved_writes(), tail_segment(&bench)), (0, segment));
    (0..4).for_each(|block| bench.put(block, 200 + block));
    bench.disk.fail_flushes(2);
    bench.flush().unwrap();
    assert_eq!(bench.store.moved_writes(), 1);
    assert_ne!(tail_segment(&bench), segment);
    let bench = bench.lose_power();
    bench.assert_holds(0..4, 200);
}

fn tail_segment(bench: &Bench) -> u32 {
    bench.store.writer.lock().log.end().segment
}

/// A device whose flushes all fail: writing ends with an error after several tries, and the next
/// opening finds what was durable before.
#[test]
fn permanently_failing_flushes_end_writing() {
    let bench = bench();
    (0..4).for_each(|block| bench.put(block, 100 + block));
    bench.flush().unwrap();
    (4..8).for_each(|block| bench.put(block, 100 + block));
    bench.disk.fail_flushes(u64::MAX);
    assert!(matches!(bench.flush(), Err(VolumeError::WriteFailed)));
    assert!(bench.store.has_failed());
    assert_eq!(bench.store.failed_flushes(), u64::from(TRIES_MAX));
    assert!(matches!(bench.flush(), Err(VolumeError::WriteFailed)));
    let refused = bench.store.checkpoint().unwrap_err();
    assert!(matches!(refused, StoreError::Volume(VolumeError::WriteFailed)), "{refused}");
    // Its reads are still right, although the data is on no medium.
    bench.assert_holds(0..8, 100);
    bench.disk.fail_flushes(0);
    let bench = bench.lose_power();
    bench.assert_holds(0..4, 100);
    assert_eq!(read(&bench.store, bench.volume, 32, 32), vec![0; 4 * 4096]);
    bench.put(4, 104);
    bench.flush().unwrap();
    bench.lose_power().assert_holds(0..5, 100);
}

/// What is kept in memory until a flush covers it is bounded, compressed blocks included: a record
/// flushes by itself where it would become too much.
#[test]
fn unflushed_data_takes_bounded_memory() {
    const MAX: u64 = 1 << 20;
    let disk = PowerDisk::new(1 << 30);
    Store::create(&*disk, &[7; 64]).unwrap();
    let tuning = Tuning { unflushed_bytes_max: MAX, ..Tuning::DEFAULT };
    let options = OpenOptions { durability: Durability::Flush, tuning, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options).unwrap();
    let id = volume(&store, 64 * MIB);
    for compressible in [false, true] {
        let before = disk.flushes.load(Ordering::Relaxed);
        for at in 0..64u64 {
            let mut bytes = distinct(256, 1 + at + 100 * u64::from(compressible));
            if compressible {
                bytes.chunks_mut(4096).for_each(|block| block[64..].fill(1));
            }
            write(&store, id, at * 256, &bytes).unwrap();
            store.commit_here();
            // What has reached the limit is flushed with the record that reached it.
            assert!(store.unflushed_bytes() < MAX, "{} bytes", store.unflushed_bytes());
            assert!(store.world.unplaced.len() as u64 * 4096 < MAX);
        }
        let flushes = disk.flushes.load(Ordering::Relaxed) - before;
        assert!((6..=10).contains(&flushes), "{flushes} flushes for 8 MiB");
    }
    store.execute(VolumeRequest::Flush { volume: id }).unwrap();
    assert_eq!((store.unflushed_bytes(), store.world.unplaced.len()), (0, 0));
}

/// A chunk that moves is in two records. That the first of them is durable says nothing about the
/// second.
#[test]
fn a_chunk_that_moves_stays_in_memory_until_both_its_records_are_durable() {
    let unplaced = crate::chunks::unplaced::Unplaced::default();
    let (id, frame) = (format::ChunkId(5), FrameMut::from_bytes(&[1; 4096]).freeze());
    unplaced.insert(id, &frame);
    unplaced.insert(id, &frame);
    unplaced.release([id].into_iter());
    assert!(unplaced.get(id).is_some());
    unplaced.release([id, id].into_iter());
    assert!(!unplaced.contains(id));
}
