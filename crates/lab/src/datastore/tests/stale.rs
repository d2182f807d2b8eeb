//! A host never trusts what it has cached once another host may have changed it.

use super::memory::Memory;
use super::world::World;
use crate::datastore::layout::{Layout, Pool};
use crate::datastore::{
    AllocateAs, BLOCK_BYTES, BlockState, Datastore, DatastoreError, File, Mode, MountOptions,
    Placement, fsck,
};

const MIB: u64 = BLOCK_BYTES;
const BYTES: u64 = 64 << 20;

async fn mount(medium: &Memory, name: &str) -> Datastore {
    Datastore::mount(medium, MountOptions::of_host(name)).await.unwrap()
}

async fn allocate(file: &File, first: u64, count: u64) -> Result<Vec<u64>, DatastoreError> {
    let end = file.allocate(first, count, AllocateAs::Present, Placement::AsItComes).await?;
    let blocks = end.iter().flat_map(|extent| match extent.state {
        BlockState::Present(at) => (0..extent.count).map(|index| at + index * MIB).collect(),
        _ => Vec::new(),
    });
    Ok(blocks.collect())
}

/// Two hosts alternately take the blocks of the one cluster that has any, until nothing is left.
fn take_turns(by_ats: bool) {
    let mut world = World::new(BYTES, 3);
    let (a, b) = (world.host(by_ats), world.host(by_ats));
    world.run(async move {
        Datastore::format(&a, "in turns").await.unwrap();
        let (one, two) = (mount(&a, "one").await, mount(&b, "two").await);
        let all = one.create("all", 90 * MIB).await.unwrap();
        let free = one.free_blocks().await.unwrap();
        all.allocate(0, free, AllocateAs::Present, Placement::Contiguous).await.unwrap();
        all.release(16, 15).await.unwrap();
        let files =
            [one.create("a", 90 * MIB).await.unwrap(), two.create("b", 90 * MIB).await.unwrap()];
        let mut taken = Vec::new();
        // A host that has had the lock twice tries it without reading it.
        for block in 0..15 {
            taken.extend(allocate(&files[block as usize / 3 % 2], block, 1).await.unwrap());
        }
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 15, "a block was given to both");
        assert!(one.counters().retries > 1 && two.counters().retries > 0, "no stale read");
        for file in [&all, &files[0], &files[1]] {
            file.close().await.unwrap();
        }
        assert_eq!(one.free_blocks().await.unwrap(), 0);
        let report = fsck(&a).await.unwrap();
        assert!(report.is_clean(), "{report}");
    });
}

#[test]
fn a_stale_bitmap_is_not_used() {
    take_turns(true);
    take_turns(false);
}

#[test]
fn a_contended_lock_is_read_first() {
    let mut world = World::new(BYTES, 4);
    let (a, b) = (world.host(true), world.host(true));
    world.run(async move {
        Datastore::format(&a, "learned").await.unwrap();
        let (one, two) = (mount(&a, "one").await, mount(&b, "two").await);
        for number in 0..8 {
            // The directory's lock goes back and forth.
            one.create(&format!("one {number}"), 0).await.unwrap();
            two.create(&format!("two {number}"), 0).await.unwrap();
        }
        let counters = one.counters();
        assert_eq!((counters.miscompares, counters.retries), (1, 1), "it was tried once");
        for name in ["x", "y", "z"] {
            a.take_commands();
            one.create(name, 0).await.unwrap();
        }
        let reads = a.take_commands().reads;
        assert_eq!((one.counters().miscompares, reads), (1, 1), "it is alone again");
        assert_eq!(one.list().await.unwrap(), two.list().await.unwrap());
    });
}

#[test]
fn content_read_before_its_lock_was_given_back_is_not_used() {
    let mut world = World::new(BYTES, 5);
    let (a, b) = (world.host(true), world.host(true));
    let disk = world.disk.clone();
    world.run(async move {
        Datastore::format(&a, "torn").await.unwrap();
        let (one, two) = (mount(&a, "one").await, mount(&b, "two").await);
        let layout = Layout::plan([0; 16], "torn", BYTES).unwrap();
        let clusters = 0..layout.clusters(Pool::Data);
        let places: Vec<u64> =
            clusters.map(|index| layout.cluster_guard(Pool::Data, index).content() / 512).collect();
        let put = |sectors: &[[u8; 512]]| {
            places.iter().zip(sectors).for_each(|(at, sector)| {
                disk.sectors.borrow_mut().insert(*at, *sector);
            });
        };
        let get = || places.iter().map(|at| disk.sectors.borrow()[at]).collect::<Vec<_>>();
        let old = get();
        let free = one.free_blocks().await.unwrap();
        let file = one.create("a", 90 * MIB).await.unwrap();
        let taken = allocate(&file, 0, free - 1).await.unwrap();
        let new = get();
        // As if a read had got the bitmaps before that, and the locks after it.
        put(&old);
        assert_eq!(two.free_blocks().await.unwrap(), free);
        put(&new);
        let other = two.create("b", 90 * MIB).await.unwrap();
        let last = allocate(&other, 0, 1).await.unwrap();
        assert!(last.len() == 1 && !taken.contains(&last[0]), "{last:?}");
        assert!(fsck(&a).await.unwrap().is_clean());
    });
}

#[test]
fn a_write_of_unknown_result_is_read_again() {
    let mut world = World::new(BYTES, 6);
    let (a, b) = (world.host(true), world.host(true));
    world.run(async move {
        Datastore::format(&a, "hidden").await.unwrap();
        let (one, two) = (mount(&a, "one").await, mount(&b, "two").await);
        let file = one.create("a", 9 * MIB).await.unwrap();
        allocate(&file, 0, 1).await.unwrap();
        let free = one.free_blocks().await.unwrap();
        a.hide_next_write();
        assert!(matches!(allocate(&file, 1, 1).await, Err(DatastoreError::Host(_))));
        assert_eq!(one.free_blocks().await.unwrap(), free - 1, "it was done nevertheless");
        assert_eq!(fsck(&b).await.unwrap().blocks_leaked, 1);
        allocate(&file, 1, 1).await.unwrap();
        assert_eq!(two.free_blocks().await.unwrap(), free - 2);
        a.hide_next_write();
        assert!(file.resize(4 * MIB).await.is_err());
        file.close().await.unwrap();
        for store in [&one, &two] {
            let file = store.open("a", Mode::Exclusive).await.unwrap();
            assert_eq!(file.size_bytes(), 4 * MIB);
            file.close().await.unwrap();
        }
        let report = fsck(&a).await.unwrap();
        assert!(!report.is_damaged(), "{report}");
        assert_eq!((report.blocks_leaked, report.locks_stale), (1, 0));
    });
}

#[test]
fn a_file_that_another_host_has_opened_is_read_again() {
    for by_ats in [true, false] {
        let mut world = World::new(BYTES, 7);
        let (a, b) = (world.host(by_ats), world.host(by_ats));
        world.run(async move {
            Datastore::format(&a, "handed on").await.unwrap();
            let (one, two) = (mount(&a, "one").await, mount(&b, "two").await);
            let file = one.create("disk", 4 * MIB).await.unwrap();
            allocate(&file, 0, 2).await.unwrap();
            file.close().await.unwrap();
            let file = two.open("disk", Mode::Exclusive).await.unwrap();
            file.release(0, 1).await.unwrap();
            file.resize(6 * MIB).await.unwrap();
            let there = allocate(&file, 5, 1).await.unwrap();
            let extents = file.extents(0, 6).await.unwrap();
            file.close().await.unwrap();
            let file = one.open("disk", Mode::Exclusive).await.unwrap();
            assert_eq!(file.size_bytes(), 6 * MIB);
            assert_eq!(file.extents(0, 6).await.unwrap(), extents);
            assert_eq!(extents.last().unwrap().state, BlockState::Present(there[0]));
            let end = two.delete("disk").await;
            assert!(matches!(end, Err(DatastoreError::Locked { .. })), "{end:?}");
            file.close().await.unwrap();
            // Its descriptor becomes another file, which is in use.
            two.delete("disk").await.unwrap();
            let other = two.create("other", 3 * MIB).await.unwrap();
            for _ in 0..2 {
                let end = one.open("disk", Mode::Exclusive).await;
                assert!(matches!(end, Err(DatastoreError::NotFound(_))), "{end:?}");
            }
            other.close().await.unwrap();
            let other = one.open("other", Mode::Shared).await.unwrap();
            assert_eq!(other.allocated_blocks().await.unwrap(), 0, "of an older generation");
            other.close().await.unwrap();
            let report = fsck(&b).await.unwrap();
            assert!(report.is_clean(), "{report}");
        });
    }
}

#[test]
fn ranges_are_marked_in_order_or_not_at_all() {
    let mut world = World::new(4 << 30, 8);
    let a = world.host(true);
    world.run(async move {
        Datastore::format(&a, "marked").await.unwrap();
        let one = mount(&a, "one").await;
        let file = one.create("disk", 2500 * MIB).await.unwrap();
        let (how, place) = (AllocateAs::ToBeZeroed, Placement::Contiguous);
        file.allocate(0, 2400, how, place).await.unwrap();
        for wrong in [&[(5, 2), (6, 1)][..], &[(9, 1), (3, 1)], &[(0, 1), (2499, 2)]] {
            let end = file.mark_present_in(wrong).await;
            assert!(matches!(end, Err(DatastoreError::Argument(_))), "{end:?}");
        }
        a.take_commands();
        file.mark_present_in(&[(1, 2), (3, 0), (3, 1), (900, 200), (2390, 110)]).await.unwrap();
        // 960 blocks to a pointer block.
        assert_eq!(a.take_commands().writes, 3);
        file.close().await.unwrap();
        drop(one);
        let two = mount(&a, "two").await;
        let file = two.open("disk", Mode::Shared).await.unwrap();
        let present: Vec<(u64, u64)> = (file.extents(0, 2500).await.unwrap().iter())
            .filter(|extent| matches!(extent.state, BlockState::Present(_)))
            .map(|extent| (extent.first_block, extent.count))
            .collect();
        assert_eq!(present, [(1, 3), (900, 200), (2390, 10)]);
    });
}
