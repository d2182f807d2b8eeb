//! What data reduction makes of a corpus, beside the best that can be found offline.
//!
//! - `ceiling` reads the parts and finds what deduplication and compression could do.
//! - `measure` writes them to a running array over iSCSI, and takes what the pool stores.
//! - `table` puts both and the sizes that other tools reached side by side, and judges the aims.

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
    /// Find what exact deduplication of aligned 4 KiB blocks and compression could do.
    Ceiling(ceiling::Arguments),
    /// Write the corpus to a running array, in writes of one size, and read it back.
    Measure(measure::Arguments),
    /// Show everything in one Markdown table, and judge the aims.
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

/// True unless an aim is missed.
fn run(verb: &Verb) -> Result<bool> {
    match verb {
        Verb::Ceiling(arguments) => ceiling::run(arguments).map(|()| true),
        Verb::Measure(arguments) => measure::run(arguments).map(|()| true),
        Verb::Table(arguments) => table::run(arguments),
    }
}
