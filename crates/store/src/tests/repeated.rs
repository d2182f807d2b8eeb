//! A block that repeats: one entry of the map covers any length of it.

use block::FrameMut;
use format::row::ROW_BYTES;
use format::{ChunkId, ChunkRow, MapEntry};

use super::*;
use crate::map::walk::entry_of;

/// The largest volume.
const WHOLE: u64 = (64 << 40) / 512;
const TIB: u64 = (1 << 40) / 512;
/// Nodes that one edit of any length may create: two paths down, and the nodes at their ends.
const NODES_MAX: u64 = 16;

/// What a host that wipes a disk with noise sends: 512 bytes that repeat.
fn noise(seed: u64) -> Frame {
    FrameMut::from_bytes(&distinct(1, seed).repeat(8)).freeze()
}

fn write_same(store: &Store, volume: VolumeId, start: u64, count: u64, pattern: &Frame) {
    let range = SectorRange::new(start, count);
    let pattern = pattern.clone();
    store.execute(VolumeRequest::Fill { volume, range, pattern, fua: false }).unwrap();
}

fn copy(store: &Store, segments: Vec<CopySegment>) {
    store.execute(VolumeRequest::Copy { segments }).unwrap();
}

fn unmap(store: &Store, volume: VolumeId, start: u64, count: u64) {
    let ranges = vec![SectorRange::new(start, count)];
    store.execute(VolumeRequest::Unmap { volume, ranges }).unwrap();
}

/// Returns how many nodes were ever made, and how many commits.
fn spent(store: &Store) -> (u64, u64) {
    let writer = store.writer.lock();
    (writer.state.next_node, writer.log.commit_count())
}

/// Asserts that an action is one commit of few nodes.
fn cheap<T>(store: &Store, action: impl FnOnce() -> T) -> T {
    let before = spent(store);
    let result = action();
    let after = spent(store);
    assert_eq!(after.1 - before.1, 1, "commits");
    assert!(after.0 - before.0 <= NODES_MAX, "{} nodes", after.0 - before.0);
    result
}

fn holds(store: &Store, volume: VolumeId, start: u64, pattern: &Frame) {
    let at = (start % 8 * 512) as usize;
    let repeated = pattern.repeat(3);
    assert!(read(store, volume, start, 16) == repeated[at..at + 8192], "at {start}");
}

fn reopen(disk: &Arc<MemoryDisk>) -> Store {
    Store::open(disk.copy(), OpenOptions::default()).unwrap()
}

fn chunk_at(store: &Store, volume: VolumeId, block: u64) -> ChunkId {
    match entry_of((&store.world).into(), &store.world.map_of(volume).unwrap(), block).unwrap() {
        MapEntry::Chunk(id) => id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_block_repeated_over_the_largest_volume_is_one_small_commit() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, WHOLE);
    let pattern = noise(1);
    cheap(&store, || write_same(&store, id, 0, WHOLE, &pattern));
    let check = |store: &Store| {
        for start in [0, 5, TIB - 3, 33 * TIB + 8, WHOLE - 16] {
            holds(store, id, start, &pattern);
        }
        let status = store.volume_status(id).unwrap();
        assert_eq!((status.mapped_bytes, status.data_bytes), (64 << 40, 64 << 40));
        assert_eq!(store.pool_status().data_bytes, 4096);
        assert_sound(store);
    };
    check(&store);
    // From the log, as a crash would leave it; and from a checkpoint.
    check(&reopen(&disk));
    store.checkpoint().unwrap();
    check(&store);
    check(&reopen(&disk));
    // The next one drops it all at once.
    cheap(&store, || write_same(&store, id, 0, WHOLE, &noise(2)));
    holds(&store, id, 40 * TIB, &noise(2));
    assert_eq!(store.pool_status().data_bytes, 4096);
    assert_sound(&store);
}

#[test]
fn a_repeated_block_has_one_reference_per_entry() {
    let (_disk, store) = pool(1 << 30);
    let id = volume(&store, WHOLE);
    write_same(&store, id, 8, WHOLE - 16, &noise(1));
    let chunk = chunk_at(&store, id, WHOLE / 16);
    // Of the root's four entries two are whole; below the other two are one inner node per level,
    // and at both ends a leaf with all but one block.
    let expected = 2 + 2 * (3 * 255 + 255);
    assert_eq!(store.world.chunk(chunk).unwrap().reference_count, expected);
    assert_sound(&store);
}

#[test]
fn parts_of_a_repeated_range_can_be_changed() {
    let (disk, store) = pool(1 << 30);
    let (id, other) = (volume(&store, WHOLE), volume(&store, WHOLE));
    let pattern = noise(1);
    write_same(&store, id, 0, WHOLE, &pattern);
    // A write, an unmap, zeros, and another repeated block, each in the middle.
    let data = distinct(24, 7);
    cheap(&store, || write(&store, id, 3 * TIB + 16, &data).unwrap());
    cheap(&store, || unmap(&store, id, 10 * TIB, TIB));
    let zero =
        VolumeRequest::Zero { volume: id, range: SectorRange::new(20 * TIB + 1, 1000), fua: true };
    store.execute(zero).unwrap();
    cheap(&store, || write_same(&store, id, 30 * TIB + 8, TIB + 8, &noise(2)));
    let check = |store: &Store, id: VolumeId| {
        assert!(read(store, id, 3 * TIB + 16, 24) == data);
        holds(store, id, 3 * TIB, &pattern);
        holds(store, id, 3 * TIB + 40, &pattern);
        holds(store, id, 10 * TIB - 16, &pattern);
        assert_eq!(read(store, id, 10 * TIB, 8), vec![0; 4096]);
        assert_eq!(read(store, id, 11 * TIB - 8, 8), vec![0; 4096]);
        holds(store, id, 11 * TIB, &pattern);
        assert_eq!(read(store, id, 20 * TIB + 1, 1000), vec![0; 512_000]);
        holds(store, id, 20 * TIB + 1001, &pattern);
        holds(store, id, 30 * TIB - 8, &pattern);
        holds(store, id, 30 * TIB + 8, &noise(2));
        holds(store, id, 31 * TIB, &noise(2));
        holds(store, id, 31 * TIB + 16, &pattern);
        assert_sound(store);
    };
    check(&store, id);
    // Copies: all of it, and one by an offset of a block, of which each part is one piece.
    cheap(&store, || copy(&store, vec![segment(id, 0, other, 0, WHOLE)]));
    check(&store, other);
    let before = spent(&store).1;
    copy(&store, vec![segment(id, 0, other, 8, WHOLE - 8)]);
    assert_eq!(spent(&store).1, before + 1);
    holds(&store, other, 40 * TIB, &pattern);
    assert!(read(&store, other, 3 * TIB + 24, 24) == data);
    assert_eq!(read(&store, other, 10 * TIB + 8, 8), vec![0; 4096]);
    assert_sound(&store);
    let reopened = reopen(&disk);
    check(&reopened, id);
    assert!(read(&reopened, other, 3 * TIB + 24, 24) == data);
    drop(reopened);
    // A snapshot keeps the old content while the volume changes.
    let snapshot = store.allocate_volume_id();
    let change = |volumes| store.change(Change { volumes, ..Change::default() }).unwrap();
    change(vec![VolumeChange::Clone { source: id, id: snapshot, snapshot: true }]);
    cheap(&store, || write(&store, id, 50 * TIB, &data).unwrap());
    cheap(&store, || unmap(&store, id, 40 * TIB, 8));
    holds(&store, snapshot, 50 * TIB, &pattern);
    holds(&store, snapshot, 40 * TIB, &pattern);
    check(&store, snapshot);
    change(vec![VolumeChange::Destroy { id }, VolumeChange::Destroy { id: other }]);
    while store.housekeep() {}
    check(&store, snapshot);
    change(vec![VolumeChange::Destroy { id: snapshot }]);
    while store.housekeep() {}
    assert_eq!(store.pool_status().data_bytes, 0);
    assert_sound(&store);
}

#[test]
fn space_of_a_repeated_block_is_counted_once() {
    let (_disk, store) = pool(1 << 30);
    let (id, other) = (volume(&store, WHOLE), volume(&store, WHOLE));
    write_same(&store, id, 0, WHOLE, &noise(1));
    store.account_space(0, &mut || true).unwrap();
    let figures = store.space_figures().unwrap();
    assert_eq!((figures.unique_bytes, figures.shared_bytes), (4096, 0));
    copy(&store, vec![segment(id, 0, other, 8, TIB)]);
    store.account_space(0, &mut || true).unwrap();
    let figures = store.space_figures().unwrap();
    assert_eq!((figures.unique_bytes, figures.shared_bytes), (0, 4096));
}

#[test]
fn many_blocks_of_one_chunk_are_one_device_read() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, WHOLE);
    write_same(&store, id, 0, WHOLE, &noise(1));
    store.checkpoint().unwrap();
    drop(store);
    let store = reopen(&disk);
    let sink = store.waiting_token();
    let range = SectorRange::new(TIB, 8192);
    let started = store.start(VolumeRequest::Read { volume: id, range }, sink);
    let crate::Started::Read(operation) = started else { panic!("{started:?}") };
    assert_eq!(operation.reads.iter().map(|read| read.frames.len()).sum::<usize>(), 1);
    drop(operation);
    assert!(read(&store, id, TIB, 8192) == noise(1).repeat(1024));
}

/// Scrubbing names all blocks in which a damaged one repeats, and no others.
#[test]
fn a_damaged_repeated_block_is_reported_at_all_its_locations() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, WHOLE);
    write_same(&store, id, 16, WHOLE - 16, &noise(1));
    write(&store, id, 20 * TIB, &distinct(8, 2)).unwrap();
    let row = store.world.chunk(chunk_at(&store, id, WHOLE / 16)).unwrap();
    let offset_bytes = store.world.medium.geometry().offset_bytes(row.place);
    store.checkpoint().unwrap();
    drop(store);
    let mut frames = [FrameMut::stale()];
    sys::Disk::read(&*disk, offset_bytes, &mut frames).unwrap();
    let [mut frame] = frames;
    frame[100] ^= 4;
    sys::Disk::write(&*disk, offset_bytes, &[frame.freeze()]).unwrap();
    let store = reopen(&disk);
    assert!(store.scrub_start(5));
    while store.scrub_step(64, 6).unwrap() != crate::ScrubStep::Complete {}
    let findings = store.damage().findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    let ranges: Vec<_> = findings[0].ranges.iter().map(|named| named.range).collect();
    let middle = 20 * TIB;
    let around =
        [SectorRange::new(16, middle - 16), SectorRange::new(middle + 8, WHOLE - middle - 8)];
    assert_eq!(ranges, around);
    let range = SectorRange::new(3 * TIB, 8);
    let lost = store.execute(VolumeRequest::Read { volume: id, range }).map(drop);
    assert_eq!(lost, Err(VolumeError::Medium { sector: range.start }));
    assert_eq!(read(&store, id, middle, 8), distinct(8, 2));
    // An overwrite heals it.
    write_same(&store, id, 0, WHOLE, &noise(3));
    holds(&store, id, 3 * TIB, &noise(3));
    while store.housekeep() {}
    assert_sound(&store);
}

/// A count at its maximum stays there: the chunk is referenced forever, and nothing fails.
#[test]
fn a_count_of_references_never_overflows() {
    let (disk, store) = pool(1 << 30);
    let (id, other) = (volume(&store, MIB), volume(&store, MIB));
    write_same(&store, id, 0, 16, &noise(1));
    let chunk = chunk_at(&store, id, 0);
    // As if that many other entries had referenced it.
    let world = &store.world;
    let update = |raw: &mut [u8]| {
        let mut row = ChunkRow::decode(raw).unwrap();
        row.reference_count = u32::MAX - 1;
        row.encode(raw);
    };
    world.chunks.update(&world.medium, chunk.0, update).unwrap();
    copy(&store, vec![segment(id, 0, other, 8, 16)]);
    assert_eq!(world.chunk(chunk).unwrap().reference_count, u32::MAX);
    write_same(&store, other, 512, 512, &noise(2));
    copy(&store, vec![segment(id, 0, other, 64, 16)]);
    unmap(&store, id, 0, MIB);
    unmap(&store, other, 0, MIB);
    while store.housekeep() {}
    assert_eq!(world.chunk(chunk).unwrap().reference_count, u32::MAX);
    // The check does not report it lost: the count is not below the number of references.
    assert_sound(&store);
    store.checkpoint().unwrap();
    drop(store);
    assert_sound(&reopen(&disk));
    let mut raw = [0; ROW_BYTES];
    assert_eq!(ChunkRow::count_references(&mut raw, 1), None);
}
