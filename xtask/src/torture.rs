//! `cargo xtask torture`: an array on six devices that fail, for as long as one likes.

use std::path::Path;

use anyhow::Result;
use clap::Args;

use crate::soak::cargo;

/// How long, and from which seed.
#[derive(Args)]
pub struct Options {
    /// Minutes to run; the round that has begun is finished.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// What decides what happens; the clock by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Only these faults, with commas between; `cargo run -p torture -- --help` lists them.
    #[arg(long)]
    faults: Option<String>,
}

/// Builds what is needed, and runs it.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    if !cargo(root, &["build", "--release", "-p", "holdfast", "-p", "lab", "-p", "torture"])? {
        return Ok(false);
    }
    let minutes = options.minutes.to_string();
    let seed = options.seed.map(|seed| seed.to_string());
    let mut run = vec!["run", "--quiet", "--release", "-p", "torture", "--", "--minutes", &minutes];
    run.extend(seed.iter().flat_map(|seed| ["--seed", seed]));
    run.extend(options.faults.iter().flat_map(|faults| ["--faults", faults]));
    cargo(root, &run)
}
