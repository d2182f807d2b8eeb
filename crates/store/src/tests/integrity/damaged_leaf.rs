//! What a damaged chunk, leaf or page of rows costs: the requests that need it, and no others.

use format::MapEntry;
use format::page::ROWS_PER_PAGE;

use super::*;

/// A pool whose first leaf is damaged, and was not read yet.
fn with_a_damaged_leaf() -> (Pool, Store, What) {
    let pool = make();
    let store = Store::load(pool.disk.clone(), COLD).unwrap();
    let map = store.world.map_of(pool.volumes[1]).unwrap();
    let mut entry = map.root;
    for level in (2..=map.level).rev() {
        let MapEntry::Node(id) = entry else { panic!("{entry:?}") };
        entry = store.world.nodes.get(&store.world.medium, id, level).unwrap().get(0);
    }
    let MapEntry::Node(leaf) = entry else { panic!("{entry:?}") };
    let row = store.world.nodes.row(&store.world.medium, leaf).unwrap();
    flip(&pool.disk, offset(&store, row.place), 999);
    drop(store);
    let store = open(&pool);
    (pool, store, What::Node(leaf.0))
}

#[test]
fn only_requests_that_need_a_damaged_leaf_are_refused() {
    let (pool, store, leaf) = with_a_damaged_leaf();
    let [one, other] = pool.volumes;
    let medium = |sector| Err(VolumeError::Medium { sector: Sector(sector) });
    let read_at = |start, count| {
        let range = SectorRange::new(start, count);
        store.execute(VolumeRequest::Read { volume: one, range }).map(|_| ())
    };
    assert_eq!(read_at(800, 16), medium(800));
    assert_eq!(read_at(803, 16), medium(803));
    assert_eq!(read_at(MIB, 8), Ok(()));
    assert_eq!(write(&store, one, 800, &[1; 4096]), medium(800));
    assert_eq!(write(&store, one, 803, &[1; 512]), medium(803));
    // Both sides of its end.
    assert_eq!(write(&store, other, MIB - 8, &[1; 8192]), medium(MIB - 8));
    let unmap = |start, count| {
        let ranges = vec![SectorRange::new(start, count)];
        store.execute(VolumeRequest::Unmap { volume: one, ranges }).map(|_| ())
    };
    assert_eq!(unmap(MIB + 8, 8), Ok(()));
    assert_eq!(unmap(MIB - 8, 16), medium(MIB - 8));
    // A copy from it, and a copy onto it that can't reference it as it is.
    let copy = |from, to, count| {
        let segments = vec![segment(one, from, one, to, count)];
        store.execute(VolumeRequest::Copy { segments }).map(|_| ())
    };
    assert_eq!(copy(80, 4 * MIB, 8), medium(80));
    assert_eq!(copy(MIB, 80, 8), medium(80));
    // It can be copied as a whole: lost blocks stay lost in the copy.
    assert_eq!(copy(0, 5 * MIB, MIB), Ok(()));
    assert_eq!(read_at(5 * MIB + 16, 8), medium(5 * MIB + 16));
    assert!(!store.has_failed());
    write(&store, one, 3 * MIB, &distinct(8, 77)).unwrap();
    let findings = scrub(&store);
    let finding = found(&findings, leaf, findings[0].offset_bytes);
    assert_eq!(finding.repair, Repair::Impossible);
    assert_eq!(finding.ranges.len(), 3, "{finding:?}");
    assert!(finding.ranges.iter().all(|named| named.range.count.0 == MIB));
    drop(store);
    assert!(!open(&pool).has_failed());
}

#[test]
fn a_damaged_leaf_can_be_overwritten_unmapped_cut_off_and_destroyed() {
    for way in 0..4 {
        let (pool, store, _) = with_a_damaged_leaf();
        let one = pool.volumes[0];
        let range = SectorRange::new(0, MIB);
        match way {
            0 => write(&store, one, 0, &distinct(MIB, 5)).unwrap(),
            1 => {
                let ranges = vec![range];
                store.execute(VolumeRequest::Unmap { volume: one, ranges }).map(drop).unwrap();
            }
            2 => {
                let resized = VolumeChange::Resize { id: one, size: SectorCount(8) };
                let refused = store.change(Change { volumes: vec![resized], ..Change::default() });
                assert!(matches!(
                    refused,
                    Err(StoreError::Volume(VolumeError::Medium { sector: Sector(8) }))
                ));
                store.execute(VolumeRequest::Zero { volume: one, range, fua: false }).unwrap();
            }
            _ => {
                let change = VolumeChange::Destroy { id: one };
                store.change(Change { volumes: vec![change], ..Change::default() }).unwrap();
            }
        }
        if way < 3 {
            read(&store, one, 0, MIB);
        }
        // The other volume still references it; when that one is deleted, nothing can free its
        // chunks.
        while store.housekeep() {}
        assert_eq!(store.damage().stuck_nodes, 0);
        let change = VolumeChange::Destroy { id: pool.volumes[1] };
        store.change(Change { volumes: vec![change], ..Change::default() }).unwrap();
        while store.housekeep() {}
        assert_eq!(store.damage().stuck_nodes, 1, "way {way}");
        store.checkpoint().unwrap();
        assert!(!store.has_failed());
        drop(store);
        let store = open(&pool);
        while store.housekeep() {}
        assert_eq!(store.damage().stuck_nodes, 1, "way {way}");
        let id = volume(&store, MIB);
        write(&store, id, 0, &distinct(8, 6)).unwrap();
    }
}

/// A copy that is not applied yet places a damaged leaf where a write goes.
#[test]
fn a_write_after_a_copy_of_a_damaged_leaf_is_refused_and_the_store_continues() {
    let (pool, store, _) = with_a_damaged_leaf();
    let one = pool.volumes[0];
    let token = |id| crate::Token { id, ..store.waiting_token() };
    let (copied, written) = (token(1 << 40), token(1 << 41));
    let segments = vec![segment(one, 0, one, 6 * MIB, MIB)];
    let copy = store.start(VolumeRequest::Copy { segments }, copied);
    let range = SectorRange::new(6 * MIB + 80, 8);
    let data = DataOut::from_bytes(&distinct(8, 3), 0);
    let write = VolumeRequest::Write { volume: one, range, data, fua: false };
    let started = store.start(write, written);
    assert!(matches!(started, crate::Started::Queued), "it waits for the copy");
    store.settle(copy, copied).unwrap();
    let refused = store.settle(started, written).map(drop);
    assert_eq!(refused, Err(VolumeError::Medium { sector: range.start }));
    assert!(!store.has_failed());
}

/// The page that the next chunks would share with older ones is damaged: their ids are given up.
#[test]
fn new_blocks_get_rows_next_to_a_damaged_page() {
    let pool = make();
    let store = Store::load(pool.disk.clone(), COLD).unwrap();
    store.checkpoint().unwrap();
    let next = store.writer.lock().state.next_chunk;
    assert!(!next.is_multiple_of(ROWS_PER_PAGE));
    let page = page_of(&store, TableName::Chunks, 0, next / ROWS_PER_PAGE);
    flip(&pool.disk, offset(&store, page.place), 4);
    drop(store);
    let store = open(&pool);
    write(&store, pool.volumes[0], 7 * MIB, &distinct(64, 4)).unwrap();
    assert_eq!(read(&store, pool.volumes[0], 7 * MIB, 64), distinct(64, 4));
    assert!(store.writer.lock().state.next_chunk > next.next_multiple_of(ROWS_PER_PAGE));
    store.checkpoint().unwrap();
    drop(store);
    assert_eq!(read(&open(&pool), pool.volumes[0], 7 * MIB, 64), distinct(64, 4));
}

#[test]
fn two_bad_reads_of_one_request_report_the_first() {
    let pool = make();
    let store = open(&pool);
    let one = pool.volumes[0];
    let map = store.world.map_of(one).unwrap();
    for block in [20, 30] {
        let MapEntry::Chunk(id) =
            crate::map::walk::entry_of((&store.world).into(), &map, block).unwrap()
        else {
            panic!("data");
        };
        let row = store.world.chunk(id).unwrap();
        flip(&pool.disk, offset(&store, row.place), 1);
    }
    let read_at = |start, count| {
        let range = SectorRange::new(start, count);
        store.execute(VolumeRequest::Read { volume: one, range }).map(|_| ())
    };
    let medium = |sector| Err(VolumeError::Medium { sector: Sector(sector) });
    assert_eq!(read_at(0, 800), medium(160));
    assert_eq!(read_at(163, 800), medium(163));
    assert_eq!(read_at(168, 800), medium(240));
    assert_eq!(read_at(168, 72), Ok(()));
}

#[test]
fn an_overwrite_and_an_unmap_end_a_finding() {
    let pool = make();
    let store = open(&pool);
    // Block 10 of this volume, and of the other one that shares its leaf.
    let map = store.world.map_of(pool.volumes[0]).unwrap();
    let MapEntry::Chunk(id) = crate::map::walk::entry_of((&store.world).into(), &map, 10).unwrap()
    else {
        panic!("block 10 is data");
    };
    let row = store.world.chunk(id).unwrap();
    flip(&pool.disk, offset(&store, row.place), 7);
    let [one, other] = pool.volumes;
    assert_eq!(named(&scrub(&store)), [(one, 10), (other, 10)]);
    // A part of a block can't be written: the rest of it is lost.
    let half = write(&store, one, 10 * 8 + 2, &[1; 512]);
    assert_eq!(half, Err(VolumeError::Medium { sector: Sector(82) }));
    write(&store, one, 10 * 8, &[1; 4096]).unwrap();
    assert_eq!(named(&scrub(&store)), [(other, 10)]);
    let ranges = vec![SectorRange::new(80, 8)];
    store.execute(VolumeRequest::Unmap { volume: other, ranges }).unwrap();
    assert_eq!(scrub(&store), []);
    assert_eq!(read(&store, one, 80, 8), vec![1; 4096]);
    assert_sound(&store);
}
