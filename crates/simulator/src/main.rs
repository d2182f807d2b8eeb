//! Runs histories of many seeds, and says which one fails.
//!
//! ```text
//! simulator --seeds 1..1000 [--durability commit|flush] [--steps N] [--full]
//! simulator --seed N --trace
//! ```

use std::process::ExitCode;

use simulator::history::shrink;
use simulator::{Plan, run};
use store::Durability;

const USAGE: &str = "usage: simulator [--seeds FROM..TO | --seed N] [--durability commit|flush] \
                     [--steps N] [--full] [--trace]";

struct Arguments {
    seeds: std::ops::Range<u64>,
    durabilities: Vec<Durability>,
    steps: Option<u64>,
    full: bool,
    trace: bool,
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let durabilities = vec![Durability::Commit, Durability::Flush];
    let mut arguments =
        Arguments { seeds: 1..101, durabilities, steps: None, full: false, trace: false };
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
            "--full" => arguments.full = true,
            "--trace" => arguments.trace = true,
            _ => return None,
        }
    }
    Some(arguments)
}

/// The plan of a seed: every eighth is longer, so that what needs time to go wrong has it.
fn plan(arguments: &Arguments, seed: u64, durability: Durability) -> Plan {
    let mut plan = if arguments.full {
        Plan::full_pool(seed, durability)
    } else {
        Plan::new(seed, durability)
    };
    if seed.is_multiple_of(8) {
        plan.steps *= 5;
    }
    plan.steps = arguments.steps.unwrap_or(plan.steps);
    plan.log = arguments.trace;
    plan
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut failures = 0;
    let (mut answers, mut crashes, mut io_count) = (0, 0, 0);
    for seed in arguments.seeds.clone() {
        for &durability in &arguments.durabilities {
            let plan = plan(&arguments, seed, durability);
            match run(&plan) {
                Ok(summary) => {
                    answers += summary.answers;
                    crashes += summary.crashes;
                    io_count += summary.io_count;
                    if arguments.trace {
                        println!("seed {seed}, {durability:?}: {summary:?}");
                    }
                }
                Err(failure) => {
                    failures += 1;
                    println!("FAILED, {durability:?}: {failure}");
                    if let Some((shorter, failure)) = shrink(&plan) {
                        failure.log.iter().for_each(|line| println!("  {line}"));
                        println!("  with --steps {}: {failure}", shorter.steps);
                    }
                }
            }
        }
    }
    println!(
        "{} seeds: {answers} answers, {io_count} writes and flushes, {crashes} crashes, \
         {failures} failures",
        arguments.seeds.end.saturating_sub(arguments.seeds.start)
    );
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
