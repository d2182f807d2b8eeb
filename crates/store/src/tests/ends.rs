//! Deleting volumes and writing state of the layer above find room when nothing else does.

use format::geometry::SEGMENT_BYTES_MIN;
use format::{Handling, Place, SegmentState};

use super::*;
use crate::writer::room::Want;
use crate::{Durability, Tuning};

const SEGMENT_BYTES: u64 = 64 << 10;
const SEGMENT_UNITS: u32 = (SEGMENT_BYTES / format::PLACE_UNIT_BYTES) as u32;

/// A pool with this much state of the layer above, in which only the reserve of reclaim moves is
/// free, and nothing can be reclaimed.
fn left_by_moves(durability: Durability, noted_bytes: usize) -> (Store, VolumeId) {
    let disk = MemoryDisk::new(SEGMENT_BYTES_MIN + 48 * SEGMENT_BYTES);
    Store::create_with_segments(&*disk, &[5; 64], SEGMENT_BYTES).unwrap();
    let options = OpenOptions { durability, tuning: Tuning::SMALL, ..OpenOptions::default() };
    let store = Store::open(disk, options).unwrap();
    let volume = volume(&store, 8 * MIB);
    let config = vec![(b"N".to_vec(), Some(vec![7; noted_bytes]))];
    store.change(Change { config, ..Change::default() }).unwrap();
    store.checkpoint().unwrap();
    let mut writer = store.writer.lock();
    writer.next_checkpoint.use_up_rest();
    writer.next_checkpoint.note_holes(0);
    let last = loop {
        let segments = &mut writer.state.segments;
        let segment = segments.open(SegmentState::Log, 1).unwrap();
        if !writer.leaves_enough(&store.world, Want::Move, 1, true) {
            break segment;
        }
        let segments = &mut writer.state.segments;
        segments.add_live(Place { segment, offset_units: 0 }, SEGMENT_UNITS).unwrap();
    };
    writer.state.segments.free_dead_one(last);
    assert!(writer.leaves_enough(&store.world, Want::Move, 1, true));
    assert!(!writer.leaves_enough(&store.world, Want::Replacement, 1, true));
    drop(writer);
    (store, volume)
}

/// With segments so small that one holds only a few blocks of metadata, one free segment was not
/// enough to delete a volume, and the pool could not even be started. Found by the simulator.
#[test]
fn the_reserve_suffices_to_delete_a_volume_in_tiny_segments() {
    for durability in [Durability::Commit, Durability::Flush] {
        // The unconditional part of a checkpoint leaves any part of a segment free.
        for (ends, blocks) in (0..9).flat_map(|blocks| [(false, blocks), (true, blocks)]) {
            let (store, id) = left_by_moves(durability, blocks * 4080);
            let handling = Handling { uncompressed: true, unshared: false };
            let volume = match ends {
                true => VolumeChange::Destroy { id },
                false => VolumeChange::Handling { id, handling },
            };
            let notes = vec![(b"N-is-noted".to_vec(), Some(vec![7; 3000]))];
            store.change(Change { volumes: vec![volume], notes, ..Change::default() }).unwrap();
            store.checkpoint().unwrap();
            assert!(!store.has_failed());
        }
    }
}

/// State of the layer above changes no rows.
#[test]
fn state_of_the_layer_above_takes_room_by_its_length() {
    let (store, _) = left_by_moves(Durability::Commit, 100);
    for at in 0..8 {
        let config = vec![(vec![b'N', at], Some(vec![at; 100])), (vec![b'M', at], None)];
        store.change(Change { config, ..Change::default() }).unwrap();
    }
}
