//! Automatic reclaim: its rate, what it leaves, and what it must not hold up.

use std::time::Duration;

use super::memory::Memory;
use super::world::World;
use crate::datastore::{
    AllocateAs, AutoReclaimed, BLOCK_BYTES, BlockState, Datastore, DatastoreError, Medium,
    MountOptions, Placement, fsck,
};

const BLOCKS: u64 = 20;

/// Returns a datastore, and the former blocks of a file of it that was deleted.
async fn deleted(medium: &Memory) -> (Datastore, Vec<u64>) {
    Datastore::format(medium, "reclaimed").await.unwrap();
    let store = Datastore::mount(medium, MountOptions::of_host("one")).await.unwrap();
    let file = store.create("gone", BLOCKS * BLOCK_BYTES).await.unwrap();
    let how = (AllocateAs::Present, Placement::Contiguous);
    let mut places = Vec::new();
    for extent in file.allocate(0, BLOCKS, how.0, how.1).await.unwrap() {
        let BlockState::Present(at) = extent.state else { panic!("{extent:?}") };
        places.extend((0..extent.count).map(|index| at + index * BLOCK_BYTES));
    }
    for place in &places {
        medium.write(*place, &[7; 512]).await.unwrap();
    }
    file.close().await.unwrap();
    store.delete("gone").await.unwrap();
    (store, places)
}

async fn is_zero(medium: &Memory, place: u64) -> bool {
    medium.read(place, 512).await.unwrap().iter().all(|byte| *byte == 0)
}

#[test]
fn blocks_are_unmapped_at_the_rate_and_then_free() {
    let mut world = World::new(64 << 20, 1);
    let medium = world.host(true);
    world.run(async move {
        medium.reclaim_by_itself(4);
        let (store, places) = deleted(&medium).await;
        let (begun, mut seen) = (medium.now(), 0);
        while store.auto_reclaimed().pending_blocks > 0 {
            medium.sleep(Duration::from_millis(100)).await;
            let done = store.auto_reclaimed().unmapped_blocks;
            let seconds = medium.now().duration_since(begun).as_secs_f64();
            assert!(done as f64 <= 4.0 * seconds + 1.0, "{done} blocks in {seconds} s");
            // One after the other.
            assert!(done == seen || done == seen + 1, "{seen}, then {done}");
            seen = done;
        }
        medium.sleep(Duration::from_secs(1)).await;
        let all = AutoReclaimed { unmapped_blocks: BLOCKS, ..AutoReclaimed::default() };
        assert_eq!(store.auto_reclaimed(), all);
        assert_eq!(store.free_blocks().await.unwrap(), store.capacity_blocks());
        for place in places {
            assert!(is_zero(&medium, place).await);
        }
        // It starts again with later deletions.
        let file = store.create("later", BLOCK_BYTES).await.unwrap();
        file.allocate(0, 1, AllocateAs::Present, Placement::AsItComes).await.unwrap();
        file.release(0, 1).await.unwrap();
        medium.sleep(Duration::from_secs(2)).await;
        assert_eq!(store.auto_reclaimed().unmapped_blocks, BLOCKS + 1);
        file.close().await.unwrap();
        store.unmount().await.unwrap();
        assert!(fsck(&medium).await.unwrap().is_clean());
    });
}

#[test]
fn pending_blocks_are_freed_when_space_is_needed() {
    let mut world = World::new(64 << 20, 2);
    let medium = world.host(true);
    world.run(async move {
        medium.reclaim_by_itself(1);
        let (store, _) = deleted(&medium).await;
        let capacity = store.capacity_blocks();
        for placement in [Placement::Contiguous, Placement::AsItComes] {
            assert!(store.free_blocks().await.unwrap() < capacity);
            let file = store.create("all", capacity * BLOCK_BYTES).await.unwrap();
            file.allocate(0, capacity, AllocateAs::ToBeZeroed, placement).await.unwrap();
            let end = store.create("more", BLOCK_BYTES).await.unwrap();
            let full = end.allocate(0, 1, AllocateAs::Present, placement).await;
            assert!(matches!(full, Err(DatastoreError::Full)), "{full:?}");
            end.close().await.unwrap();
            store.delete("more").await.unwrap();
            file.close().await.unwrap();
            store.delete("all").await.unwrap();
        }
        let done = store.auto_reclaimed();
        assert!(done.skipped_blocks >= BLOCKS && done.leaked_blocks == 0, "{done:?}");
        // What is left at the end is free, too.
        assert!(done.pending_blocks > 0, "{done:?}");
        store.unmount().await.unwrap();
        let report = fsck(&medium).await.unwrap();
        assert!(report.is_clean() && report.blocks_free == capacity, "{report}");
    });
}

#[test]
fn switching_reclaim_off_frees_pending_blocks() {
    let mut world = World::new(64 << 20, 3);
    let medium = world.host(true);
    world.run(async move {
        medium.reclaim_by_itself(1);
        let (store, places) = deleted(&medium).await;
        medium.sleep(Duration::from_millis(100)).await;
        medium.reclaim_by_itself(0);
        medium.sleep(Duration::from_secs(2)).await;
        let done = store.auto_reclaimed();
        let expected = AutoReclaimed {
            pending_blocks: 0,
            unmapped_blocks: 1,
            skipped_blocks: BLOCKS - 1,
            leaked_blocks: 0,
        };
        assert_eq!(done, expected);
        assert_eq!(store.free_blocks().await.unwrap(), store.capacity_blocks());
        assert!(is_zero(&medium, places[0]).await && !is_zero(&medium, places[1]).await);
    });
}
