//! Tests of the store against an in-memory disk.

mod asking;
mod copies;
mod damaged;
mod discard;
mod disk;
mod elsewhere;
mod ends;
mod extents;
mod failed_copies;
mod failing;
mod features;
mod fetching;
mod follower;
mod full;
mod grow;
mod holes;
mod incarnation;
mod integrity;
mod key_space;
mod log_end;
mod lost_answers;
mod memory;
mod mirrors;
mod model;
#[cfg(feature = "models")]
mod models;
mod nearly_full;
mod optimize;
mod order;
mod pieces;
mod power;
mod read_ahead;
mod readers;
mod recaptured;
mod reclaim;
pub(crate) mod reduction;
mod repeated;
mod reserved;
mod salvage;
mod segment_table;
mod slices;
mod snapshots;
mod space;
mod starving;
mod stripes;
mod superblocks;
mod target_state;
mod unflushed;
mod upgraded;
mod waiting;
mod weightless;
mod widths;
mod work;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use block::{
    CopySegment, DataOut, Frame, FrameMut, Sector, SectorCount, SectorRange, VolumeError, VolumeId,
    VolumeReply, VolumeRequest,
};
use parking_lot::Mutex;

pub(crate) use disk::MemoryDisk;

use crate::{Change, CheckOptions, Commit, OpenOptions, Store, VolumeChange};

pub(crate) const MIB: u64 = 2048;

pub(crate) fn pool(len_bytes: u64) -> (Arc<MemoryDisk>, Store) {
    let disk = MemoryDisk::new(len_bytes);
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    (disk, store)
}

impl Store {
    /// Writes a commit's record, durable or not.
    pub(crate) fn write_out(&self, commit: &Commit) -> io::Result<()> {
        self.segments().append(commit.place, &commit.frames)
    }
}

pub(crate) fn volume(store: &Store, sectors: u64) -> VolumeId {
    let id = store.allocate_volume_id();
    let size = SectorCount(sectors);
    let change = Change { volumes: vec![VolumeChange::Create { id, size }], ..Change::default() };
    store.change(change).unwrap();
    id
}

pub(crate) fn write(
    store: &Store,
    volume: VolumeId,
    start: u64,
    bytes: &[u8],
) -> Result<(), VolumeError> {
    let range = SectorRange::new(start, bytes.len() as u64 / 512);
    let data = DataOut::from_bytes(bytes, range.start.offset_in_block_bytes());
    store.execute(VolumeRequest::Write { volume, range, data, fua: false }).map(|_| ())
}

pub(crate) fn read(store: &Store, volume: VolumeId, start: u64, count: u64) -> Vec<u8> {
    let range = SectorRange::new(start, count);
    match store.execute(VolumeRequest::Read { volume, range }) {
        Ok(VolumeReply::Data(data)) => data.to_vec(),
        other => panic!("read {range:?}: {other:?}"),
    }
}

pub(crate) fn segment(
    source: VolumeId,
    from: u64,
    destination: VolumeId,
    to: u64,
    count: u64,
) -> CopySegment {
    CopySegment {
        source,
        source_start: Sector(from),
        destination,
        destination_start: Sector(to),
        count: SectorCount(count),
    }
}

/// Takes all free segments, and the rest of the one in which checkpoints continue.
fn take_all_free(store: &Store) -> Vec<u32> {
    let mut writer = store.writer.lock();
    writer.next_checkpoint.use_up_rest();
    std::iter::from_fn(|| writer.state.segments.open(format::SegmentState::Log, 1)).collect()
}

pub(crate) fn assert_sound(store: &Store) {
    let report = store.check(CheckOptions { data: true }).unwrap();
    assert_eq!(report.findings, Vec::<String>::new());
}

/// Returns bytes that no two blocks share.
pub(crate) fn distinct(sectors: u64, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..sectors * 64)
        .flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        })
        .collect()
}

#[test]
fn written_data_is_read_before_and_after_reopening() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 64 * MIB);
    let data = distinct(64, 1);
    write(&store, id, 128, &data).unwrap();
    write(&store, id, 131, &data[..1024]).unwrap();
    let mut expected = data.clone();
    expected[3 * 512..5 * 512].copy_from_slice(&data[..1024]);
    assert_eq!(read(&store, id, 128, 64), expected);
    assert_eq!(read(&store, id, 0, 8), vec![0; 4096]);
    assert_sound(&store);
    drop(store);
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    assert_eq!(read(&store, id, 128, 64), expected);
    assert_sound(&store);
    store.checkpoint().unwrap();
    assert_sound(&store);
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert_eq!(store.pool_status().log_bytes, 0);
    assert_eq!(read(&store, id, 128, 64), expected);
    assert_sound(&store);
}

#[test]
fn zeros_and_patterns_cost_no_data() {
    let (_, store) = pool(1 << 30);
    let id = volume(&store, 64 * MIB);
    write(&store, id, 0, &vec![0; 1 << 20]).unwrap();
    write(&store, id, MIB, &[0xab, 0xcd, 0, 1].repeat(1 << 18)).unwrap();
    assert_eq!(store.pool_status().data_bytes, 0);
    let status = store.pool_status();
    assert_eq!((status.mapped_bytes, status.mapped_data_bytes), (2 << 20, 0));
    assert_eq!(store.volume_status(id).unwrap().mapped_bytes, 2 << 20);
    assert_eq!(read(&store, id, MIB + 5, 1), [0xab, 0xcd, 0, 1].repeat(128));
    write(&store, id, 0, &distinct(8, 3)).unwrap();
    assert_eq!(store.pool_status().data_bytes, 4096);
    assert_sound(&store);
}

/// The comparison sees one moment, also if nothing is written in the end: of two contents that
/// differ from the first byte on, the first difference is at no other byte.
#[test]
fn a_miscompare_reports_one_point_in_time() {
    let (_disk, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    let (one, other) = (distinct(128, 1), distinct(128, 2));
    write(&store, id, 0, &one).unwrap();
    let compare = |expected: &[u8], new: &[u8]| {
        store.execute(VolumeRequest::CompareAndWrite {
            volume: id,
            range: SectorRange::new(0, 128),
            expected: DataOut::from_bytes(expected, 0),
            data: DataOut::from_bytes(new, 0),
            fua: false,
            sender: None,
        })
    };
    std::thread::scope(|scope| {
        let swaps = scope.spawn(|| {
            for _ in 0..2_000 {
                compare(&one, &other).unwrap();
                compare(&other, &one).unwrap();
            }
        });
        while !swaps.is_finished() {
            // It rewrites the existing data, so it never interferes.
            match compare(&other, &other) {
                Ok(_) | Err(VolumeError::Miscompare { offset_bytes: 0 }) => {}
                torn => panic!("{torn:?}"),
            }
        }
    });
}

/// A write of data, zeros and patterns is several entries of a record, but one change for readers.
#[test]
fn a_reader_sees_all_of_a_write_or_nothing() {
    let (_disk, store) = pool(1 << 30);
    let id = volume(&store, 2 * MIB);
    // 128 sectors across the end of a leaf, in blocks of different kinds.
    let mixed = |seed: u64| {
        let mut data = distinct(128, seed);
        for (block, bytes) in data.chunks_exact_mut(4096).enumerate() {
            match block % 3 {
                0 => bytes.fill(seed as u8),
                1 => bytes[..512].fill(seed as u8),
                _ => {}
            }
        }
        data
    };
    let (one, other) = (mixed(1), mixed(2));
    let start = MIB - 64;
    write(&store, id, start, &one).unwrap();
    std::thread::scope(|scope| {
        let writes = scope.spawn(|| {
            for _ in 0..1_000 {
                write(&store, id, start, &other).unwrap();
                write(&store, id, start, &one).unwrap();
            }
        });
        while !writes.is_finished() {
            let held = read(&store, id, start, 128);
            assert!(held == one || held == other, "a torn write was read");
        }
    });
}

#[test]
fn compare_and_write_compares_before_it_writes() {
    let (_, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    let data = distinct(4, 9);
    write(&store, id, 5, &data).unwrap();
    let range = SectorRange::new(5, 4);
    let compare = |expected: &[u8], new: &[u8]| {
        store.execute(VolumeRequest::CompareAndWrite {
            volume: id,
            range,
            expected: DataOut::from_bytes(expected, 2560),
            data: DataOut::from_bytes(new, 2560),
            fua: false,
            sender: None,
        })
    };
    let mut wrong = data.clone();
    wrong[1500] ^= 1;
    let miss = compare(&wrong, &[1; 2048]).unwrap_err();
    assert_eq!(miss, VolumeError::Miscompare { offset_bytes: 1500 });
    assert_eq!(read(&store, id, 5, 4), data);
    compare(&data, &[1; 2048]).unwrap();
    assert_eq!(read(&store, id, 5, 4), vec![1; 2048]);
    assert_eq!(read(&store, id, 4, 1), vec![0; 512]);
    assert_sound(&store);
}

#[test]
fn a_full_pool_reports_it_and_still_unmaps() {
    let (_, store) = pool(256 << 20);
    let id = volume(&store, 1024 * MIB);
    let mut at = 0;
    let full = loop {
        match write(&store, id, at, &distinct(2048, at + 1)) {
            Ok(()) => at += 2048,
            Err(error) => break error,
        }
        if store.checkpoint_due() {
            store.checkpoint().unwrap();
        }
        assert!(at < 512 * MIB, "the pool never gets full");
    };
    assert_eq!(full, VolumeError::NoSpace);
    assert_eq!(read(&store, id, 0, 2048), distinct(2048, 1));
    let ranges = vec![SectorRange::new(0, at)];
    store.execute(VolumeRequest::Unmap { volume: id, ranges }).unwrap();
    while store.housekeep() {}
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
    assert_eq!(store.pool_status().data_bytes, 0);
    write(&store, id, 0, &distinct(2048, 5)).unwrap();
    assert_sound(&store);
}
