//! `cargo xtask soak`: the randomised tests for any length of time.
//!
//! `./test` runs them with few seeds and few rounds; this runs the same programs with many. Every
//! failure prints the seed that reproduces it.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Args;

use crate::sim;

/// The duration, and the first seed.
#[derive(Args)]
pub struct Options {
    /// Minutes to run; a round that has begun is finished.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// The first seed; from the clock by default. Each round takes the seeds after those of the
    /// last one.
    #[arg(long)]
    seed: Option<u64>,
    /// Seeds of the simulator in a round, each with both durabilities and with a misplaced write.
    #[arg(long, default_value_t = 500)]
    seeds: u64,
    /// Kill -9 rounds between two runs of the simulator.
    #[arg(long, default_value_t = 20)]
    kill_rounds: u32,
}

/// Runs simulator and kill -9 loop in turn until the time is up or one fails.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    let deadline = Instant::now() + Duration::from_secs(options.minutes * 60);
    let mut seed = match options.seed {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
    };
    let build = ["build", "--release", "-p", "holdfast", "-p", "lab"];
    if !cargo(root, &build)? {
        return Ok(false);
    }
    let mut round = 0;
    while Instant::now() < deadline {
        round += 1;
        println!("soak: round {round}, seed {seed}");
        let next = seed.wrapping_add(options.seeds.max(1));
        let rounds = options.kill_rounds.to_string();
        let first = seed.to_string();
        let peers = ["run", "--release", "-p", "tests-peer", "--", "--only", "kill"];
        let more = ["--kill-rounds", &rounds, "--seed", &first];
        let peers: Vec<&str> = peers.iter().chain(more.iter()).copied().collect();
        if !sim::round(root, seed..next)? || !cargo(root, &peers)? {
            println!("soak: failed in round {round}; repeat with --seed {seed}");
            return Ok(false);
        }
        seed = next;
    }
    println!("soak: {round} rounds without a failure");
    Ok(true)
}

/// Runs cargo. Returns false if it failed.
pub fn cargo(root: &Path, arguments: &[&str]) -> Result<bool> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root);
    Ok(command.status().context("cargo could not be started")?.success())
}
