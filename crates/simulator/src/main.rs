//! Runs histories of many seeds, and says which one fails.
//!
//! ```text
//! simulator --seeds 1..1000 [--durability commit|flush] [--steps N] [--full]
//! simulator --seed N --trace
//! simulator --seeds 1..1000 --small [--memory BYTES] [--reserve DIVISOR]
//! simulator --seeds 1..1000 --small --follow
//! simulator --seeds 1..1000 --misplaced
//! simulator --seeds 1..1000 --array [--steps N] [--first]
//! simulator --seeds 1..1000 --devices [--follow] [--steps N] [--first]
//! ```

use std::process::ExitCode;

use simulator::history::shrink;
use simulator::misplaced::{Seen, misplace};
use simulator::{Plan, Summary, array, devices, run};
use store::Durability;

const USAGE: &str = "usage: simulator [--seeds FROM..TO | --seed N] [--durability commit|flush] \
                     [--steps N] [--full | --small] [--follow] [--memory BYTES] \
                     [--reserve DIVISOR] [--trace] \
                     [--misplaced | --array [--first] | --devices [--first]]";

struct Arguments {
    seeds: std::ops::Range<u64>,
    durabilities: Vec<Durability>,
    steps: Option<u64>,
    full: bool,
    /// Segments of 64 KiB.
    small: bool,
    /// A follower follows the pool, and takes over.
    follow: bool,
    /// Memory of the store, instead of the seed's.
    memory_bytes: Option<u64>,
    /// The divisor for segments that are kept from data.
    reserve_divisor: Option<u32>,
    trace: bool,
    /// Histories in which a write is lost, or lands elsewhere or in part.
    misplaced: bool,
    /// The whole array with its hosts.
    array: bool,
    /// A pool on several disks.
    devices: bool,
    /// Stop after the first failure.
    first: bool,
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let durabilities = vec![Durability::Commit, Durability::Flush];
    let mut arguments = Arguments {
        seeds: 1..101,
        durabilities,
        steps: None,
        full: false,
        small: false,
        follow: false,
        memory_bytes: None,
        reserve_divisor: None,
        trace: false,
        misplaced: false,
        array: false,
        devices: false,
        first: false,
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seeds" => {
                let value = words.next()?;
                let (from, to) = value.split_once("..")?;
                arguments.seeds = from.parse().ok()?..to.parse().ok()?;
            }
            "--seed" => {
                let seed: u64 = words.next()?.parse().ok()?;
                arguments.seeds = seed..seed.checked_add(1)?;
            }
            "--durability" => {
                arguments.durabilities = match words.next()?.as_str() {
                    "commit" => vec![Durability::Commit],
                    "flush" => vec![Durability::Flush],
                    _ => return None,
                };
            }
            "--steps" => arguments.steps = Some(words.next()?.parse().ok()?),
            "--memory" => arguments.memory_bytes = Some(words.next()?.parse().ok()?),
            "--reserve" => {
                let divisor = words.next()?.parse().ok()?;
                arguments.reserve_divisor = Some(divisor).filter(|divisor| *divisor > 0);
            }
            "--full" => arguments.full = true,
            "--small" => arguments.small = true,
            "--follow" => arguments.follow = true,
            "--trace" => arguments.trace = true,
            "--misplaced" => arguments.misplaced = true,
            "--array" => arguments.array = true,
            "--devices" => arguments.devices = true,
            "--first" => arguments.first = true,
            _ => return None,
        }
    }
    Some(arguments)
}

/// Returns the plan of a seed, modified by the arguments.
fn plan(arguments: &Arguments, seed: u64, durability: Durability) -> Plan {
    let mut plan = if arguments.full {
        Plan::full_pool(seed, durability)
    } else if arguments.small {
        Plan::small_segments(seed, durability)
    } else {
        Plan::of_seed(seed, durability)
    };
    plan.steps = arguments.steps.unwrap_or(plan.steps);
    plan.memory_bytes = arguments.memory_bytes.unwrap_or(plan.memory_bytes);
    let divisor = arguments.reserve_divisor.unwrap_or(plan.tuning.reserve_divisor);
    plan.tuning.reserve_divisor = divisor;
    plan.log = arguments.trace;
    plan.follows = arguments.follow;
    plan
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let failures = match &arguments {
        Arguments { array: true, .. } => worlds(&arguments),
        Arguments { devices: true, .. } => pools_on_devices(&arguments),
        Arguments { misplaced: true, .. } => misplaced(&arguments),
        _ => histories(&arguments),
    };
    let seeds = arguments.seeds.end.saturating_sub(arguments.seeds.start);
    println!("{seeds} seeds, {failures} failures");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs histories with crashes and write errors; returns how many failed.
fn histories(arguments: &Arguments) -> u64 {
    let mut failures = 0;
    let mut all = Summary::default();
    for seed in arguments.seeds.clone() {
        for &durability in &arguments.durabilities {
            let plan = plan(arguments, seed, durability);
            match run(&plan) {
                Ok(summary) => {
                    all += &summary;
                    if arguments.trace {
                        println!("seed {seed}, {durability:?}: {summary}");
                    }
                }
                Err(failure) => {
                    failures += 1;
                    println!("FAILED, {durability:?}: {failure}");
                    failure.log.iter().for_each(|line| println!("  {line}"));
                    if !plan.log
                        && let Some((shorter, failure)) = shrink(&plan)
                    {
                        failure.log.iter().for_each(|line| println!("  {line}"));
                        println!("  with --steps {}: {failure}", shorter.steps);
                    }
                }
            }
        }
    }
    println!("{all}");
    failures
}

/// Runs worlds of the whole array; returns how many failed.
fn worlds(arguments: &Arguments) -> u64 {
    let mut failures = 0;
    let mut all = array::summary::Summary::default();
    for seed in arguments.seeds.clone() {
        match array::run(seed, arguments.steps.unwrap_or(array::STEPS)) {
            Ok(summary) => {
                all += summary;
                if arguments.trace {
                    println!("seed {seed}: {summary}");
                }
            }
            Err((step, reason)) => {
                failures += 1;
                println!("FAILED, seed {seed}, step {step}: {reason}");
            }
        }
        if arguments.first && failures > 0 {
            break;
        }
    }
    println!("{all}");
    failures
}

/// Runs pools on several disks; returns how many failed.
fn pools_on_devices(arguments: &Arguments) -> u64 {
    let mut failures = 0;
    let mut all = devices::Seen::default();
    for seed in arguments.seeds.clone() {
        let with = devices::With { follows: arguments.follow, log: arguments.trace };
        match devices::run(seed, arguments.steps.unwrap_or(devices::STEPS), with) {
            Ok(seen) => {
                all += seen;
                if arguments.trace {
                    println!("seed {seed}: {seen}");
                }
            }
            Err((step, reason, log)) => {
                failures += 1;
                log.iter().for_each(|line| println!("  {line}"));
                println!("FAILED, seed {seed}, step {step}: {reason}");
            }
        }
        if arguments.first && failures > 0 {
            break;
        }
    }
    println!("{all}");
    failures
}

/// Runs histories with a write that is lost, or lands elsewhere or in part; returns how many
/// failed.
fn misplaced(arguments: &Arguments) -> u64 {
    let mut failures = 0;
    let mut all = Seen::default();
    for seed in arguments.seeds.clone() {
        match misplace(seed) {
            Ok(seen) => {
                all += seen;
                if arguments.trace {
                    println!("seed {seed}: {seen}");
                }
            }
            Err(reason) => {
                failures += 1;
                println!("FAILED, misplaced write: {reason}");
            }
        }
    }
    println!("{all}");
    failures
}
