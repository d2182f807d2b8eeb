//! The whole array, from many seeds: hosts, their network, front ends, target, store and disk.

use simulator::array::summary::Summary;
use simulator::array::{STEPS, run};
use simulator::seeds_that_failed_once;

/// Runs the worlds of some seeds.
fn all(seeds: std::ops::Range<u64>) -> Summary {
    let mut sum = Summary::default();
    for seed in seeds {
        match run(seed, STEPS) {
            Ok(summary) => sum += summary,
            Err((step, reason)) => panic!("seed {seed}, step {step}: {reason}"),
        }
    }
    sum
}

#[test]
fn hosts_get_linearizable_responses() {
    let sum = all(0..60);
    println!("{sum}");
    assert!(sum.answers > 50_000 && sum.crashes > 400 && sum.kills > 200, "{sum}");
    let several = sum.several;
    assert!(several.answers > 2_000 && several.joins > 200, "{sum}");
    assert!(several.replaced > 20 && several.partings > 20 && several.plugged > 10, "{sum}");
    assert!(sum.chores > 5_000 && sum.cuts > 400 && sum.given_up < 6, "{sum}");
}

#[test]
fn a_seed_gives_the_same_world() {
    for seed in 0..4 {
        let trace = || run(seed, STEPS).map(|summary| summary.trace);
        assert_eq!(trace(), trace(), "seed {seed}");
    }
}

/// Seeds that have found something.
#[test]
fn seeds_that_once_failed_pass() {
    for seed in seeds_that_failed_once("array") {
        if let Err((step, reason)) = run(seed, STEPS) {
            panic!("seed {seed}, step {step}: {reason}");
        }
    }
}
