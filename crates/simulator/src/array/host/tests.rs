//! Worlds with hosts that ask for anything.

use iscsi::Limits;
use store::{Durability, OpenOptions, Tuning};

use super::*;
use crate::array::controller::Setup;
use crate::array::network::Rules;
use crate::array::summary::Summary;
use crate::array::world::{Events, World};

/// Every second world has other hosts, another network and other limits: what is small meets often.
fn plan(seed: u64) -> Plan {
    let rng = &mut Rng::new(seed ^ 0x5eed);
    let is_usual = rng.chance(50);
    let mut any = |usual: u64, low, high| if is_usual { usual } else { rng.between(low, high) };
    Plan {
        seed,
        hosts: any(2 + seed % 2, 1, 4) as usize,
        paths_per_host: any(2, 1, 3) as usize,
        ports: any(2, 1, 3) as u16,
        in_flight_max: any(3, 1, 5) as usize,
        units: vec![any(60, 30, 200), any(30, 30, 60)],
        reserved_from: any(1, 0, 2) as usize,
        mix: Mix {
            swaps: any(10, 0, 60),
            copies: any(8, 0, 40),
            zeros: any(6, 0, 30),
            unmaps: any(6, 0, 30),
            aborts: any(60, 0, 600),
            resets: any(10, 0, 60),
            cuts: any(8, 0, 40),
            takeovers: any(8, 0, 40),
            ..Mix::default()
        },
    }
}

fn rules(rng: &mut Rng) -> Rules {
    match rng.chance(50) {
        true => Rules::default(),
        false => Rules {
            window_bytes: rng.between(100, 300_000) as usize,
            piece_bytes_max: rng.between(1, 70_000) as usize,
            slow_percent: rng.below(30),
            short_read_percent: rng.below(90),
            ..Rules::default()
        },
    }
}

fn limits(rng: &mut Rng) -> Limits {
    let usual = Limits::default();
    match rng.chance(60) {
        true => usual,
        false => Limits {
            commands_per_session: rng.between(1, 8) as u32,
            receive_segment_bytes: rng.between(8192, 70_000) as u32,
            burst_bytes: rng.between(4096, 100_000) as u32,
            first_burst_bytes: rng.between(512, 4096) as u32,
            outstanding_r2t: rng.between(1, 3) as u16,
            data_out_bytes_per_connection: rng.between(10_000, 100_000) as usize,
            output_bytes: rng.between(1000, 100_000) as usize,
            pdus_per_call: rng.between(1, 5) as u32,
            ..usual
        },
    }
}

fn world(plan: &Plan) -> World {
    let seed = plan.seed;
    let rng = &mut Rng::new(seed ^ 0xa11);
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
            limits: limits(rng),
            hosts: plan.names(),
            volume_bytes: plan.units.iter().map(|blocks| blocks * 4096).collect(),
        },
        segment_bytes: 64 << 10,
        pool_bytes: (16 << 20) + 144 * (64 << 10),
        events: Events {
            crashes: rng.below(8),
            kills: rng.below(8),
            chores: 30,
            cuts: 10,
            stalls: 10,
        },
        steps: 20_000,
        rules: rules(rng),
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

/// Logouts with commands in flight, which end with them.
#[test]
fn nothing_takes_effect_after_the_answer_to_a_logout() {
    for seed in 0..12 {
        let mix = Mix { logouts: 150, aborts: 0, ..Mix::default() };
        whole(seed, run(Plan { in_flight_max: 5, mix, ..plan(seed) }));
    }
}
