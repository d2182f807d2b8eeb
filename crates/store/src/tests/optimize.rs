//! The background reduction pass: it finds missed duplicates, and reports its progress.

use super::reduction::{optimize, prose, reopen, stored};
use super::*;

/// Writes the same noise to volumes so that none finds the other's.
fn stored_twice(store: &Store, ids: &[VolumeId], data: &[u8]) {
    let before = stored(store);
    for id in ids {
        write(store, *id, 0, data).unwrap();
        store.world.index.clear();
    }
    assert_eq!(stored(store) - before, data.len() as u64 * ids.len() as u64);
}

#[test]
fn the_background_pass_finds_missed_duplicates() {
    // One round for all fingerprints, and several.
    for seen_max in [1 << 20, 50] {
        let (disk, store) = pool(1 << 30);
        let ids = [(); 3].map(|()| volume(&store, 4 * MIB));
        let data = distinct(MIB, 1);
        stored_twice(&store, &ids, &data);
        optimize(&store, seen_max);
        assert_eq!(stored(&store), 1 << 20);
        assert_eq!(store.optimize_status().aliased_chunks, 512);
        assert_sound(&store);
        let store = reopen(&disk, store);
        assert_eq!(stored(&store), 1 << 20);
        assert!(ids.iter().all(|id| read(&store, *id, 0, MIB) == data));
        assert_sound(&store);
        // In either order: the original is freed first, or the alias.
        write(&store, ids[0], 0, &vec![0; 1 << 19]).unwrap();
        write(&store, ids[2], MIB / 2, &vec![0; 1 << 19]).unwrap();
        assert_eq!(stored(&store), 1 << 20);
        assert!(read(&store, ids[1], 0, MIB) == data);
        assert_sound(&store);
        for id in ids {
            write(&store, id, 0, &vec![0; 1 << 20]).unwrap();
        }
        while store.housekeep() {}
        assert_eq!(stored(&store), 0);
        assert_sound(&store);
    }
}

#[test]
fn a_pass_reports_its_progress_and_result() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 64 * MIB);
    for mib in 0..20 {
        write(&store, id, mib * MIB, &distinct(MIB, mib)).unwrap();
    }
    store.checkpoint().unwrap();
    let rows = 5120;
    // Rounds that were not known of at the start are added.
    for seen_max in [1 << 20, 2000] {
        assert!(store.optimize_with(seen_max) && !store.optimize());
        let mut before = store.optimize_status();
        assert_eq!((before.rows_done, before.running), (0, true));
        assert!((rows..rows + 256).contains(&before.rows_total), "{before:?}");
        while store.optimize_step().unwrap() {
            let status = store.optimize_status();
            assert!(status.rows_done >= before.rows_done && status.rows_done <= status.rows_total);
            assert!(status.segments_done <= status.segments_total && status.running);
            before = status;
        }
        let ended = store.optimize_status();
        assert_eq!(
            (ended.rows_done, ended.segments_done),
            (ended.rows_total, ended.segments_total)
        );
        assert!(ended.segments_total > 0 && !ended.running && ended.failure.is_none());
    }
    assert!(store.optimize_status().rows_total > 2 * rows, "{:?}", store.optimize_status());
    // A stopped pass counts neither as done nor as failed; a failed one reports why, until the next
    // begins.
    assert!(store.optimize() && store.optimize_stop() && !store.optimize_stop());
    assert!(!store.optimize_step().unwrap());
    stored_twice(&store, &[volume(&store, MIB), volume(&store, MIB)], &distinct(MIB, 99));
    disk.fail_after(0);
    store.optimize();
    let error = loop {
        if let Err(error) = store.optimize_step() {
            break error.to_string();
        }
    };
    let status = store.optimize_status();
    assert_eq!((status.passes, status.failed_passes, status.running), (2, 1, false));
    assert_eq!((status.failure, status.aliased_chunks), (Some(error), 0));
    store.optimize();
    assert_eq!(store.optimize_status().failure, None);
}

#[test]
fn an_alias_of_an_alias_is_read_and_freed() {
    let (disk, store) = pool(1 << 30);
    let ids = [(); 3].map(|()| volume(&store, MIB));
    stored_twice(&store, &ids, &distinct(8, 1));
    for (chunk, original) in [(3, 2), (2, 1)] {
        let (chunk, original) = (format::ChunkId(chunk), format::ChunkId(original));
        store.commit_entries(vec![format::Entry::Alias { chunk, original }]).unwrap();
    }
    assert_eq!(stored(&store), 4096);
    let store = reopen(&disk, store);
    assert_eq!(read(&store, ids[2], 0, 8), distinct(8, 1));
    assert_sound(&store);
    write(&store, ids[0], 0, &[0; 4096]).unwrap();
    write(&store, ids[1], 0, &[0; 4096]).unwrap();
    assert_eq!(read(&store, ids[2], 0, 8), distinct(8, 1));
    write(&store, ids[2], 0, &[0; 4096]).unwrap();
    assert_eq!(stored(&store), 0);
    assert_sound(&store);
}

#[test]
fn the_background_pass_packs_single_blocks_together() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 128 * MIB);
    let data = prose(32 * MIB, 1);
    for (block, bytes) in data.chunks(4096).enumerate() {
        write(&store, id, block as u64 * 8, bytes).unwrap();
    }
    let before = stored(&store);
    // So that none of it is where the log continues.
    for seed in 0..40 {
        write(&store, id, 64 * MIB, &distinct(MIB, seed)).unwrap();
    }
    optimize(&store, 1000);
    let after = stored(&store) - (1 << 20);
    assert!(after * 2 < before, "{before} bytes became {after}");
    assert!(store.optimize_status().rewritten_segments > 0);
    let store = reopen(&disk, store);
    assert!(read(&store, id, 0, 4 * MIB) == data[..4 << 20]);
    assert_sound(&store);
}

/// Reclaim may have examined a chunk before it became an alias.
#[test]
fn a_chunk_that_became_an_alias_is_not_moved() {
    let (_, store) = pool(1 << 30);
    let ids = [(); 2].map(|()| volume(&store, MIB));
    let data = distinct(8, 1);
    stored_twice(&store, &ids, &data);
    optimize(&store, 1 << 20);
    let is_alias =
        |id: &u64| store.world.chunk(format::ChunkId(*id)).is_ok_and(|row| row.original.is_some());
    let alias = (1..10).find(is_alias).unwrap();
    let moved = format::Entry::Relocate {
        first: format::ChunkId(alias),
        payload_units: 0,
        fingerprints: vec![store.world.medium.keys.fingerprint(&data)],
    };
    let frame = FrameMut::from_bytes(&data).freeze();
    let relocation = crate::log::relocation::Relocation {
        entries: vec![moved],
        frames: vec![frame],
        ..crate::log::relocation::Relocation::default()
    };
    assert!(store.relocate(relocation).unwrap());
    assert!(is_alias(&alias));
    assert_eq!(stored(&store), 4096);
    assert_sound(&store);
}

/// Chunks that earlier code stored uncompressed because they looked random, as it did not look for
/// repetition, are tried again.
#[test]
fn the_background_pass_retries_uncompressed_chunks() {
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, MIB);
    let repeated = |block: u64| distinct(1, block + 1).repeat(8);
    let count = 64;
    for block in 0..count {
        write(&store, id, block * 8, &repeated(block)).unwrap();
    }
    // Moves it to where that code would have stored it.
    let mut relocation = crate::log::relocation::Relocation::default();
    for chunk in 1..=count {
        let fingerprint = store.world.chunk(format::ChunkId(chunk)).unwrap().fingerprint;
        relocation.entries.push(format::Entry::Relocate {
            first: format::ChunkId(chunk),
            payload_units: (chunk - 1) as u32 * format::geometry::UNITS_PER_BLOCK,
            fingerprints: vec![fingerprint],
        });
        relocation.frames.push(FrameMut::from_bytes(&repeated(chunk - 1)).freeze());
    }
    assert!(store.relocate(relocation).unwrap());
    assert_eq!(store.pool_status().data_bytes, count * 4096);
    // Followed by incompressible data, so that the log continues elsewhere.
    let noise = volume(&store, 32 * MIB);
    for at in 0..32 {
        write(&store, noise, at * MIB, &distinct(MIB, 1000 + at)).unwrap();
    }
    let noise_bytes = 32 << 20;
    optimize(&store, 1000);
    let data_bytes = store.pool_status().data_bytes;
    assert!(data_bytes < noise_bytes + count * 1024, "{data_bytes}");
    let rewritten = store.optimize_status().rewritten_segments;
    optimize(&store, 1000);
    assert_eq!(store.optimize_status().rewritten_segments, rewritten, "nothing more is gained");
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    for block in 0..count {
        assert!(read(&store, id, block * 8, 8) == repeated(block), "block {block}");
    }
    assert_sound(&store);
}
