//! Histories from many seeds: no crash may lose, mix or invent anything.

use simulator::{Plan, run};
use store::Durability;

fn all(seeds: std::ops::Range<u64>, plan: impl Fn(u64) -> Plan) {
    for seed in seeds {
        if let Err(failure) = run(&plan(seed)) {
            panic!("{failure}");
        }
    }
}

#[test]
fn histories_with_answers_from_the_medium() {
    all(0..25, |seed| Plan::new(seed, Durability::Commit));
}

#[test]
fn histories_with_answers_from_memory() {
    all(0..25, |seed| Plan::new(seed, Durability::Flush));
}

#[test]
fn a_pool_that_gets_full_changes_nothing_and_unmaps() {
    for (seed, durability) in [(1, Durability::Commit), (2, Durability::Flush)] {
        let plan = Plan { steps: 500, ..Plan::full_pool(seed, durability) };
        match run(&plan) {
            Ok(summary) => {
                assert!(summary.refused_full > 0, "the pool never got full: {summary:?}")
            }
            Err(failure) => panic!("{failure}"),
        }
    }
}
