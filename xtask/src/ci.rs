//! `cargo xtask ci`: what every commit must pass, the cheapest first.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

/// The steps around `tidy`: a name and the arguments of cargo.
const BEFORE_TIDY: &[(&str, &[&str])] = &[
    ("format", &["fmt", "--all", "--check"]),
    ("clippy", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
];
const AFTER_TIDY: &[(&str, &[&str])] = &[("tests", &["test", "--workspace", "--quiet"])];

/// Runs the steps in order and stops at the first failure.
pub fn run(root: &Path) -> Result<bool> {
    for (name, arguments) in BEFORE_TIDY {
        if !cargo(root, name, arguments)? {
            return Ok(false);
        }
    }
    println!("ci: tidy");
    if !crate::tidy::run(root, false)? {
        return Ok(false);
    }
    for (name, arguments) in AFTER_TIDY {
        if !cargo(root, name, arguments)? {
            return Ok(false);
        }
    }
    println!("ci: all steps passed");
    Ok(true)
}

/// Runs cargo. Returns false if it failed.
fn cargo(root: &Path, name: &str, arguments: &[&str]) -> Result<bool> {
    println!("ci: {name}");
    let start = Instant::now();
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(arguments)
        .current_dir(root)
        .status()
        .context("cargo could not be started")?;
    let seconds = start.elapsed().as_secs();
    if !status.success() {
        println!("ci: {name} failed after {seconds} s: cargo {}", arguments.join(" "));
    }
    Ok(status.success())
}
