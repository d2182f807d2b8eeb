//! Groups of rows of the served binary over iSCSI, each with its own table: a pool that has been
//! full for a long time, reads from the device, many sessions, large writes, and growth. tgt does
//! the same if it can.
//!
//! A target that is not measured has ended, or waits for commands. Pools and files are removed as
//! soon as they are no longer needed: at most two of a group exist at a time.

mod aged;
mod cold;
mod failing;
mod growth;
mod large;
mod sessions;
mod table;
mod takeover;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::array::{Array, Plan};
use super::options::{Only, Options};
use super::process::{Programs, words};
use super::targets::Target;
use super::{Measured, Sample, load};

pub use table::Table;

/// No background work except what hosts' commands need.
const QUIET: &str = "scrub = \"off\"\noptimize = \"off\"\n";

/// A group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// A pool that has been full for a long time.
    Aged,
    /// Reads whose metadata or data is not in memory.
    Cold,
    /// The same number of commands in flight over one, several and many sessions.
    Sessions,
    /// Sequential writes.
    Large,
    /// A start after kill -9, freeing the space of eradicated volumes, many volumes.
    Growth,
    /// A pool on several devices, of which some are out.
    Failing,
}

impl Group {
    /// Returns the group of an option.
    pub fn of(only: Only) -> Option<Self> {
        match only {
            Only::Aged => Some(Self::Aged),
            Only::Cold => Some(Self::Cold),
            Only::Sessions => Some(Self::Sessions),
            Only::Large => Some(Self::Large),
            Only::Growth => Some(Self::Growth),
            Only::Failing => Some(Self::Failing),
            _ => None,
        }
    }

    /// Returns whether tgt is measured for comparison.
    pub fn has_tgt(self) -> bool {
        !matches!(self, Self::Growth | Self::Failing)
    }

    /// Returns whether the raw device is measured for comparison.
    pub fn has_fio(self) -> bool {
        matches!(self, Self::Cold | Self::Large | Self::Failing)
    }

    /// Returns the names of its rows, for `--rows`.
    pub fn row_ids(self, options: &Options) -> Vec<String> {
        match self {
            Self::Aged => aged::row_ids(options),
            Self::Cold => cold::row_ids(),
            Self::Sessions => sessions::row_ids(),
            Self::Large => large::row_ids(),
            Self::Growth => growth::row_ids(),
            Self::Failing => failing::row_ids(),
        }
    }

    /// Measures the rows that the options request.
    pub fn run(self, options: &Options, programs: &Programs) -> Result<Table> {
        match self {
            Self::Aged => aged::run(options, programs),
            Self::Cold => cold::run(options, programs),
            Self::Sessions => sessions::run(options, programs),
            Self::Large => large::run(options, programs),
            Self::Growth => growth::run(options, programs),
            Self::Failing => failing::run(options, programs),
        }
    }
}

/// Returns the table of sessions among all rows; `None` if none of them was measured.
pub fn of_sessions(targets: &[String], rows: &[Measured]) -> Option<Table> {
    let table = sessions::table(targets, rows);
    (!table.lines.is_empty()).then_some(table)
}

/// The target that is loaded: an array or a peer.
#[derive(Clone, Copy)]
struct Unit<'a> {
    lab: &'a Path,
    url: &'a str,
    pid: u32,
}

impl<'a> Unit<'a> {
    fn of_array(programs: &'a Programs, array: &Array, url: &'a str) -> Self {
        Self { lab: &programs.lab, url, pid: array.pid() }
    }

    fn of_peer(programs: &'a Programs, target: &'a Target) -> Self {
        Self { lab: &programs.lab, url: &target.url, pid: target.pid() }
    }

    /// Loads it, and returns the load generator's report.
    fn load(self, arguments: &str) -> Result<Value> {
        load(self.lab, self.url, self.pid, &words(arguments))
    }

    /// Loads it, and returns the sample that every load measures.
    fn sample(self, arguments: &str) -> Result<Sample> {
        let report = self.load(arguments)?;
        super::sample(&report).with_context(|| format!("{arguments}: no numbers"))
    }

    /// Writes all of it, or the span in `flags`, once.
    fn fill(self, flags: &str) -> Result<()> {
        let fill = "--prefill --rw read --commands 1 --ramp 0 --seconds 60";
        self.load(format!("{fill} {flags}").trim_end()).map(drop)
    }
}

/// Returns the plan of an array with the configuration of the options, or this one.
fn plan(options: &Options, name: &'static str, capacity_bytes: u64, config: &str) -> Result<Plan> {
    let config = match &options.config {
        Some(path) => path.clone(),
        None => write_config(options, name, config)?,
    };
    Ok(Plan { name, capacity_bytes, devices: 1, config: Some(config), is_conditioned: false })
}

/// Starts an array with [`plan`].
fn start(
    options: &Options,
    programs: &Programs,
    name: &'static str,
    capacity_bytes: u64,
    config: &str,
) -> Result<Array> {
    let plan = plan(options, name, capacity_bytes, config)?;
    Array::start(programs, &options.dir, &plan)
}

fn write_config(options: &Options, name: &str, text: &str) -> Result<PathBuf> {
    let path = options.dir.join(format!("{name}.toml"));
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Divides one number by another; `None` if that is 0.
fn ratio(of: f64, to: f64) -> Option<f64> {
    (to > 0.0).then(|| of / to)
}

/// Returns a sample's CPU seconds per billion bytes.
fn cpu_s_per_gb(sample: &Sample) -> f64 {
    sample.cpu_s_per_million * sample.iops / 1e3 / sample.mb_per_s.max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_names_of_a_table_are_unique() {
        for columns in [
            aged::COLUMNS,
            cold::COLUMNS,
            sessions::COLUMNS,
            large::COLUMNS,
            growth::COLUMNS,
            failing::COLUMNS,
        ] {
            let names: std::collections::HashSet<_> = columns.iter().map(|c| c.name).collect();
            assert_eq!(names.len(), columns.len());
        }
    }

    #[test]
    fn cpu_per_gigabyte_is_derived_from_cpu_per_million_commands() {
        // A million commands of 4 KiB are 4.096 GB.
        let sample = Sample { iops: 1e3, mb_per_s: 4.096, p99_us: 0.0, cpu_s_per_million: 20.0 };
        assert!((cpu_s_per_gb(&sample) - 20.0 / 4.096).abs() < 1e-9);
        assert_eq!(ratio(1.0, 0.0), None);
    }
}
