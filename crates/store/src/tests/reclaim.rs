//! Reclaim: a pool that is written over and over keeps taking what it has room for.

use super::*;

/// Overwrites single blocks all over a volume that fills more than half of the pool, for several
/// times the pool's size.
fn churn(durability: crate::Durability) {
    let disk = MemoryDisk::new(320 << 20);
    Store::create(&*disk, &[5; 64]).unwrap();
    let options = || OpenOptions { durability, memory_bytes: 1 << 20, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options()).unwrap();
    let blocks = (112 << 20) / 4096u64;
    let id = volume(&store, blocks * 8);
    let mut seeds: Vec<u64> = Vec::new();
    for block in 0..blocks {
        seeds.push(block + 1);
        write(&store, id, block * 8, &distinct(8, block + 1)).unwrap();
        while store.maintain().unwrap() != crate::Next::Nothing {}
    }
    let mut state = 9u64;
    for round in 0..40_000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let block = (state >> 33) % blocks;
        let seed = 1_000_000 + round;
        write(&store, id, block * 8, &distinct(8, seed)).unwrap();
        seeds[block as usize] = seed;
        while store.maintain().unwrap() != crate::Next::Nothing {}
    }
    assert_sound(&store);
    store.execute(VolumeRequest::Flush { volume: id }).unwrap();
    drop(store);
    let store = Store::open(disk, options()).unwrap();
    for (block, seed) in seeds.iter().enumerate() {
        assert!(read(&store, id, block as u64 * 8, 8) == distinct(8, *seed), "block {block}");
    }
    assert_sound(&store);
}

#[test]
fn random_overwrites_never_fill_a_pool_that_has_room() {
    churn(crate::Durability::Commit);
}

#[test]
fn nor_do_they_when_answers_come_from_memory() {
    churn(crate::Durability::Flush);
}
