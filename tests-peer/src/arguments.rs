//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// The peers' tests of Holdfast.
#[derive(Parser)]
pub struct Arguments {
    /// Run only these groups.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Leave these groups out.
    #[arg(long, value_delimiter = ',')]
    pub except: Vec<String>,
    /// List the groups and exit.
    #[arg(long)]
    pub list: bool,
    /// Where `holdfast` and `holdfast-lab` are; the release build's directory by default.
    #[arg(long)]
    pub programs: Option<PathBuf>,
    /// The `holdfast` with which the group `upgrades` begins: one of an earlier version. Without
    /// it, the same.
    #[arg(long)]
    pub older: Option<PathBuf>,
    /// On how many files the pools are; from four on they are striped.
    #[arg(long, default_value_t = 1)]
    pub devices: u16,
    /// Rounds of the kill -9 loop.
    #[arg(long, default_value_t = 3)]
    pub kill_rounds: u32,
    /// Rounds of the race that is judged for linearizability.
    #[arg(long, default_value_t = 1000)]
    pub linear_rounds: usize,
    /// Where the histories of that race are written, one per line, for other checkers.
    #[arg(long)]
    pub histories: Option<PathBuf>,
    /// How often each way to abort is tried with each command at each step.
    #[arg(long, default_value_t = 6)]
    pub abort_rounds: usize,
    /// How long the group `fuzz` runs, in seconds, and the group `overwrites` each time, then in a
    /// pool of 10 GiB; a fixed number of rounds and 1 GiB by default. Any value makes the group
    /// `drops` larger.
    #[arg(long)]
    pub seconds: Option<u64>,
    /// In the group `bounded`, only rows with this in their names.
    #[arg(long, default_value = "")]
    pub rows: String,
    /// The seed of random tests.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Test this target instead: iscsi://address:port/target/lun. All of its data is lost.
    #[arg(long)]
    pub url: Option<String>,
}

impl Arguments {
    /// Returns whether a group is run.
    pub fn wants(&self, group: &str) -> bool {
        let names = |groups: &[String]| groups.iter().any(|name| name == group);
        (self.only.is_empty() || names(&self.only)) && !names(&self.except)
    }
}
