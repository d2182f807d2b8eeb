//! Worlds with hosts that ask for anything.

use iscsi::Limits;
use store::{Durability, OpenOptions, Tuning};

use super::*;
use crate::array::controller::Setup;
use crate::array::network::Rules;
use crate::array::summary::Summary;
use crate::array::world::{Events, World};

fn plan(seed: u64) -> Plan {
    Plan {
        seed,
        hosts: 2 + seed as usize % 2,
        paths_per_host: 2,
        ports: 2,
        in_flight_max: 3,
        units: vec![60, 30],
        reserved_from: 1,
        mix: Mix::default(),
    }
}

fn world(plan: &Plan) -> World {
    let seed = plan.seed;
    World {
        seed,
        setup: Setup {
            options: OpenOptions {
                durability: Durability::Commit,
                tuning: Tuning::SMALL,
                memory_bytes: if seed.is_multiple_of(2) { 256 << 10 } else { 0 },
                checkpoint_log_bytes: 256 << 10,
                ..OpenOptions::default()
            },
            threads: 1 + seed as usize % 3,
            ports: plan.ports,
            limits: Limits::default(),
            hosts: plan.names(),
            volume_bytes: plan.units.iter().map(|blocks| blocks * 4096).collect(),
        },
        segment_bytes: 64 << 10,
        pool_bytes: (16 << 20) + 144 * (64 << 10),
        events: Events { crashes: 3, kills: 3, chores: 30, cuts: 10 },
        steps: 20_000,
        rules: Rules::default(),
    }
}

type Done = Result<(Summary, Counts), (u64, String)>;

fn run(plan: Plan) -> Done {
    let hosts = SimHosts::new(plan.clone());
    let counts = hosts.counts();
    world(&plan).run(Box::new(hosts)).map(|done| (done, counts.get()))
}

fn whole(seed: u64, done: Done) -> (Summary, Counts) {
    done.unwrap_or_else(|(step, why)| panic!("seed {seed}, step {step}: {why}"))
}

#[test]
fn hosts_that_ask_for_anything_get_what_some_order_gives() {
    let (mut all, mut good, mut least) = (Summary::default(), 0, Counts::default());
    for seed in 0..30 {
        let (done, counts) = whole(seed, run(plan(seed)));
        all += done;
        good += counts.good;
        least.conflicts += counts.conflicts;
        least.miscompares += counts.miscompares;
        least.refused += counts.refused;
        least.failed += counts.failed;
        least.aborted += counts.aborted;
        least.logins += counts.logins;
        least.logouts += counts.logouts;
    }
    let Counts { conflicts, miscompares, refused, failed, aborted, logins, logouts, .. } = least;
    let each = [conflicts, miscompares, refused, aborted, logins];
    assert!(good > 10_000 && each.iter().all(|count| *count > 500), "{all} {least:?}");
    assert!(failed > 50 && logouts > 50, "{all} {least:?}");
    assert!(all.crashes > 50 && all.kills > 50, "{all}");
}

#[test]
fn a_seed_gives_the_same_run() {
    assert_eq!(run(plan(3)), run(plan(3)));
}
