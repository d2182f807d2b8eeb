//! Hosts that die in the middle of a write: the others continue, and nothing is damaged.

use super::memory::Memory;
use super::play::{Model, Player};
use super::world::World;
use crate::datastore::{Datastore, FsckReport, MountOptions, fsck};
use crate::random::Random;

/// Plays a host, which restarts after it has died.
async fn play_on(mut player: Player, number: u64, by_ats: bool, seed: u64) -> (Player, u32) {
    let mut deaths = 0;
    let mut random = Random::new(seed ^ 0xDEAD ^ number << 32);
    for life in 0..4 {
        if life < 3 && number > 0 {
            player.medium.die_after(random.below(120));
        }
        let end = player.play(15).await;
        if end.is_ok() {
            continue;
        }
        assert!(player.medium.is_dead(), "{end:?}");
        deaths += 1;
        let medium = Memory::new(player.medium.disk(), by_ats);
        let options = MountOptions::of_host(&format!("host {number}"));
        player.store = Datastore::mount(&medium, options).await.unwrap();
        player.medium = medium;
    }
    (player, deaths)
}

fn play(by_ats: bool, seed: u64) -> (FsckReport, u32, u64) {
    let mut world = World::new(40 << 20, seed);
    let mediums: Vec<Memory> = (0..3).map(|_| world.host(by_ats)).collect();
    let first = mediums[0].clone();
    world.run(async move {
        Datastore::format(&first, "crashed").await.unwrap();
        let model = Model::new();
        let mut lives = Vec::new();
        for (medium, number) in mediums.into_iter().zip(0..) {
            let options = MountOptions::of_host(&format!("host {number}"));
            let store = Datastore::mount(&medium, options).await.unwrap();
            let random = Random::new(seed * 10 + number);
            let player = Player { store, medium, model: model.clone(), random };
            lives.push(play_on(player, number, by_ats, seed));
        }
        let (mut deaths, mut broken, mut players) = (0, 0, Vec::new());
        for (player, died) in futures::future::join_all(lives).await {
            deaths += died;
            broken += player.store.counters().broken;
            players.push(player);
        }
        // All files are accessible, also those that a dead host had open.
        model.compare(&players[0].store, &first, true).await;
        for player in players {
            player.medium.die_after(u64::MAX);
            player.store.unmount().await.unwrap();
        }
        let report = fsck(&first).await.unwrap();
        assert!(!report.is_damaged(), "seed {seed}: {report}");
        (report, deaths, broken)
    })
}

fn play_many(by_ats: bool, seeds: std::ops::Range<u64>) {
    let (mut deaths, mut leaks, mut broken) = (0, 0, 0);
    for seed in seeds {
        let (report, died, breaks) = play(by_ats, seed);
        deaths += died;
        broken += breaks;
        leaks += u64::from(report.has_leaks());
    }
    // Otherwise the test proves nothing.
    assert!(deaths > 20 && leaks > 2 && broken > 5, "{deaths} {leaks} {broken}");
}

#[test]
fn hosts_with_ats_die_anywhere() {
    play_many(true, 0..16);
}

#[test]
fn hosts_with_reservations_die_anywhere() {
    play_many(false, 500..512);
}
