//! What a full pool keeps free: nothing that hosts or administrators add takes the room of what
//! frees space.

use super::nearly_full::{SEGMENT_BYTES, TUNING};
use super::*;
use crate::StoreError;

const SEGMENTS: u64 = 96;
const DATA_SECTORS: u64 = 512 * MIB;
/// 64 GiB, of which each MiB unmapped within a snapshot takes nodes.
const THIN_SECTORS: u64 = MIB << 16;

fn options() -> OpenOptions {
    OpenOptions { tuning: TUNING, ..OpenOptions::default() }
}

/// A pool that was filled with data until it refused.
fn full() -> (Arc<MemoryDisk>, Store, VolumeId) {
    let disk = MemoryDisk::new((16 << 20) + SEGMENTS * SEGMENT_BYTES);
    Store::create_with_segments(&*disk, &[5; 64], SEGMENT_BYTES).unwrap();
    let store = Store::open(disk.clone(), options()).unwrap();
    let id = volume(&store, DATA_SECTORS);
    let mut end = 0;
    while write(&store, id, end, &distinct(128, end + 1)).is_ok() {
        end += 128;
    }
    (disk, store, id)
}

fn unmap(store: &Store, volume: VolumeId, start: u64, sectors: u64) -> Result<(), VolumeError> {
    let ranges = vec![SectorRange::new(start, sectors)];
    store.execute(VolumeRequest::Unmap { volume, ranges }).map(drop)
}

/// Zeroes parts of empty MiB, each of which takes nodes, until the pool refuses that.
fn exhaust_by_metadata(store: &Store, thin: VolumeId) {
    let parts = (0..THIN_SECTORS / MIB).map(|at| SectorRange::new(at * 7919 % 65_536 * MIB, 8));
    let zero = |range| store.execute(VolumeRequest::Zero { volume: thin, range, fua: false });
    let refused = parts.map(zero).find_map(Result::err);
    assert_eq!(refused, Some(VolumeError::NoSpace));
}

/// Found in an array of 1 GiB: after zeros in a thin volume had taken all room for metadata, the
/// array could not empty the volume of its tokens, and did not start again.
#[test]
fn a_whole_volume_is_unmapped_when_nothing_else_is() {
    let (disk, store, _) = full();
    let thin = volume(&store, THIN_SECTORS);
    let tokens = volume(&store, THIN_SECTORS);
    unmap(&store, tokens, 0, THIN_SECTORS).unwrap();
    exhaust_by_metadata(&store, thin);
    assert_eq!(unmap(&store, thin, 8, 8), Err(VolumeError::NoSpace));
    drop(store);
    let store = Store::open(disk, options()).unwrap();
    unmap(&store, tokens, 0, THIN_SECTORS).unwrap();
    unmap(&store, thin, 0, THIN_SECTORS).unwrap();
    assert_sound(&store);
}

/// Found in an array of 1 GiB: hosts were created until that was refused, and then nothing could be
/// destroyed any more.
#[test]
fn added_configuration_leaves_room_for_ends() {
    let (_, store, data) = full();
    let put = |at: u64, bytes| (format!("N{at}").into_bytes(), Some(vec![at as u8; bytes]));
    let refused = (0..100_000).find_map(|at| {
        store.change(Change { config: vec![put(at, 400)], ..Change::default() }).err()
    });
    assert!(matches!(refused, Some(StoreError::Volume(VolumeError::NoSpace))), "{refused:?}");
    for at in 0..30 {
        // A record that says that its object is destroyed, and an entry of the log of changes.
        let (config, notes) = (vec![put(at, 440)], vec![put(1 << 32 | at, 300)]);
        store.change(Change { config, notes, ..Change::default() }).unwrap();
    }
    let (volumes, config) = (vec![VolumeChange::Destroy { id: data }], vec![put(0, 10)]);
    store.change(Change { volumes, config, ..Change::default() }).unwrap();
    assert_sound(&store);
}
