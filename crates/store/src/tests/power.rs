//! A device with a volatile cache, which loses what was not flushed: plain writes, FUA, flushes.

use std::collections::HashMap;

use super::reduction::begin;
use super::*;
use crate::Durability;

/// The content of a device with a volatile cache and FUA.
#[derive(Default)]
struct Cells {
    durable: HashMap<u64, Frame>,
    cached: HashMap<u64, Frame>,
}

/// A disk that loses its cache when the power fails. A durable write makes only itself durable.
pub(super) struct PowerDisk {
    cells: Mutex<Cells>,
    len_bytes: u64,
    /// Blocks that were read while they were not durable.
    cached_reads: AtomicU64,
    /// How many flushes fail, and lose everything in the cache, after how many good ones.
    bad_flushes: AtomicU64,
    good_flushes: AtomicU64,
    failures: AtomicU64,
    /// Flushes requested.
    pub(super) flushes: AtomicU64,
}

impl PowerDisk {
    pub(super) fn new(len_bytes: u64) -> Arc<Self> {
        let (cells, cached_reads) = Default::default();
        let (bad_flushes, good_flushes, failures, flushes) = Default::default();
        Arc::new(Self {
            cells,
            len_bytes,
            cached_reads,
            bad_flushes,
            good_flushes,
            failures,
            flushes,
        })
    }

    /// Makes the next flushes fail, and lose what they should have made durable.
    pub(super) fn fail_flushes(&self, count: u64) {
        self.bad_flushes.store(count, Ordering::Relaxed);
    }

    /// Makes one flush fail, after `good` others.
    pub(super) fn fail_flush_after(&self, good: u64) {
        self.good_flushes.store(good, Ordering::Relaxed);
        self.fail_flushes(1);
    }

    /// The power fails: everything in the cache is lost.
    pub(super) fn lose_power(&self) {
        self.cells.lock().cached.clear();
    }
}

impl sys::Disk for PowerDisk {
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        let cells = self.cells.lock();
        for (number, frame) in (offset_bytes / 4096..).zip(frames) {
            let is_cached = cells.cached.contains_key(&number);
            self.cached_reads.fetch_add(u64::from(is_cached), Ordering::Relaxed);
            match cells.cached.get(&number).or_else(|| cells.durable.get(&number)) {
                Some(stored) => frame.copy_from_slice(&stored[..]),
                None => frame.fill(0),
            }
        }
        Ok(())
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let numbered = (offset_bytes / 4096..).zip(frames.iter().cloned());
        self.cells.lock().cached.extend(numbered);
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let cells = &mut *self.cells.lock();
        self.flushes.fetch_add(1, Ordering::Relaxed);
        let bad = self.bad_flushes.load(Ordering::Relaxed);
        let good = self.good_flushes.load(Ordering::Relaxed);
        self.good_flushes.store(good.saturating_sub(1), Ordering::Relaxed);
        if bad > 0 && good == 0 {
            self.bad_flushes.store(bad - 1, Ordering::Relaxed);
            self.failures.fetch_add(1, Ordering::Relaxed);
            cells.cached.clear();
            return Err(io::Error::other("the device can't flush"));
        }
        cells.durable.extend(cells.cached.drain());
        Ok(())
    }

    fn flush_failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn write_durable(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let cells = &mut *self.cells.lock();
        for (number, frame) in (offset_bytes / 4096..).zip(frames) {
            cells.cached.remove(&number);
            cells.durable.insert(number, frame.clone());
        }
        Ok(())
    }
}

pub(super) fn open(disk: &Arc<PowerDisk>, durability: Durability) -> Store {
    let options = OpenOptions { durability, ..OpenOptions::default() };
    Store::open(disk.clone(), options).unwrap()
}

pub(super) fn put(store: &Store, volume: VolumeId, block: u64, seed: u64, fua: bool) {
    let range = SectorRange::new(block * 8, 8);
    let data = DataOut::from_bytes(&distinct(8, seed), 0);
    store.execute(VolumeRequest::Write { volume, range, data, fua }).unwrap();
}

/// FUA and SYNCHRONIZE CACHE cover all writes acknowledged before, even on a device that makes a
/// FUA write durable without flushing its cache.
#[test]
fn a_flush_covers_earlier_records_on_a_device_with_fua() {
    for by_fua in [true, false] {
        for unflushed in [1, 2, 7] {
            let disk = PowerDisk::new(256 << 20);
            Store::create(&*disk, &[7; 64]).unwrap();
            let store = open(&disk, Durability::Flush);
            let id = volume(&store, MIB);
            for round in 0..3 {
                for block in 0..unflushed {
                    put(&store, id, block, 1 + round * 100 + block, false);
                }
                match by_fua {
                    true => put(&store, id, 50, 1 + round * 100 + 50, true),
                    false => {
                        // It joins the record of the last write, or has none of its own.
                        put(&store, id, 50, 1 + round * 100 + 50, false);
                        store.execute(VolumeRequest::Flush { volume: id }).unwrap();
                    }
                }
            }
            put(&store, id, 60, 999, false);
            drop(store);
            disk.lose_power();
            let store = open(&disk, Durability::Flush);
            for block in (0..unflushed).chain([50]) {
                let kept = read(&store, id, block * 8, 8);
                assert!(kept == distinct(8, 201 + block), "block {block} was flushed");
            }
            assert_eq!(read(&store, id, 480, 8), vec![0; 4096], "it was never flushed");
            assert_sound(&store);
        }
    }
}

/// With `durability = "commit"` a record is durable by itself before it is acknowledged, so all
/// records before `flushed_lsn` are; no flush is requested.
#[test]
fn each_acknowledged_record_is_durable_by_itself() {
    let disk = PowerDisk::new(256 << 20);
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = open(&disk, Durability::Commit);
    let id = volume(&store, MIB);
    (0..40).for_each(|block| put(&store, id, block, 1 + block, false));
    drop(store);
    disk.lose_power();
    let store = open(&disk, Durability::Commit);
    for block in 0..40 {
        assert!(read(&store, id, block * 8, 8) == distinct(8, 1 + block), "block {block}");
    }
    assert_sound(&store);
}

/// Commits complete in any order. A record that is sealed while an earlier one is in flight must
/// not say that this one was flushed: if lost with the power, it would count as damage of the log.
#[test]
fn a_record_in_flight_is_not_recorded_as_flushed() {
    let disk = PowerDisk::new(256 << 20);
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = open(&disk, Durability::Commit);
    let id = volume(&store, MIB);
    put(&store, id, 0, 1, false);
    let (_, lost) = begin(&store, id, 8, &distinct(8, 2));
    for lba in [16, 24] {
        let (_, lands) = begin(&store, id, lba, &distinct(8, lba));
        store.segments().append_as(lands.place, &lands.frames, sys::Persist::Itself).unwrap();
        store.finish_commit(lands, Ok(()));
    }
    drop((lost, store));
    disk.lose_power();
    let store = open(&disk, Durability::Commit);
    assert!(read(&store, id, 0, 8) == distinct(8, 1), "it was acknowledged");
    assert_eq!(read(&store, id, 8, 24), vec![0; 3 * 4096], "none of these was acknowledged");
    assert_sound(&store);
}

/// The process is killed, and the device keeps its cache: the next process must not rely on what a
/// power loss may still take away.
#[test]
fn data_of_a_killed_process_is_flushed_before_it_is_used() {
    let disk = PowerDisk::new(1 << 30);
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = open(&disk, Durability::Flush);
    let id = volume(&store, MIB);
    for block in 0..4 {
        put(&store, id, block, block + 1, false);
        store.commit_here();
    }
    drop(store);
    assert!(!disk.cells.lock().cached.is_empty(), "nothing was left to be flushed");
    disk.cached_reads.store(0, Ordering::Relaxed);
    let store = open(&disk, Durability::Flush);
    assert_eq!(disk.cached_reads.load(Ordering::Relaxed), 0);
    disk.lose_power();
    assert!(read(&store, id, 24, 8) == distinct(8, 4));
}
