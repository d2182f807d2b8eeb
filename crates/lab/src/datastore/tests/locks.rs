//! Locks and heartbeats, one situation each.

use std::time::Duration;

use super::memory::Memory;
use super::world::World;
use crate::datastore::{
    AllocateAs, BLOCK_BYTES, BlockState, Datastore, DatastoreError, Medium, Mode, MountOptions,
    Placement, fsck,
};

const MIB: u64 = BLOCK_BYTES;

async fn mount(medium: &Memory, name: &str) -> Datastore {
    Datastore::mount(medium, MountOptions::of_host(name)).await.unwrap()
}

async fn two(one: &Memory, two: &Memory) -> (Datastore, Datastore) {
    Datastore::format(one, "for two").await.unwrap();
    (mount(one, "one").await, mount(two, "two").await)
}

fn world() -> (World, Memory, Memory) {
    let world = World::new(64 << 20, 1);
    let (one, two) = (world.host(true), world.host(true));
    (world, one, two)
}

#[test]
fn an_open_file_excludes_conflicting_openings() {
    let (mut world, a, b) = world();
    world.run(async move {
        let (one, two) = two(&a, &b).await;
        let file = one.create("disk", 3 * MIB).await.unwrap();
        for mode in [Mode::Exclusive, Mode::Shared, Mode::MultiWriter] {
            let end = two.open("disk", mode).await;
            assert!(matches!(end, Err(DatastoreError::Locked { host, .. }) if host == one.host()));
            assert!(matches!(one.open("disk", mode).await, Err(DatastoreError::InUse(_))));
        }
        assert!(matches!(two.delete("disk").await, Err(DatastoreError::Locked { .. })));
        assert!(matches!(one.delete("disk").await, Err(DatastoreError::InUse(_))));
        assert!(matches!(two.create("disk", 0).await, Err(DatastoreError::Exists(_))));
        file.close().await.unwrap();
        for mode in [Mode::Shared, Mode::MultiWriter] {
            let files =
                [one.open("disk", mode).await.unwrap(), two.open("disk", mode).await.unwrap()];
            assert!(matches!(two.delete("disk").await, Err(DatastoreError::InUse(_))));
            let end = files[0].allocate(0, 1, AllocateAs::Present, Placement::AsItComes).await;
            assert!(matches!(end, Err(DatastoreError::NotOpen(_))));
            for file in files {
                file.close().await.unwrap();
            }
        }
        assert_eq!(two.delete("disk").await.unwrap(), []);
        assert!(matches!(one.open("disk", Mode::Shared).await, Err(DatastoreError::NotFound(_))));
        assert_eq!(one.counters().broken + two.counters().broken, 0);
    });
}

#[test]
fn a_dead_hosts_heartbeat_is_ended_and_its_locks_are_broken() {
    let (mut world, a, b) = world();
    world.run(async move {
        let (one, two) = two(&a, &b).await;
        let file = one.create("disk", 3 * MIB).await.unwrap();
        file.allocate(0, 2, AllocateAs::Present, Placement::AsItComes).await.unwrap();
        a.die();
        let died = b.now();
        let again = two.open("disk", Mode::Exclusive).await.unwrap();
        let waited = b.now().duration_since(died);
        assert!(waited >= Duration::from_secs(13), "before it could be dead: {waited:?}");
        assert!(waited < Duration::from_secs(20), "{waited:?}");
        assert_eq!(again.allocated_blocks().await.unwrap(), 2);
        let counters = two.counters();
        assert_eq!((counters.broken, counters.buried), (1, 1));
        again.close().await.unwrap();
        let report = fsck(&b).await.unwrap();
        assert!(report.is_clean(), "{report}");
        assert_eq!(report.hosts, 1);
    });
}

#[test]
fn a_host_considered_dead_writes_nothing_more() {
    for by_ats in [true, false] {
        let (mut world, a, b) = world();
        a.set_locking(true, by_ats);
        world.run(async move {
            let (one, two) = two(&a, &b).await;
            let file = one.create("disk", 3 * MIB).await.unwrap();
            // Its commands take longer than a host may be silent.
            a.set_lag(Duration::from_secs(60));
            let again = two.open("disk", Mode::Exclusive).await.unwrap();
            a.set_lag(Duration::ZERO);
            let end = file.allocate(0, 1, AllocateAs::Present, Placement::AsItComes).await;
            assert!(
                matches!(end, Err(DatastoreError::HeartbeatLate | DatastoreError::Lost)),
                "{end:?}"
            );
            a.sleep(Duration::from_secs(300)).await;
            assert!(matches!(one.create("other", 0).await, Err(DatastoreError::Lost)));
            again.allocate(0, 1, AllocateAs::Present, Placement::AsItComes).await.unwrap();
            again.close().await.unwrap();
            let report = fsck(&b).await.unwrap();
            assert!(report.is_clean(), "{report}");
        });
    }
}

#[test]
fn a_restarted_host_gets_its_own_locks_at_once() {
    let (mut world, a, b) = world();
    world.run(async move {
        let (one, other) = two(&a, &b).await;
        let _file = one.create("disk", 0).await.unwrap();
        let end = Datastore::mount(&b, MountOptions::of_host("one")).await;
        assert!(matches!(end, Err(DatastoreError::MountedAlready(host)) if host == one.host()));
        a.die();
        drop(one);
        let anew = Memory::new(a.disk(), true);
        let one = mount(&anew, "one").await;
        let mounted = anew.now();
        let file = one.open("disk", Mode::Exclusive).await.unwrap();
        assert!(anew.now().duration_since(mounted) < Duration::from_secs(1));
        assert_eq!(one.counters().broken, 1);
        file.close().await.unwrap();
        one.unmount().await.unwrap();
        other.unmount().await.unwrap();
        let report = fsck(&anew).await.unwrap();
        assert!(report.is_clean() && report.hosts == 0, "{report}");
        assert!(matches!(one.list().await, Ok(files) if files.len() == 1), "reading is harmless");
        assert!(matches!(one.create("x", 0).await, Err(DatastoreError::Unmounted)));
    });
}

#[test]
fn every_slot_can_be_taken_and_slots_of_dead_hosts_are_reused() {
    let mut world = World::new(64 << 20, 1);
    let mediums: Vec<Memory> = (0..66).map(|_| world.host(true)).collect();
    world.run(async move {
        Datastore::format(&mediums[0], "crowded").await.unwrap();
        let mut stores = Vec::new();
        for (medium, number) in mediums[..64].iter().zip(0..) {
            stores.push(mount(medium, &format!("host {number}")).await);
        }
        let late = MountOptions::of_host("late");
        let end = Datastore::mount(&mediums[64], late).await;
        assert!(matches!(end, Err(DatastoreError::NoSlot)));
        mediums[17].die();
        let late = Datastore::mount(&mediums[65], late).await.unwrap();
        late.create("disk", 0).await.unwrap().close().await.unwrap();
        for (store, number) in stores.iter().zip(0..).filter(|(_, number)| *number != 17) {
            store.unmount().await.unwrap_or_else(|error| panic!("{number}: {error}"));
        }
        late.unmount().await.unwrap();
        assert!(fsck(&mediums[0]).await.unwrap().is_clean());
    });
}

#[test]
fn a_heartbeat_that_miscompares_with_itself_is_accepted() {
    let (mut world, a, _) = world();
    world.run(async move {
        Datastore::format(&a, "twice").await.unwrap();
        let store = mount(&a, "one").await;
        a.send_twice(100);
        a.sleep(Duration::from_secs(60)).await;
        let counters = store.counters();
        assert!(counters.heartbeats >= 19, "{counters:?}");
        assert!(counters.false_miscompares >= 19, "{counters:?}");
        store.create("disk", 0).await.unwrap();
    });
}

#[test]
fn thick_disks_are_contiguous_and_thin_disks_written_in_parallel_are_not() {
    let (mut world, a, b) = world();
    world.run(async move {
        let (one, two) = two(&a, &b).await;
        let files = [
            one.create("a", 12 * MIB).await.unwrap(),
            one.create("b", 12 * MIB).await.unwrap(),
            two.create("c", 12 * MIB).await.unwrap(),
        ];
        for block in 0..8 {
            for file in &files {
                file.allocate(block, 1, AllocateAs::Present, Placement::AsItComes).await.unwrap();
            }
        }
        let mut runs = Vec::new();
        for file in &files {
            runs.push(file.extents(0, 8).await.unwrap().len());
        }
        assert_eq!(runs, [8, 8, 1], "hosts do not meet, files of one host do");
        let thick = one.create("thick", 20 * MIB).await.unwrap();
        thick.allocate(0, 20, AllocateAs::ToBeZeroed, Placement::Contiguous).await.unwrap();
        let extents = thick.extents(0, 20).await.unwrap();
        assert!(matches!(extents[..], [extent] if extent.count == 20), "{extents:?}");
        thick.mark_present(4, 2).await.unwrap();
        let states: Vec<bool> = (thick.extents(0, 20).await.unwrap().iter())
            .map(|extent| matches!(extent.state, BlockState::Present(_)))
            .collect();
        assert_eq!(states, [false, true, false]);
        let free = one.free_blocks().await.unwrap();
        let big = one.create("big", 60 * MIB).await.unwrap();
        let end = big.allocate(0, free + 1, AllocateAs::Present, Placement::Contiguous).await;
        assert!(matches!(end, Err(DatastoreError::Full)), "{end:?}");
        assert_eq!(one.free_blocks().await.unwrap(), free, "a failed allocation keeps nothing");
        big.allocate(0, free, AllocateAs::Present, Placement::Contiguous).await.unwrap();
        assert_eq!(two.free_blocks().await.unwrap(), 0);
    });
}

#[test]
fn detached_blocks_are_unusable_until_they_are_given_back() {
    let (mut world, a, b) = world();
    world.run(async move {
        let (one, two) = two(&a, &b).await;
        let file = one.create("disk", 6 * MIB).await.unwrap();
        file.allocate(0, 6, AllocateAs::Present, Placement::Contiguous).await.unwrap();
        let free = two.free_blocks().await.unwrap();
        let detached = file.detach(1, 3).await.unwrap();
        assert_eq!(detached.ranges().iter().map(|range| range.bytes).sum::<u64>(), 3 * MIB);
        assert_eq!(two.free_blocks().await.unwrap(), free);
        assert_eq!(fsck(&b).await.unwrap().blocks_leaked, 3, "as if this host died now");
        detached.give_back().await.unwrap();
        assert_eq!(two.free_blocks().await.unwrap(), free + 3);
        file.close().await.unwrap();
        let detached = two.detach("disk").await.unwrap();
        assert_eq!(detached.ranges().len(), 2);
        assert_eq!(one.list().await.unwrap(), []);
        detached.give_back().await.unwrap();
        assert_eq!(one.free_blocks().await.unwrap(), one.capacity_blocks());
    });
}
