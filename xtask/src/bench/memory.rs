//! `cargo xtask bench --only memory`: the curve of throughput against the store's memory.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::options::Options;

/// Runs the simulator's program for it, once for each size of the pool. It prints tables.
pub fn run(options: &Options) -> Result<()> {
    for chunks in &options.chunks {
        let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["run", "--release", "-q", "-p", "simulator", "--bin", "memory", "--"])
            .args(["--chunks", &chunks.to_string(), "--seconds", &options.seconds.to_string()])
            .status()
            .context("cargo could not be started")?;
        ensure!(status.success(), "the benchmark of {chunks} chunks failed ({status})");
        println!();
    }
    Ok(())
}
