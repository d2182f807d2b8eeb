//! Histories from many seeds: no crash may lose, mix or invent anything.

use simulator::{Plan, Summary, run};
use store::Durability;

fn all(seeds: std::ops::Range<u64>, plan: impl Fn(u64) -> Plan) -> Summary {
    let mut sum = Summary::default();
    for seed in seeds {
        match run(&plan(seed)) {
            Ok(summary) => sum += &summary,
            Err(failure) => panic!("{failure}"),
        }
    }
    sum
}

/// Asserts that every part of a history really happened.
fn assert_full(sum: &Summary) {
    let Summary { taken_busy, growths, checkpoints, turns, .. } = *sum;
    assert!(taken_busy > 5 && growths > 5 && checkpoints > 50 && turns > 50, "{sum}");
    assert!(sum.recovery_crashes > 5 && sum.write_errors > 0 && sum.checks > sum.crashes / 2);
}

#[test]
fn histories_with_commit_durability() {
    assert_full(&all(0..20, |seed| Plan::new(seed, Durability::Commit)));
}

#[test]
fn histories_with_flush_durability() {
    assert_full(&all(0..20, |seed| Plan::new(seed, Durability::Flush)));
}

#[test]
fn histories_with_many_volumes_and_snapshots_taken_in_use() {
    for durability in [Durability::Commit, Durability::Flush] {
        let sum = all(0..20, |seed| Plan::many_volumes(seed, durability));
        assert!(sum.taken_busy > 5, "{sum}");
    }
}
