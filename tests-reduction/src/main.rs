//! Measures data reduction with a corpus, and compares it with the best that is possible offline.
//!
//! - `ceiling` reads the parts and computes the best deduplication and compression.
//! - `measure` writes them to a running array over iSCSI, and records what the pool stores.
//! - `table` compares both, and the results of other tools, and judges the aims.

mod aims;
mod ceiling;
mod corpus;
mod measure;
mod table;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "tests-reduction", version, about = "How much reduction finds in real data")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Compute the best possible reduction by deduplication of 4 KiB blocks and compression.
    Ceiling(ceiling::Arguments),
    /// Write the corpus to a running array, in writes of one size, and verify it.
    Measure(measure::Arguments),
    /// Print all results as a Markdown table, and judge the aims.
    Table(table::Arguments),
}

fn main() -> ExitCode {
    match run(&Cli::parse().verb) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tests-reduction: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether all aims are met.
fn run(verb: &Verb) -> Result<bool> {
    match verb {
        Verb::Ceiling(arguments) => ceiling::run(arguments).map(|()| true),
        Verb::Measure(arguments) => measure::run(arguments).map(|()| true),
        Verb::Table(arguments) => table::run(arguments),
    }
}
