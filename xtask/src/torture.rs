//! `cargo xtask torture`: an array on six devices that fail, for any length of time; or two
//! controllers.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::Args;

use crate::soak::cargo;

/// The duration, and the first seed.
#[derive(Args)]
pub struct Options {
    /// Minutes to run; a round that has begun is finished.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// The seed that decides what happens; from the clock by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Only these faults, separated by commas; `cargo run -p torture -- --help` lists them.
    #[arg(long)]
    faults: Option<String>,
    /// Two controllers instead, which are killed, stopped, switched and cut off from each other.
    #[arg(long)]
    controllers: bool,
    /// With two controllers: ends once the owner was killed this often.
    #[arg(long, requires = "controllers")]
    kills: Option<u64>,
    /// With two controllers: without the array's supervisor, so that a stopped one resumes.
    #[arg(long, requires = "controllers")]
    unsupervised: bool,
    /// With two controllers: on six devices, of which one or two are slow or fail meanwhile.
    #[arg(long, requires = "controllers")]
    devices: bool,
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
    let kills = options.kills.map(|kills| kills.to_string());
    let judge = if options.controllers { judge(root)? } else { None };
    run.extend(options.controllers.then_some("--controllers"));
    run.extend(options.unsupervised.then_some("--unsupervised"));
    run.extend(options.devices.then_some("--devices"));
    run.extend(kills.iter().flat_map(|kills| ["--kills", kills]));
    run.extend(judge.iter().flat_map(|judge| ["--judge", judge]));
    cargo(root, &run)
}

/// Builds the independent checker of histories. Returns its path; `None` if it can't be built.
fn judge(root: &Path) -> Result<Option<String>> {
    let mut build = Command::new(root.join("tests-linear/run"));
    let built = build.arg("--build").stderr(Stdio::inherit()).output();
    let built = built.context("tests-linear/run could not be started")?;
    if !built.status.success() {
        println!("torture: only the built-in checker judges histories");
        return Ok(None);
    }
    Ok(Some(String::from_utf8(built.stdout)?.trim().to_owned()))
}
