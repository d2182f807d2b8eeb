//! Deduplication and compression: what is stored once, what is stored shorter, and that hosts never
//! notice either.

use super::*;
use crate::{Commit, Durability, Started, Token};

/// Returns text that compresses to less than half.
pub(crate) fn prose(sectors: u64, seed: u64) -> Vec<u8> {
    let words = ["the volume ", "a segment ", "one log ", "of chunks ", "in maps, ", "and so on. "];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < sectors * 512 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.extend_from_slice(words[(state >> 33) as usize % words.len()].as_bytes());
    }
    bytes.truncate(sectors as usize * 512);
    bytes
}

pub(super) fn stored(store: &Store) -> u64 {
    store.pool_status().data_bytes
}

pub(super) fn reopen(disk: &Arc<MemoryDisk>, store: Store) -> Store {
    drop(store);
    Store::open(disk.clone(), OpenOptions { memory_bytes: 0, ..OpenOptions::default() }).unwrap()
}

#[test]
fn duplicates_are_stored_once_across_volumes() {
    let (disk, store) = pool(1 << 30);
    let (one, other) = (volume(&store, 8 * MIB), volume(&store, 8 * MIB));
    let data = distinct(2 * MIB, 1);
    write(&store, one, 0, &data).unwrap();
    assert_eq!(stored(&store), 2 << 20);
    // Elsewhere, in another volume, in I/Os of another size, and across the first ones' bounds.
    write(&store, one, 4 * MIB + 8, &data).unwrap();
    for at in 0..4u64 {
        let part = &data[at as usize * (512 << 10)..][..512 << 10];
        write(&store, other, at * 1024, part).unwrap();
    }
    assert_eq!(stored(&store), 2 << 20);
    let store = reopen(&disk, store);
    assert!(read(&store, one, 4 * MIB + 8, 2 * MIB) == data);
    assert!(read(&store, other, 0, 2 * MIB) == data);
    assert_sound(&store);
    // The first references go; what still references the chunks is whole.
    let ranges = vec![SectorRange::new(0, 2 * MIB)];
    store.execute(VolumeRequest::Unmap { volume: one, ranges }).unwrap();
    while store.housekeep() {}
    assert_eq!(stored(&store), 2 << 20);
    assert!(read(&store, other, 0, 2 * MIB) == data);
    write(&store, one, 4 * MIB + 8, &vec![0; 2 << 20]).unwrap();
    write(&store, other, 0, &vec![0; 2 << 20]).unwrap();
    while store.housekeep() {}
    assert_eq!(stored(&store), 0);
    assert_sound(&store);
}

#[test]
fn duplicates_of_data_written_before_a_start_are_found() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 4 * MIB);
    let data = distinct(MIB, 1);
    write(&store, id, 0, &data).unwrap();
    store.checkpoint().unwrap();
    let store = reopen(&disk, store);
    assert!(store.maintenance_due());
    while store.maintain().unwrap() != crate::Next::Nothing {}
    write(&store, id, 2 * MIB, &data).unwrap();
    assert_eq!(stored(&store), 1 << 20);
    assert_sound(&store);
}

#[test]
fn blocks_that_repeat_in_one_write_are_stored_once() {
    let (_, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    let data = [distinct(8, 1), distinct(8, 2), distinct(8, 1), distinct(8, 1)].concat();
    write(&store, id, 0, &data).unwrap();
    assert_eq!(stored(&store), 8192);
    assert_eq!(read(&store, id, 0, 32), data);
    assert_sound(&store);
}

#[test]
fn neighbors_are_compressed_together_and_read_separately() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 4 * MIB);
    let data = prose(MIB, 1);
    write(&store, id, 0, &data).unwrap();
    let taken = stored(&store);
    assert!(taken < 1 << 19, "{taken} bytes for 1 MiB of text");
    let store = reopen(&disk, store);
    for block in [0u64, 7, 8, 100, 255] {
        let expected = &data[block as usize * 4096..][..4096];
        assert!(read(&store, id, block * 8, 8) == expected, "block {block}");
    }
    assert!(read(&store, id, 0, MIB) == data);
    // Overwriting a block of a group leaves the others as they are.
    write(&store, id, 24, &distinct(8, 9)).unwrap();
    let mut expected = data.clone();
    expected[3 * 4096..4 * 4096].copy_from_slice(&distinct(8, 9));
    assert!(read(&store, id, 0, MIB) == expected);
    assert_sound(&store);
}

/// Starts a write of one block in a record of its own, and takes its commit.
pub(super) fn begin(
    store: &Store,
    id: VolumeId,
    at: u64,
    bytes: &[u8],
) -> ((Started, Token), Commit) {
    let token = store.waiting_token();
    let range = SectorRange::new(at, 8);
    let data = DataOut::from_bytes(bytes, 0);
    let request = VolumeRequest::Write { volume: id, range, data, fua: false };
    let started = store.start(request, token);
    ((started, token), store.take_commit().unwrap())
}

/// A chunk with one reference is overwritten while another write is about to reference it: it stays
/// until that write is applied.
#[test]
fn a_chunk_is_not_freed_before_a_record_that_refers_to_it() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    let data = distinct(8, 1);
    write(&store, id, 0, &data).unwrap();
    // Both join before either is written: the first in a record of its own, in flight.
    let (over, first) = begin(&store, id, 0, &distinct(8, 2));
    let (again, second) = begin(&store, id, 64, &data);
    for commit in [&first, &second] {
        store.write_out(commit).unwrap();
    }
    store.finish_commit(first, Ok(()));
    assert_eq!(read(&store, id, 64, 8), vec![0; 4096]);
    // A checkpoint between the two contains a chunk without references.
    store.checkpoint().unwrap();
    store.finish_commit(second, Ok(()));
    for (started, token) in [over, again] {
        store.settle(started, token).unwrap();
    }
    assert_eq!(read(&store, id, 64, 8), data);
    assert_eq!(stored(&store), 8192);
    assert_sound(&store);
    let store = reopen(&disk, store);
    assert_eq!(read(&store, id, 64, 8), data);
    assert_sound(&store);
}

/// As above, but the crash comes before the second record: the chunk kept for it is freed.
#[test]
fn a_chunk_that_was_kept_for_a_lost_record_is_freed() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    let data = distinct(8, 1);
    write(&store, id, 0, &data).unwrap();
    let (_, first) = begin(&store, id, 0, &distinct(8, 2));
    let (_, second) = begin(&store, id, 64, &data);
    store.write_out(&first).unwrap();
    store.finish_commit(first, Ok(()));
    store.checkpoint().unwrap();
    drop(second);
    let store = reopen(&disk, store);
    assert_eq!(read(&store, id, 64, 8), vec![0; 4096]);
    assert_eq!(stored(&store), 4096);
    assert_sound(&store);
}

/// One record overwrites the last reference of a chunk; the next, which had joined by then, adds
/// one again. Recovery applies them one after the other, without pins.
#[test]
fn recovery_frees_no_chunk_that_the_next_record_refers_to() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    let data = distinct(8, 1);
    write(&store, id, 0, &data).unwrap();
    let (over, first) = begin(&store, id, 0, &distinct(8, 2));
    let (again, second) = begin(&store, id, 64, &data);
    for commit in [first, second] {
        store.write_out(&commit).unwrap();
        store.finish_commit(commit, Ok(()));
    }
    for (started, token) in [over, again] {
        store.settle(started, token).unwrap();
    }
    assert_eq!(stored(&store), 8192, "the second write found the chunk of the first");
    let store = reopen(&disk, store);
    assert_eq!(read(&store, id, 64, 8), data);
    assert_eq!(stored(&store), 8192);
    assert_sound(&store);
}

/// Later records may reference chunks that recovery finds unreferenced in the middle of the log.
#[test]
fn recovery_keeps_chunks_that_later_records_refer_to() {
    for durability in [Durability::Commit, Durability::Flush] {
        let disk = MemoryDisk::new(1 << 30);
        Store::create(&*disk, &[7; 64]).unwrap();
        let options = || OpenOptions { durability, ..OpenOptions::default() };
        let store = Store::open(disk.clone(), options()).unwrap();
        let id = volume(&store, MIB);
        // Each block moves by one, so that each overwrites the last reference of its neighbour's
        // chunk.
        for round in 0..20u64 {
            for block in 0..8u64 {
                write(&store, id, (block * 8 + round * 8) % 128, &prose(8, block)).unwrap();
            }
        }
        store.execute(VolumeRequest::Flush { volume: id }).unwrap();
        let expected = read(&store, id, 0, 128);
        let taken = stored(&store);
        let store = reopen(&disk, store);
        assert!(read(&store, id, 0, 128) == expected);
        assert_eq!(stored(&store), taken);
        assert_sound(&store);
    }
}

fn set_handling(store: &Store, id: VolumeId, uncompressed: bool, unshared: bool) {
    let handling = format::Handling { uncompressed, unshared };
    let volumes = vec![VolumeChange::Handling { id, handling }];
    store.change(Change { volumes, ..Change::default() }).unwrap();
}

pub(super) fn optimize(store: &Store, seen_max: usize) {
    store.optimize_with(seen_max);
    while store.optimize_step().unwrap() {}
    while store.maintain().unwrap() != crate::Next::Nothing {}
}

#[test]
fn reduction_can_be_turned_off_for_a_volume() {
    let (disk, store) = pool(1 << 30);
    let ids = [(); 3].map(|()| volume(&store, 4 * MIB));
    set_handling(&store, ids[1], true, false);
    set_handling(&store, ids[2], true, true);
    let text = prose(MIB, 1);
    write(&store, ids[2], 0, &text).unwrap();
    assert_eq!(stored(&store), 1 << 20);
    // Blocks that are not to be shared are not found, and find no others.
    write(&store, ids[1], 0, &text).unwrap();
    assert_eq!(stored(&store), 2 << 20);
    write(&store, ids[0], 0, &text).unwrap();
    assert_eq!(stored(&store), 2 << 20);
    write(&store, ids[2], MIB, &text).unwrap();
    assert_eq!(stored(&store), 3 << 20);
    optimize(&store, 100);
    assert_eq!(stored(&store), 3 << 20);
    // Copied blocks are shared with any settings.
    let segments = vec![segment(ids[2], 0, ids[0], 2 * MIB, MIB)];
    store.execute(VolumeRequest::Copy { segments }).unwrap();
    assert_eq!(stored(&store), 3 << 20);
    let store = reopen(&disk, store);
    write(&store, ids[2], 2 * MIB, &text).unwrap();
    assert_eq!(stored(&store), 4 << 20);
    assert!(read(&store, ids[0], 2 * MIB, MIB) == text);
    assert_sound(&store);
}

#[test]
fn reduction_is_off_from_the_commit_that_creates_a_volume() {
    let (disk, store) = pool(1 << 30);
    let handling = format::Handling { uncompressed: true, unshared: true };
    let id = store.allocate_volume_id();
    let size = SectorCount(2 * MIB);
    let volumes = vec![VolumeChange::Create { id, size }, VolumeChange::Handling { id, handling }];
    store.change(Change { volumes, ..Change::default() }).unwrap();
    let [copy, snapshot] = [(); 2].map(|()| store.allocate_volume_id());
    let clone = |to, snapshot| VolumeChange::Clone { source: id, id: to, snapshot };
    let volumes = vec![clone(copy, false), clone(snapshot, true)];
    store.change(Change { volumes, ..Change::default() }).unwrap();
    let store = reopen(&disk, store);
    for of in [id, copy, snapshot] {
        assert_eq!(store.volume_status(of).unwrap().handling, handling);
    }
    let text = prose(MIB, 1);
    write(&store, id, 0, &text).unwrap();
    write(&store, copy, MIB, &text).unwrap();
    assert_eq!(stored(&store), 2 << 20);
    // A snapshot, also one that the same change makes, has no settings.
    let late = store.allocate_volume_id();
    for volumes in [
        vec![VolumeChange::Handling { id: snapshot, handling }],
        vec![clone(late, true), VolumeChange::Handling { id: late, handling }],
    ] {
        assert!(store.change(Change { volumes, ..Change::default() }).is_err());
    }
    assert!(store.volume_status(late).is_none());
    assert_sound(&store);
}

/// Reclaim compresses what it moves, also the live rest of groups.
#[test]
fn reclaim_keeps_moved_data_intact() {
    let disk = MemoryDisk::new(256 << 20);
    Store::create(&*disk, &[5; 64]).unwrap();
    let options = || OpenOptions { memory_bytes: 1 << 20, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options()).unwrap();
    let id = volume(&store, 512 * MIB);
    let mut seeds = vec![0u64; 8192];
    for round in 0..4u64 {
        for group in 0..1024u64 {
            let seed = round * 10_000 + group + 1;
            // Every other round leaves a part of each older group alive.
            let (first, blocks) = if round % 2 == 0 { (0, 8) } else { (3, 4) };
            let at = group * 8 + first;
            let data =
                if group % 3 == 0 { distinct(blocks * 8, seed) } else { prose(blocks * 8, seed) };
            write(&store, id, at * 8, &data).unwrap();
            for block in 0..blocks {
                seeds[(at + block) as usize] = seed << 16 | block << 8 | blocks;
            }
            while store.maintain().unwrap() != crate::Next::Nothing {}
        }
    }
    while store.reclaim_segment().unwrap() {}
    let check = |store: &Store| {
        for (at, seed) in seeds.iter().enumerate() {
            let (seed, block, blocks) = (seed >> 16, (seed >> 8 & 255) as usize, seed & 255);
            let group = at / 8;
            let data =
                if group % 3 == 0 { distinct(blocks * 8, seed) } else { prose(blocks * 8, seed) };
            let held = read(store, id, at as u64 * 8, 8);
            assert!(held == data[block * 4096..(block + 1) * 4096], "block {at}");
        }
        assert_sound(store);
    };
    check(&store);
    let store = reopen(&disk, store);
    check(&store);
}

/// Two blocks with the same fingerprint: a match is compared byte by byte.
#[test]
fn a_chunk_with_the_same_fingerprint_and_other_bytes_is_not_shared() {
    let (_, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    let (first, second) = (distinct(8, 1), distinct(8, 2));
    write(&store, id, 0, &first).unwrap();
    // No two blocks with the same fingerprint are known: the first one's row gets the fingerprint
    // of the second, while its content is in the cache.
    let sum = store.world.medium.keys.fingerprint(&second);
    let chunk = format::ChunkId(1);
    let mut row = store.world.chunk(chunk).unwrap();
    row.fingerprint = sum;
    store.world.chunks.update(&store.world.medium, chunk.0, |raw| row.encode(raw)).unwrap();
    store.world.index.insert(sum, chunk);
    store.world.keep_chunk(chunk, FrameMut::from_bytes(&first).freeze());
    write(&store, id, 8, &second).unwrap();
    assert_eq!(stored(&store), 8192);
    assert!(read(&store, id, 8, 8) == second);
}
