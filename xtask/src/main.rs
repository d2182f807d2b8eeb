//! Maintenance tasks of the repository: `cargo xtask tidy | format-doc | ci | bench | soak | sim |
//! torture | mutants`.

mod bench;
mod ci;
mod mutants;
mod sim;
mod soak;
mod tidy;
mod torture;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

/// Maintenance tasks of the repository.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

/// The tasks.
#[derive(Subcommand)]
enum Chore {
    /// Check the style, the dependencies between crates and the links of the documents.
    Tidy {
        /// Write the lengths found into xtask/ratchet.toml, including those that grew. Say why in
        /// the commit if a number went up.
        #[arg(long)]
        accept: bool,
    },
    /// Generate docs/on-disk-format.md from the byte tables of crates/format.
    FormatDoc,
    /// Format, clippy, tidy and tests, in this order.
    Ci,
    /// Measure Holdfast against tgt on the same directory, and print the ratios.
    #[command(disable_help_flag = true)]
    Bench {
        /// The arguments that `cargo xtask bench --help` lists.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The long forms of the randomised tests: many seeds, many kill -9 rounds.
    Soak(soak::Options),
    /// The simulator from one seed on, for some hours.
    Sim(sim::Options),
    /// A pool on six devices that fail, two at once, under load and kill -9; or two controllers.
    Torture(torture::Options),
    /// Deliberate faults, one at a time: some test must notice each.
    Mutants(mutants::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs the task. Returns false if it found something wrong.
fn run(arguments: Arguments) -> Result<bool> {
    let root = repository_root()?;
    match arguments.chore {
        Chore::Tidy { accept } => tidy::run(&root, accept),
        Chore::FormatDoc => tidy::format_doc::write(&root).map(|()| true),
        Chore::Ci => ci::run(&root),
        Chore::Bench { arguments } => bench::run(&arguments).map(|()| true),
        Chore::Soak(options) => soak::run(&root, &options),
        Chore::Sim(options) => sim::run(&root, &options),
        Chore::Torture(options) => torture::run(&root, &options),
        Chore::Mutants(options) => mutants::run(&root, &options),
    }
}

/// Returns the directory that contains the workspace's `Cargo.toml`.
fn repository_root() -> Result<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().map(Path::to_path_buf).context("xtask is not in a workspace")
}
