//! The simulator itself: one seed is one history, and a store that loses data is caught.

use simulator::misplaced::misplace;
use simulator::{Plan, run};
use store::Durability;

#[test]
fn the_same_seed_gives_the_same_history() {
    for durability in [Durability::Commit, Durability::Flush] {
        let plan = Plan { steps: 1000, log: true, ..Plan::new(77, durability) };
        let first = run(&plan).unwrap_or_else(|failure| panic!("{failure}"));
        let second = run(&plan).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(first.answers > 100 && first.crashes > 3 && first.checkpoints > 3, "{first:?}");
        assert_eq!(first, second);
        let other = run(&Plan { seed: 78, ..plan }).unwrap_or_else(|failure| panic!("{failure}"));
        assert_ne!(first.trace, other.trace);
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_in_every_kind_of_world() {
    for durability in [Durability::Commit, Durability::Flush] {
        for plan in [
            Plan { steps: 30, ..Plan::full_pool(5, durability) },
            Plan { steps: 300, ..Plan::many_volumes(5, durability) },
        ] {
            let trace = || run(&plan).unwrap_or_else(|failure| panic!("{failure}")).trace;
            assert_eq!(trace(), trace(), "{plan:?}");
        }
    }
    for seed in 0..3 {
        let seen = misplace(seed).unwrap_or_else(|reason| panic!("{reason}"));
        assert_eq!(misplace(seed), Ok(seen), "seed {seed}");
    }
}

/// On a device that loses flushed data the checker must find a loss; otherwise it would find none
/// of the store's own either.
#[test]
fn a_disk_that_ignores_flushes_is_caught() {
    for durability in [Durability::Commit, Durability::Flush] {
        let caught = (0..10)
            .filter(|&seed| {
                run(&Plan { lying_flush: true, ..Plan::new(seed, durability) }).is_err()
            })
            .count();
        assert!(caught >= 8, "only {caught} of 10 histories were seen to lose data");
    }
}

#[test]
fn seeds_that_once_failed_pass() {
    let lines = include_str!("../seeds.txt").lines();
    // `array.rs` runs those of the whole array, `devices.rs` those of several devices.
    let is_history = |line: &&str| !line.starts_with(['#', 'a', 'd']) && !line.trim().is_empty();
    for line in lines.filter(is_history) {
        let mut words = line.split_whitespace();
        let first = words.next();
        let (plan, durability): (fn(u64, Durability) -> Plan, _) = match first {
            Some("small") => (Plan::small_segments, words.next()),
            durability => (Plan::of_seed, durability),
        };
        let durability = match durability {
            Some("commit") => Durability::Commit,
            Some("flush") => Durability::Flush,
            other => panic!("no such durability: {other:?}"),
        };
        let seed = words.next().and_then(|seed| seed.parse().ok());
        let seed: u64 = seed.unwrap_or_else(|| panic!("no seed: {line}"));
        if let Err(failure) = run(&plan(seed, durability)) {
            panic!("{failure}");
        }
    }
}
