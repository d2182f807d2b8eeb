//! Several hosts at work on one datastore: the final state is the expected one.

use std::time::Duration;

use super::memory::Memory;
use super::play::{Model, Player};
use super::world::World;
use crate::datastore::{Datastore, LockCounters, Medium, MountOptions, fsck};
use crate::random::Random;

/// How the hosts of a run lock.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Ats,
    /// Commands are repeatedly sent twice.
    AtsTwice,
    Reservations,
    /// Some by one way, some by the other, with heartbeats by read and write.
    Mixed,
    /// Some automatically unmap the blocks that files have lost.
    Reclaiming,
}

fn medium_of(world: &World, way: Way, number: u64) -> Memory {
    let medium = world.host(way != Way::Reservations);
    match way {
        Way::AtsTwice => medium.send_twice(20),
        Way::Mixed if number == 0 => medium.set_locking(false, false),
        Way::Mixed if number == 1 => medium.refuse_ats(),
        Way::Mixed => medium.set_locking(true, false),
        // Quick enough for a short run, slow enough that much is pending.
        Way::Reclaiming if number > 0 => medium.reclaim_by_itself(2000 >> number),
        _ => {}
    }
    medium
}

fn play(way: Way, seed: u64) -> LockCounters {
    // A small disk, so that unmapped blocks are soon needed.
    let mib = if way == Way::Reclaiming { 20 } else { 40 };
    let mut world = World::new(mib << 20, seed);
    let mediums: Vec<Memory> = (0..3).map(|number| medium_of(&world, way, number)).collect();
    let first = mediums[0].clone();
    world.run(async move {
        Datastore::format(&first, "played").await.unwrap();
        let model = Model::new();
        let mut players = Vec::new();
        for (medium, number) in mediums.into_iter().zip(0..) {
            let options = MountOptions::of_host(&format!("host {number}"));
            let store = Datastore::mount(&medium, options).await.unwrap();
            let random = Random::new(seed * 10 + number);
            players.push(Player { store, medium, model: model.clone(), random });
        }
        let ends = players.iter_mut().map(|player| player.play(40));
        for end in futures::future::join_all(ends).await {
            end.unwrap();
        }
        for player in &players {
            while player.store.auto_reclaimed().pending_blocks > 0 {
                first.sleep(Duration::from_millis(1)).await;
            }
        }
        // Blocks of the last deleted files are about to become free.
        first.sleep(Duration::from_secs(1)).await;
        model.compare(&players[0].store, &first, false).await;
        let (mut all, mut reclaimed) = (LockCounters::default(), 0);
        for player in &players {
            let counters = player.store.counters();
            reclaimed += player.store.auto_reclaimed().unmapped_blocks;
            assert_eq!(player.store.auto_reclaimed().leaked_blocks, 0);
            player.store.unmount().await.unwrap();
            assert_eq!((counters.broken, counters.buried), (0, 0), "no host was dead");
            assert_eq!(counters.acquired, counters.released);
            all.acquired += counters.acquired;
            all.retries += counters.retries;
            all.miscompares += counters.miscompares;
            all.false_miscompares += counters.false_miscompares;
            all.conflicts += counters.conflicts;
            all.reservations += counters.reservations;
            all.ats_refused += counters.ats_refused;
            all.heartbeats += counters.heartbeats;
        }
        let report = fsck(&first).await.unwrap();
        assert!(report.is_clean(), "{report}");
        assert_eq!((report.hosts, report.locks_held), (0, 0));
        assert_eq!(reclaimed > 0, way == Way::Reclaiming);
        all
    })
}

#[test]
fn hosts_with_ats_lose_nothing() {
    let mut miscompares = 0;
    for seed in 0..8 {
        let all = play(Way::Ats, seed);
        assert!(all.acquired > 0 && all.heartbeats > 0);
        miscompares += all.miscompares;
        assert_eq!((all.reservations, all.conflicts, all.false_miscompares), (0, 0, 0));
    }
    assert!(miscompares > 0, "the hosts never contended");
}

#[test]
fn commands_sent_twice_are_recognized() {
    for seed in 100..106 {
        let all = play(Way::AtsTwice, seed);
        assert!(all.false_miscompares > 0);
        assert_eq!(all.reservations, 0);
    }
}

#[test]
fn hosts_with_reservations_lose_nothing() {
    for seed in 200..206 {
        let all = play(Way::Reservations, seed);
        assert!(all.reservations > 0 && all.conflicts > 0);
        assert_eq!(all.miscompares, 0);
    }
}

#[test]
fn hosts_that_lock_differently_lose_nothing() {
    for seed in 300..306 {
        let all = play(Way::Mixed, seed);
        assert!(all.reservations > 0 && all.conflicts > 0 && all.ats_refused > 0);
    }
}

#[test]
fn hosts_with_automatic_reclaim_lose_nothing() {
    for seed in 400..408 {
        play(Way::Reclaiming, seed);
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    assert_eq!(play(Way::Mixed, 7), play(Way::Mixed, 7));
}
