//! Small segments, records and nodes: the log laps its pool, and crashes hit every boundary.

use simulator::{Plan, Summary, run};
use store::{Durability, Tuning};

fn all(seeds: impl Iterator<Item = u64>, durability: Durability) -> Summary {
    let mut sum = Summary::default();
    for seed in seeds {
        let plan = Plan::small_segments(seed, durability);
        // A pool that is to get full has the time for it.
        let steps = if has_room(&seed) { plan.steps } else { 4 * plan.steps };
        match run(&Plan { steps, ..plan }) {
            Ok(summary) => sum += &summary,
            Err(failure) => panic!("{durability:?}: {failure}"),
        }
    }
    sum
}

#[test]
fn histories_in_small_segments_with_commit_durability() {
    let sum = all((0..32).filter(has_room), Durability::Commit);
    assert!(sum.crashes > 100 && sum.kills > 30 && sum.checkpoints > 200, "{sum}");
}

#[test]
fn histories_in_small_segments_with_flush_durability() {
    let sum = all((0..32).filter(has_room), Durability::Flush);
    assert!(sum.crashes > 100 && sum.kills > 30 && sum.checkpoints > 200, "{sum}");
}

/// A follower follows the pool all the time, and takes over from where it is at each end.
#[test]
fn a_follower_finds_the_same_state_as_a_recovery() {
    let mut sum = Summary::default();
    for seed in (0..48).filter(has_room) {
        let durability = [Durability::Commit, Durability::Flush][seed as usize % 2];
        let plan = Plan::small_segments(seed, durability);
        match run(&Plan { follows: true, ..plan }) {
            Ok(summary) => sum += &summary,
            Err(failure) => panic!("{durability:?}: {failure}"),
        }
    }
    let [taken, useless] = sum.takeovers;
    assert!(taken > 100 && useless > 50 && sum.followed > 1000, "{sum}");
}

/// The log goes through several segments while a checkpoint waits for each of its writes: space
/// that is freed too early is reused at once.
#[test]
fn the_log_grows_far_beyond_each_checkpoint() {
    let mut sum = Summary::default();
    for seed in (0..16).filter(has_room) {
        let plan = Plan::small_segments(seed, Durability::Commit);
        match run(&Plan { steps_beside: 200, ..plan }) {
            Ok(summary) => sum += &summary,
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(sum.crashes > 20 && sum.checkpoints > 50, "{sum}");
}

/// Pools with a large reserve for upkeep, and with almost none, get full, and continue.
#[test]
fn nothing_is_lost_with_any_reserve() {
    for (reserve_divisor, seeds) in [(8, [6, 22]), (4096, [14, 30])] {
        for (seed, durability) in seeds.into_iter().zip([Durability::Commit, Durability::Flush]) {
            let plan = Plan::small_segments(seed, durability);
            let tuning = Tuning { reserve_divisor, ..plan.tuning };
            if let Err(failure) = run(&Plan { tuning, steps: 2 * plan.steps, ..plan }) {
                panic!("1/{reserve_divisor}, {durability:?}: {failure}");
            }
        }
    }
}

/// A pool that is filled to the last segment accepts requests that need no room, and refuses the
/// rest.
#[test]
fn a_pool_that_fills_up_loses_nothing_and_continues() {
    let sum = all([6, 7, 14, 15].into_iter(), Durability::Flush);
    assert!(sum.refused_full > 10 && sum.answers > 2 * sum.refused_full, "{sum}");
}

/// Returns whether the seed's kind of pool is one of the two (of four) that keep room free.
fn has_room(seed: &u64) -> bool {
    seed / 2 % 4 < 2
}
