//! Damage of what several blocks share: compressed groups, and originals of aliases.

use format::{Codec, Entry, Handling, MapEntry};

use super::super::reduction::prose;
use super::*;
use crate::writer::job::{Job, Submitted};

/// Two volumes; the first `sectors` of the first one are `bytes`.
fn make_with(bytes: &[u8], handling: Handling) -> (Pool, Store) {
    let (disk, store) = pool(1 << 30);
    let volumes = [volume(&store, 8 * MIB), volume(&store, 8 * MIB)];
    for volume in volumes {
        submit(&store, Entry::VolumeHandling { volume, handling });
    }
    let mut content = [vec![0; 8 << 20], vec![0; 8 << 20]];
    write(&store, volumes[0], 0, bytes).unwrap();
    content[0][..bytes.len()].copy_from_slice(bytes);
    (Pool { disk, volumes, content }, store)
}

fn submit(store: &Store, entry: Entry) {
    let token = store.waiting_token();
    let job = Job::Entries {
        entries: vec![entry],
        grows: false,
        wait: None,
        plan: store.world.memory.plans.hold(),
    };
    let submitted = store.writer.lock().submit(&store.world, token, job);
    assert!(matches!(submitted, Submitted::Queued));
    store.settle(crate::Started::Queued, token).unwrap();
}

fn chunk_at(store: &Store, volume: VolumeId, block: u64) -> ChunkId {
    let map = store.world.map_of(volume).unwrap();
    match crate::map::walk::entry_of((&store.world).into(), &map, block).unwrap() {
        MapEntry::Chunk(id) => id,
        other => panic!("block {block} is {other:?}"),
    }
}

#[test]
fn a_flipped_bit_in_a_compressed_group_is_found_and_reported() {
    let mut lost_at_all = Vec::new();
    for bit in [3, 21 * 8 + 5, 77 * 8, 200 * 8 + 1, 300 * 8 + 6] {
        let (pool, store) = make_with(&prose(MIB, 1), Handling::default());
        store.checkpoint().unwrap();
        drop(store);
        let store = open(&pool);
        assert_eq!(scrub(&store), []);
        let row = store.world.chunk(chunk_at(&store, pool.volumes[0], 100)).unwrap();
        assert!(row.codec == Codec::Lz4 && row.group_blocks > 1, "{row:?}");
        assert!(u64::from(row.stored_units) * 64 > bit / 8);
        let first = 100 - u64::from(row.group_index);
        let group = first..first + u64::from(row.group_blocks);
        flip(&pool.disk, offset(&store, row.place), bit);
        let findings = scrub(&store);
        assert!(!findings.is_empty());
        for finding in &findings {
            assert!(matches!(finding.what, What::Chunk(_)), "{finding:?}");
            assert_eq!(finding.offset_bytes, offset(&store, row.place));
            assert_eq!(finding.repair, Repair::Impossible);
        }
        let lost = lost(&pool, &store);
        assert_eq!(named(&findings), lost);
        assert!(lost.iter().all(|(_, block)| group.contains(block)), "{lost:?}");
        let report = store.check(CheckOptions { data: true }).unwrap();
        assert_eq!(report.findings.len(), lost.len());
        lost_at_all.push(lost.len());
    }
    // A group that ends too early loses the blocks after that, a literal all that repeats it.
    assert_eq!(lost_at_all, [1, 8, 8, 8, 8]);
}

#[test]
fn a_damaged_compressed_group_is_rewritten_from_the_cache_by_block() {
    let (pool, store) = make_with(&prose(MIB, 1), Handling::default());
    assert_eq!(lost(&pool, &store), []);
    store.checkpoint().unwrap();
    let id = chunk_at(&store, pool.volumes[0], 100);
    let row = store.world.chunk(id).unwrap();
    flip(&pool.disk, offset(&store, row.place), 21 * 8 + 5);
    let findings = scrub(&store);
    assert_eq!(findings.len(), usize::from(row.group_blocks));
    for finding in &findings {
        assert_eq!((finding.repair, &finding.ranges[..]), (Repair::Done, &[][..]));
    }
    let moved = store.world.chunk(id).unwrap();
    assert!(moved.codec == Codec::Raw && moved.place != row.place, "{moved:?}");
    assert_eq!(scrub(&store), []);
    assert_sound(&store);
    drop(store);
    let store = open(&pool);
    assert_eq!(lost(&pool, &store), []);
    assert_sound(&store);
}

/// Three chunks with the same content, the last an alias of the second, and that one of the first:
/// as they are in the log, and as a checkpoint has written them.
#[test]
fn damage_of_an_original_is_reported_for_all_its_aliases() {
    for checkpoints in 0..2 {
        let data = distinct(8, 5);
        let unshared = Handling { unshared: true, ..Handling::default() };
        let (mut pool, store) = make_with(&data, unshared);
        let [one, other] = pool.volumes;
        let places = [(one, 0), (one, 700), (other, 1000)];
        for (volume, block) in &places[1..] {
            write(&store, *volume, block * 8, &data).unwrap();
            let at = usize::from(*volume == other);
            pool.content[at][*block as usize * 4096..][..4096].copy_from_slice(&data);
        }
        // Beside them a sound chunk, and a sound alias.
        for block in [20, 30] {
            write(&store, one, block * 8, &distinct(8, 6)).unwrap();
            pool.content[0][block as usize * 4096..][..4096].copy_from_slice(&distinct(8, 6));
        }
        let [first, second, third] = places.map(|(volume, block)| chunk_at(&store, volume, block));
        assert!(first < second && second < third);
        let whole = [20, 30].map(|block| chunk_at(&store, one, block));
        submit(&store, Entry::Alias { chunk: third, original: second });
        submit(&store, Entry::Alias { chunk: second, original: first });
        submit(&store, Entry::Alias { chunk: whole[1], original: whole[0] });
        let row = store.world.chunk(first).unwrap();
        assert_eq!(store.world.chunk(second).unwrap().original, Some(first));
        assert_eq!(store.world.chunk(third).unwrap().original, Some(second));
        for _ in 0..checkpoints {
            store.checkpoint().unwrap();
        }
        drop(store);
        let store = open(&pool);
        assert_eq!((lost(&pool, &store), scrub(&store)), (vec![], vec![]));
        drop(store);
        flip(&pool.disk, offset(&open(&pool), row.place), 12_345);
        let store = open(&pool);
        let findings = scrub(&store);
        let damaged = findings.iter().filter(|finding| finding.what == What::Chunk(first.0));
        let damaged: Vec<Finding> = damaged.cloned().collect();
        assert_eq!(named(&damaged), places);
        assert_eq!(lost(&pool, &store), places);
        // Each is readable again once overwritten, and the original is freed with its last
        // reference.
        for (volume, block) in places {
            write(&store, volume, block * 8, &distinct(8, block + 9)).unwrap();
        }
        assert!(store.world.chunk(first).is_err());
        assert_eq!(scrub(&store), []);
        assert_sound(&store);
    }
}
