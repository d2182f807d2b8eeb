//! `cargo xtask bench --only memory`, `--only opening`, `--only cold-model` and `--only
//! aged-model`: the effect of the store's memory, opening pools of different sizes, reads of a pool
//! whose metadata is not in memory, and the cost of overwriting one that has been full for a long
//! time. All run the simulator's program, which prints tables.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::options::Options;

/// Measures throughput and duplicates found against the budget.
pub fn curve(options: &Options) -> Result<()> {
    let mut arguments = vec![
        "curve".into(),
        "--per-tib".into(),
        list(&options.per_tib),
        "--seconds".into(),
        options.seconds.to_string().into(),
    ];
    if !options.files.is_empty() {
        let files: Vec<_> = options.files.iter().map(|file| file.as_os_str()).collect();
        arguments.extend(["--files".into(), files.join(",".as_ref())]);
    }
    run(options, &arguments)
}

/// Measures reads whose metadata is not in memory on a slow device, and their effect on others.
pub fn cold(options: &Options) -> Result<()> {
    run(options, &["cold".into(), "--seconds".into(), options.seconds.to_string().into()])
}

/// Measures the cost of overwriting a pool that is 60 and 80% full, against its age.
pub fn aged(options: &Options) -> Result<()> {
    run(options, &["aged".into()])
}

/// Measures the cost of opening, against the chunks in the pool.
pub fn opening(options: &Options) -> Result<()> {
    run(options, &["opening".into()])
}

fn run(options: &Options, arguments: &[OsString]) -> Result<()> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--release", "-q", "-p", "simulator", "--bin", "memory", "--"])
        .args(arguments)
        .args(["--chunks".into(), list(&options.chunks)])
        .status()
        .context("cargo could not be started")?;
    ensure!(status.success(), "the benchmark failed ({status})");
    Ok(())
}

/// Returns numbers as arguments of the program.
fn list<T: ToString>(numbers: &[T]) -> OsString {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(",").into()
}
