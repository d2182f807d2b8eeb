//! Reclaim finds a chunk that differs from what was written.

use super::*;
use crate::map::walk::entry_of;

fn place_of(store: &Store, volume: VolumeId, block: u64) -> Place {
    let map = store.world.map_of(volume).unwrap();
    match entry_of((&store.world).into(), &map, block).unwrap() {
        format::MapEntry::Chunk(id) => store.world.chunk(id).unwrap().place,
        other => panic!("{other:?}"),
    }
}

/// If moved, it would be covered by the checksums of a new record, which recovery trusts.
#[test]
fn a_corrupt_chunk_is_not_moved_and_others_are() {
    const MIBS: u64 = 16;
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, MIBS * MIB);
    (0..MIBS).for_each(|mib| write(&store, id, mib * MIB, &distinct(MIB, mib)).unwrap());
    // The live rest of each MiB is moved together.
    let zeros = vec![0; (1 << 20) - 4096];
    (0..MIBS).for_each(|mib| write(&store, id, mib * MIB + 8, &zeros).unwrap());
    store.checkpoint().unwrap();
    drop(store);
    // Nothing is cached.
    let store = Store::open(disk.clone(), COLD).unwrap();
    let place = |mib: u64| place_of(&store, id, mib * 256);
    let (rotten, sound) = (place(3), place(4));
    assert_eq!(rotten.segment, sound.segment);
    flip(&disk, offset(&store, rotten), 77);
    while place(4) == sound {
        assert!(store.reclaim_segment().unwrap(), "the segment is emptied");
    }
    assert_eq!(place(3), rotten);
    drop(store);
    let store = Store::open(disk, COLD).unwrap();
    let read = |mib: u64| {
        let range = SectorRange::new(mib * MIB, 8);
        store.execute(VolumeRequest::Read { volume: id, range })
    };
    let lost = VolumeError::Medium { sector: Sector(3 * MIB) };
    assert!(matches!(read(3), Err(error) if error == lost));
    for mib in (0..MIBS).filter(|mib| *mib != 3) {
        let Ok(VolumeReply::Data(data)) = read(mib) else { panic!("MiB {mib}") };
        assert!(data.to_vec() == distinct(8, mib), "MiB {mib}");
    }
}
