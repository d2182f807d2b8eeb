//! Lost pages of rows and directories: the pool opens, and serves what does not depend on them.

use super::*;

/// Volumes of more than one page of rows.
const VOLUMES: u64 = 300;

fn data(index: u64) -> Vec<u8> {
    distinct(8, index + 1)
}

/// Nothing that volumes of a lost page refer to is freed, none of their ids is reused, and once the
/// page is readable they are there again.
#[test]
fn volumes_of_a_lost_page_report_medium_error_and_others_are_served() {
    let (disk, store) = super::super::pool(1 << 30);
    let ids: Vec<VolumeId> = (0..VOLUMES).map(|_| volume(&store, MIB)).collect();
    for (index, id) in (0..).zip(&ids) {
        write(&store, *id, 0, &data(index)).unwrap();
    }
    // Blocks that only they share are counted right as well.
    write(&store, ids[3], 8, &data(150)).unwrap();
    store.checkpoint().unwrap();
    let live_bytes = store.pool_status().data_bytes;
    let at = offset(&store, page_of(&store, TableName::Volumes, 0, 1).place);
    drop(store);
    flip(&disk, at, 1234);
    for _ in 0..2 {
        let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
        let mut lost = 0;
        for (index, id) in (0..).zip(&ids) {
            let range = SectorRange::new(0, 8);
            if !store.is_lost(*id) {
                assert!(read(&store, *id, 0, 8) == data(index));
                continue;
            }
            lost += 1;
            assert_eq!(id.0 / 128, 1);
            let medium = Err(VolumeError::Medium { sector: Sector(0) });
            let request = VolumeRequest::Read { volume: *id, range };
            assert_eq!(store.execute(request).map(|_| ()), medium);
            assert_eq!(write(&store, *id, 0, &data(1)), medium);
            let request = VolumeRequest::Unmap { volume: *id, ranges: vec![range] };
            assert_eq!(store.execute(request).map(|_| ()), medium);
            let segments = vec![segment(*id, 0, ids[0], 800, 8)];
            assert_eq!(store.execute(VolumeRequest::Copy { segments }).map(|_| ()), medium);
            let change = VolumeChange::Destroy { id: *id };
            let change = Change { volumes: vec![change], ..Change::default() };
            assert!(matches!(
                store.change(change),
                Err(StoreError::Volume(VolumeError::Medium { .. }))
            ));
        }
        assert_eq!(lost, 128);
        assert_eq!(store.pool_status().data_bytes, live_bytes);
        // Blocks that they share with others lose the others' references only.
        write(&store, ids[3], 8, &[0; 4096]).unwrap();
        assert!(volume(&store, MIB).0 > ids[299].0, "ids are not reused");
        while store.housekeep() {}
        store.checkpoint().unwrap();
        store.checkpoint().unwrap();
        let report = inspect(disk.copy(), InspectOptions::default()).unwrap();
        assert_eq!(report.lost_volumes, [(128, 255)]);
        let listed = store.damage().findings;
        assert_eq!(listed.len(), 1, "what opening has found is listed at once");
        found(&listed, What::Page { table: TableName::Volumes, level: 0, number: 1 }, at);
        found(&scrub(&store), What::Page { table: TableName::Volumes, level: 0, number: 1 }, at);
    }
    flip(&disk, at, 1234);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    for (index, id) in (0..).zip(&ids) {
        assert!(read(&store, *id, 0, 8) == data(index), "volume {id}");
    }
    assert_sound(&store);
}

/// Changes by the log to a lost volume are lost permanently: its own row says so. Its earlier
/// content is lost, whether or not the page becomes readable again.
#[test]
fn changes_of_the_log_to_a_lost_volume_stay_lost() {
    let (disk, store) = super::super::pool(1 << 30);
    let ids: Vec<VolumeId> = (0..VOLUMES).map(|_| volume(&store, MIB)).collect();
    for (index, id) in (0..).zip(&ids) {
        write(&store, *id, 0, &data(index)).unwrap();
    }
    store.checkpoint().unwrap();
    let (source, overwritten, clone) = (ids[150], ids[290], store.allocate_volume_id());
    assert!(source.0 / 128 == 1 && overwritten.0 / 128 == 2 && clone.0 / 128 == 2);
    for change in [
        VolumeChange::Clone { source, id: clone, snapshot: false },
        VolumeChange::Overwrite { source, destination: overwritten },
    ] {
        store.change(Change { volumes: vec![change], ..Change::default() }).unwrap();
    }
    let at = offset(&store, page_of(&store, TableName::Volumes, 0, 1).place);
    drop(store);
    flip(&disk, at, 1234);
    let medium = Err(VolumeError::Medium { sector: Sector(0) });
    for is_healed in [false, false, true] {
        if is_healed {
            flip(&disk, at, 1234);
        }
        let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
        for id in [overwritten, clone] {
            assert!(store.is_lost(id));
            let request = VolumeRequest::Read { volume: id, range: SectorRange::new(0, 8) };
            assert_eq!(store.execute(request).map(|_| ()), medium);
        }
        for (index, id) in (0..).zip(&ids) {
            if *id != overwritten && (is_healed || id.0 / 128 != 1) {
                assert!(read(&store, *id, 0, 8) == data(index), "volume {id}");
            }
        }
        assert!(volume(&store, MIB).0 > clone.0, "its id is not reused");
        store.checkpoint().unwrap();
    }
}

/// A page in which the next volume would have its row is skipped: the next id is after it.
#[test]
fn a_new_volume_gets_a_row_that_can_be_written() {
    let (disk, store) = super::super::pool(1 << 30);
    let id = volume(&store, MIB);
    write(&store, id, 0, &data(1)).unwrap();
    store.checkpoint().unwrap();
    let at = offset(&store, page_of(&store, TableName::Volumes, 0, 0).place);
    drop(store);
    flip(&disk, at, 77);
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    let new = volume(&store, MIB);
    assert_eq!(new, VolumeId(128));
    write(&store, new, 0, &data(2)).unwrap();
    store.checkpoint().unwrap();
    drop(store);
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    assert!(store.is_lost(id) && !store.is_lost(new));
    assert!(read(&store, new, 0, 8) == data(2));
    drop(store);
    flip(&disk, at, 77);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert!(read(&store, id, 0, 8) == data(1) && read(&store, new, 0, 8) == data(2));
    assert_sound(&store);
}

/// Directories and roots of the chunk and node tables: what is below them is lost, and everything
/// else works. New rows go after the unreadable ones.
#[test]
fn a_lost_directory_or_root_does_not_fill_the_pool() {
    for (table, levels) in [(TableName::Chunks, 3), (TableName::Nodes, 1)] {
        for level in 0..levels {
            let (disk, store) = super::super::pool(1 << 30);
            let [id, other] = [volume(&store, MIB), volume(&store, 4 * MIB)];
            write(&store, id, 0, &data(1)).unwrap();
            // As if the pool had many chunks: its table has two levels of directories.
            store.writer.lock().state.next_chunk = 300 * 128;
            write(&store, id, 800, &data(2)).unwrap();
            store.checkpoint().unwrap();
            assert_eq!(store.checkpointing.lock().superblock().chunks.height, 2);
            let number = [300, 1, 0][if table == TableName::Chunks { level } else { 2 }];
            let at = offset(&store, page_of(&store, table, level as u8, number).place);
            drop(store);
            flip(&disk, at, 99);
            let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
            assert_eq!(read(&store, other, 0, 8), vec![0; 4096]);
            write(&store, other, MIB, &data(3)).unwrap();
            assert!(read(&store, other, MIB, 8) == data(3));
            let lost =
                store.execute(VolumeRequest::Read { volume: id, range: SectorRange::new(800, 8) });
            assert!(matches!(lost, Err(VolumeError::Medium { .. })), "{table:?} {level}");
            store.checkpoint().unwrap();
            drop(store);
            flip(&disk, at, 99);
            let store = Store::open(disk, OpenOptions::default()).unwrap();
            assert!(read(&store, id, 0, 8) == data(1) && read(&store, id, 800, 8) == data(2));
            assert!(read(&store, other, MIB, 8) == data(3));
            assert_sound(&store);
        }
    }
}
