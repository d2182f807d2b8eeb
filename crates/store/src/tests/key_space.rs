//! The key-value space in leaves: what a checkpoint writes of it, and where.

use std::collections::BTreeSet;
use std::time::Instant;

use format::geometry::SEGMENT_BYTES_MIN;

use super::*;
use crate::Tuning;
use crate::key_space::leaves::Leaves;

/// Writes keys like those of snapshots: a kind and an id, and some settings.
pub(super) fn keep(store: &Store, ids: std::ops::Range<u64>, round: u64) {
    let pair = |id: u64| {
        let value =
            format!("{{\"name\":\"daily-{id:08}\",\"origin\":{},\"made\":{round}}}", id / 64);
        (format!("snapshot/{id:016x}").into_bytes(), Some(value.repeat(2).into_bytes()))
    };
    let ids: Vec<u64> = ids.collect();
    for ids in ids.chunks(500) {
        let config = ids.iter().map(|id| pair(*id)).collect();
        store.change(Change { config, ..Change::default() }).unwrap();
    }
}

#[test]
fn a_checkpoint_writes_only_changes_of_a_large_key_value_space() {
    let (disk, store) = pool(1 << 30);
    keep(&store, 0..20_000, 0);
    store.checkpoint().unwrap();
    let written = || store.pool_status().written.checkpoint_bytes;
    let before = written();
    keep(&store, 7000..7001, 1);
    store.checkpoint().unwrap();
    let bytes = written() - before;
    assert!(bytes < 64 << 10, "{bytes} bytes for one change");
    let config = store.config();
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert!(store.config() == config && config.len() == 20_000);
    assert_sound(&store);
}

/// Returns the segments that the leaves are in.
fn segments(store: &Store) -> BTreeSet<u32> {
    let writer = store.writer.lock();
    let places = writer.state.config.leaves().into_iter().flat_map(Leaves::places);
    places.map(|(place, _)| place.segment).collect()
}

/// Unchanged leaves do not keep a metadata segment from being emptied.
#[test]
fn leaves_are_moved_out_of_segments_that_are_nearly_empty() {
    let disk = MemoryDisk::new(SEGMENT_BYTES_MIN + (112 << 16));
    Store::create_with_segments(&*disk, &[5; 64], 64 << 10).unwrap();
    let options = OpenOptions { tuning: Tuning::SMALL, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options.clone()).unwrap();
    let id = volume(&store, 4 * MIB);
    for key in 0..8u8 {
        let config = vec![(vec![key], Some(vec![key; 3000]))];
        store.change(Change { config, ..Change::default() }).unwrap();
        for at in 0..8 {
            write(&store, id, at * 8, &distinct(8, u64::from(key) * 8 + at)).unwrap();
            store.checkpoint().unwrap();
        }
    }
    let (before, config) = (segments(&store), store.config());
    assert!(before.len() > 4, "{before:?}");
    let mut pass = None;
    while store.compact_turn(&mut pass).unwrap() {}
    let after = segments(&store);
    assert!(after.len() <= before.len() / 2, "{before:?} {after:?}");
    assert_sound(&store);
    drop(store);
    let store = Store::open(disk, options).unwrap();
    assert_eq!(store.config(), config);
    assert_sound(&store);
}

/// Not a test of behaviour: prints bytes and time of a checkpoint after one small change, with
/// 20,000 and 100,000 keys. `--ignored --nocapture` runs it.
#[test]
#[ignore = "a measurement"]
fn measure_checkpoint() {
    let (_disk, store) = pool(4 << 30);
    let mut made = 0;
    for keys in [20_000, 100_000] {
        keep(&store, made..keys, 0);
        made = keys;
        store.checkpoint().unwrap();
        let mut times = Vec::new();
        let before = store.pool_status().written.checkpoint_bytes;
        for round in 1..=20 {
            #[allow(clippy::disallowed_methods)]
            let now = Instant::now;
            keep(&store, keys / 2..keys / 2 + 1, round);
            let began = now();
            store.checkpoint().unwrap();
            times.push(began.elapsed());
        }
        let bytes = (store.pool_status().written.checkpoint_bytes - before) / 20;
        times.sort_unstable();
        println!("{keys} keys: {bytes} bytes, {:?} (median of 20)", times[10]);
    }
}
