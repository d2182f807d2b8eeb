//! `cargo xtask sim`: the simulator from one seed on, for any length of time.
//!
//! A round runs its histories, those in small segments, those with misplaced writes, those of pools
//! on several devices, and the worlds of the whole array. Each prints what was done, and the seeds
//! of failures: the same seed gives the same history, byte for byte.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use crate::soak::cargo;

/// The first seed, and the duration.
#[derive(Args)]
pub struct Options {
    /// The first seed. Each round takes the seeds after those of the last one.
    #[arg(long)]
    seed: u64,
    /// Hours to run; a round that has begun is finished. Without it there is one round.
    #[arg(long, default_value_t = 0.0)]
    hours: f64,
    /// Seeds in a round, each with both durabilities and with a misplaced write.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// Only the worlds of small segments.
    #[arg(long, conflicts_with = "array")]
    small: bool,
    /// Only the worlds of the whole array.
    #[arg(long)]
    array: bool,
}

/// Runs rounds until the time is up or something fails.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    let deadline = Instant::now() + Duration::try_from_secs_f64(options.hours * 3600.0)?;
    let mut seed = options.seed;
    let mut rounds = 0;
    loop {
        let next = seed.saturating_add(options.seeds.max(1));
        println!("sim: seeds {seed}..{next}");
        let only = match options {
            Options { small: true, .. } => Some("--small"),
            Options { array: true, .. } => Some("--array"),
            _ => None,
        };
        let good = match only {
            Some(kind) => simulator(root, seed..next, &[kind])?,
            None => round(root, seed..next)?,
        };
        if !good {
            let (seeds, kind) = (options.seeds.max(1), only.unwrap_or_default());
            println!("sim: failed; repeat with --seed {seed} --seeds {seeds} {kind}");
            return Ok(false);
        }
        (rounds, seed) = (rounds + 1, next);
        if Instant::now() >= deadline {
            println!("sim: {rounds} rounds without a failure; the next seed is {seed}");
            return Ok(true);
        }
    }
}

/// Runs the simulator over some seeds: histories, those in small segments, those with misplaced
/// writes, those of several devices, both also with a follower that takes over, and worlds of the
/// whole array.
pub fn round(root: &Path, seeds: std::ops::Range<u64>) -> Result<bool> {
    Ok(simulator(root, seeds.clone(), &[])?
        && simulator(root, seeds.clone(), &["--small"])?
        && simulator(root, seeds.clone(), &["--misplaced"])?
        && simulator(root, seeds.clone(), &["--devices"])?
        && simulator(root, seeds.clone(), &["--small", "--follow"])?
        && simulator(root, seeds.clone(), &["--devices", "--follow"])?
        && simulator(root, seeds, &["--array"])?)
}

fn simulator(root: &Path, seeds: std::ops::Range<u64>, more: &[&str]) -> Result<bool> {
    let seeds = format!("{}..{}", seeds.start, seeds.end);
    let run = ["run", "--quiet", "--release", "-p", "simulator", "--", "--seeds", &seeds];
    cargo(root, &[&run[..], more].concat())
}
