//! Readers of the device, while segments are freed and rewritten.

use super::*;

/// Between the lookup of a chunk's row and the read of its bytes the chunk moves, a checkpoint
/// frees its segment, and the log overwrites it. The reader must find what the row said.
#[test]
fn a_reader_finds_the_chunk_of_its_row_although_it_moves_meanwhile() {
    let disk = MemoryDisk::new(256 << 20);
    Store::create(&*disk, &[7; 64]).unwrap();
    let options = OpenOptions { memory_bytes: 0, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options.clone()).unwrap();
    let [id, other] = [volume(&store, 8 * MIB), volume(&store, 64 * MIB)];
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    write(&store, other, 0, &distinct(2048, 2)).unwrap();
    while store.writer.lock().log.position().segment == 1 {
        write(&store, other, 2048, &distinct(2048, 3)).unwrap();
        write(&store, other, 2048, &distinct(2048, 4)).unwrap();
    }
    store.checkpoint().unwrap();
    drop(store);
    let device = disk.clone();
    let store = Arc::new(Store::open(disk, options).unwrap());
    let place = store.world.chunk(format::ChunkId(1)).unwrap().place;
    let segment = place.segment;
    let place = store.world.medium.geometry().offset_bytes(place);
    let hooked = store.clone();
    *store.world.hook.lock() = Some(Box::new(move || {
        let live = hooked.live_chunks(segment).unwrap();
        assert!(hooked.move_chunks(&live).unwrap());
        hooked.checkpoint().unwrap();
        let freed = hooked.writer.lock().state.segments.row(segment).state;
        assert_eq!(freed, format::SegmentState::Free);
        // The lowest free segment is written next, and the log goes through several.
        for seed in 0..40 {
            write(&hooked, other, 4096, &distinct(2048, 100 + seed)).unwrap();
        }
    }));
    assert!(read(&store, id, 0, 8) == distinct(8, 1));
    assert!(store.world.hook.lock().is_none(), "the row was read");
    // And after that it is rewritten.
    for seed in 0..40 {
        write(&store, other, 4096, &distinct(2048, 200 + seed)).unwrap();
    }
    let mut frame = [FrameMut::stale()];
    sys::Disk::read(&*device, place, &mut frame).unwrap();
    assert!(frame[0][..] != distinct(8, 1)[..], "the location of the chunk is never reused");
    assert!(read(&store, id, 0, 8) == distinct(8, 1));
    assert_sound(&store);
}

/// While a write is being planned, all nodes on its path are freed: that is no damage.
#[test]
fn a_write_is_not_refused_if_nodes_on_its_path_are_freed_meanwhile() {
    let disk = MemoryDisk::new(256 << 20);
    Store::create(&*disk, &[7; 64]).unwrap();
    let store = Arc::new(Store::open(disk, OpenOptions::default()).unwrap());
    let sectors = 1 << 30;
    let id = volume(&store, sectors);
    for at in [0, sectors / 2, sectors - 8] {
        write(&store, id, at, &distinct(8, at + 1)).unwrap();
    }
    let hooked = store.clone();
    *store.world.hook.lock() = Some(Box::new(move || {
        let ranges = vec![SectorRange::new(0, sectors)];
        hooked.execute(VolumeRequest::Unmap { volume: id, ranges }).unwrap();
        while hooked.housekeep() {}
    }));
    write(&store, id, sectors / 2, &distinct(8, 7)).unwrap();
    assert!(store.world.hook.lock().is_none(), "no node was read");
    assert!(read(&store, id, sectors / 2, 8) == distinct(8, 7));
    assert!(read(&store, id, 0, 8) == vec![0; 4096]);
    assert_sound(&store);
}
