//! Worlds with hosts that send commands of all kinds.

use super::*;
use crate::array::STEPS;
use crate::array::plan::of_seed;
use crate::array::summary::Summary;
use crate::array::world::World;

type Done = Result<(Summary, Counts), (u64, String)>;

fn run((world, plan): (World, Plan)) -> Done {
    let hosts = SimHosts::new(plan);
    let counts = hosts.counts();
    world.run(Box::new(hosts)).map(|done| (done, counts.get()))
}

fn whole(seed: u64, done: Done) -> (Summary, Counts) {
    done.unwrap_or_else(|(step, why)| panic!("seed {seed}, step {step}: {why}"))
}

#[test]
fn random_requests_get_linearizable_responses() {
    let (mut all, mut good, mut least) = (Summary::default(), 0, Counts::default());
    // Other seeds than in `tests/array.rs`.
    for seed in 100..190 {
        let (done, counts) = whole(seed, run(of_seed(seed, STEPS)));
        all += done;
        good += counts.good;
        least.conflicts += counts.conflicts;
        least.miscompares += counts.miscompares;
        least.refused += counts.refused;
        least.failed += counts.failed;
        least.aborted += counts.aborted;
        least.logins += counts.logins;
        least.logouts += counts.logouts;
        least.repeated += counts.repeated;
        least.unsupported += counts.unsupported;
        least.broken += counts.broken;
    }
    let Counts { conflicts, miscompares, refused, failed, aborted, logins, logouts, .. } = least;
    let each = [conflicts, miscompares, refused, aborted, logins];
    assert!(good > 10_000 && each.iter().all(|count| *count > 500), "{all} {least:?}");
    let Counts { repeated, unsupported, broken, .. } = least;
    assert!(repeated > 300 && unsupported > 5 && broken > 20, "{least:?}");
    assert!(failed > 50 && logouts > 50, "{all} {least:?}");
    assert!(all.crashes > 50 && all.kills > 50, "{all}");
}

#[test]
fn a_seed_gives_the_same_run() {
    // The second one has more data than the cache holds: evictions follow from the seed as well.
    for seed in [3, 31] {
        assert_eq!(run(of_seed(seed, STEPS)), run(of_seed(seed, STEPS)), "seed {seed}");
    }
}

/// Logouts with commands in flight, which end with them.
#[test]
fn nothing_takes_effect_after_a_logout_response() {
    for seed in 0..12 {
        let mix = Mix { logouts: 150, aborts: 0, ..Mix::default() };
        let (world, plan) = of_seed(seed, STEPS);
        // With this mix hosts abort each other's commands.
        let plan = Plan { in_flight_max: 5, mix, is_prompt: false, ..plan };
        whole(seed, run((world, plan)));
    }
}
