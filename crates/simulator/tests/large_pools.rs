//! Pools that hold far more than memory does: the cost of opening them does not grow with their
//! content, and little memory still finds nearly all duplicates.

use std::sync::Arc;

use block::{SectorCount, SectorRange, VolumeId, VolumeRequest};
use simulator::disk::SimDisk;
use simulator::synthetic::{SyntheticDisk, generated_data};
use store::{Change, OpenOptions, Store, VolumeChange};

const BLOCKS_PER_WRITE: u64 = 1024;

fn fill(store: &Store, volume: VolumeId, chunks: u64) {
    for first in (0..chunks).step_by(BLOCKS_PER_WRITE as usize) {
        let count = BLOCKS_PER_WRITE.min(chunks - first);
        let range = SectorRange::new(first * 8, count * 8);
        let data = generated_data(first + 1..first + 1 + count);
        let write = VolumeRequest::Write { volume, range, data, fua: false };
        store.execute(write).expect("the pool has room");
        if store.checkpoint_due() {
            store.checkpoint().expect("the disk does not fail");
        }
    }
}

/// A new pool with a volume of 4 GiB, on a disk that generates its content.
fn make(options: &OpenOptions) -> (Arc<SyntheticDisk>, Store, VolumeId) {
    let below = Arc::new(SimDisk::new(8 << 30, 1));
    let disk = Arc::new(SyntheticDisk::new(below));
    Store::create(&*disk, &[9; 64]).unwrap();
    let store = Store::open(disk.clone(), options.clone()).unwrap();
    let volume = store.allocate_volume_id();
    let size = SectorCount(4 << 21);
    let volumes = vec![VolumeChange::Create { id: volume, size }];
    store.change(Change { volumes, ..Change::default() }).unwrap();
    (disk, store, volume)
}

/// Opens a pool with this many distinct chunks in a checkpoint, and always the same log after it.
/// Returns the bytes that this reads, and how many of its pages and nodes.
fn opening_reads(chunks: u64) -> (u64, u64) {
    let options = OpenOptions { memory_bytes: 16 << 20, ..OpenOptions::default() };
    let (disk, store, volume) = make(&options);
    fill(&store, volume, chunks);
    store.checkpoint().unwrap();
    fill(&store, volume, 2048);
    assert_eq!(store.pool_status().data_bytes, chunks * 4096);
    drop(store);
    let before = disk.read_bytes();
    let store = Store::open(disk.clone(), options).unwrap();
    let read = disk.read_bytes() - before;
    let memory = store.pool_status().memory;
    assert!(memory.metadata_bytes < memory.metadata_limit_bytes, "{memory:?}");
    (read, memory.misses)
}

/// `memory opening` covers a million chunks and more, and crashes with the longest possible log:
/// `./test` runs it, and `cargo xtask bench --only opening`.
#[test]
fn opening_reads_as_much_for_400_000_chunks_as_for_10_000() {
    for chunks in [10_000, 100_000, 400_000] {
        let (read, pages) = opening_reads(chunks);
        // The log of 8 MiB, and what may be the rest of it: where it ends in its segment differs.
        // Up to 64 MiB are the rest of the segment that the log ends in, and all of the next: once
        // to look for a copy of a bad header, and once for records that prove a loss.
        assert!(read < 72 << 20, "{chunks} chunks: {read} bytes");
        // A node and a path of directories for each change of the log; 400,000 rows are 3,125
        // pages.
        assert!(pages <= 64, "{chunks} chunks: {pages} pages and nodes");
    }
}

/// An index with room for one chunk in eight still finds stretches of 4 MiB, in any order, and
/// after any number of earlier hits.
#[test]
fn a_small_index_finds_duplicates_written_in_runs() {
    const CHUNKS: u64 = 400 * STRETCH;
    const STRETCH: u64 = 1024;
    // 40% of it is for the index, 8 bytes a chunk.
    let options = OpenOptions { memory_bytes: CHUNKS * 5 / 2, ..OpenOptions::default() };
    let (_, store, volume) = make(&options);
    fill(&store, volume, CHUNKS);
    let before = store.pool_status().data_bytes;
    assert_eq!(before, CHUNKS * 4096);
    // 7 and 400 are coprime: so each comes once.
    for turn in 0..400 {
        let first = turn * 7 % 400 * STRETCH;
        for at in (first..first + STRETCH).step_by(8) {
            let range = SectorRange::new((CHUNKS + at) * 8, 8 * 8);
            let data = generated_data(at + 1..at + 9);
            let write = VolumeRequest::Write { volume, range, data, fua: false };
            store.execute(write).expect("the pool has room");
        }
        if store.checkpoint_due() {
            store.checkpoint().expect("the disk does not fail");
        }
    }
    let missed = (store.pool_status().data_bytes - before) / 4096;
    assert!(missed * 20 < CHUNKS, "{missed} of {CHUNKS} were not recognized as duplicates");
}
