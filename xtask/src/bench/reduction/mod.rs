//! `cargo xtask bench --only reduction`: the cost of reduction, snapshots, offloads and reclaim.
//!
//! Holdfast is compared with itself: the same array with reduction on and off, the same operation
//! on small and large ranges, the same load with reclaim and without.

mod content;
mod costs;
mod reclaim;
mod table;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;

use super::array::{Array, Plan};
use super::options::Options;
use super::process::{Programs, words};

use super::number_of as number;
pub use table::render;

/// The capacity of the pool of [`content`] and [`costs`].
const POOL_BYTES: u64 = 6 << 30;

/// All that was measured.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    content: Vec<content::Measured>,
    costs: Vec<costs::Cost>,
    reclaim: Option<reclaim::Measured>,
}

/// Returns the names of all rows, for `--rows`.
pub fn row_ids() -> impl Iterator<Item = &'static str> {
    content::ROWS.iter().map(|row| row.id).chain(costs::ROWS.iter().copied()).chain([reclaim::ROW])
}

/// Measures the rows that the options request.
pub fn run(options: &Options, programs: &Programs) -> Result<Report> {
    let mut report = Report::default();
    let content: Vec<_> = content::ROWS.iter().filter(|row| options.wants(row.id)).collect();
    let costs: Vec<_> = costs::ROWS.iter().copied().filter(|row| options.wants(row)).collect();
    if !content.is_empty() || !costs.is_empty() {
        let bench = Bench::start(options, programs, "reduction", POOL_BYTES)?;
        report.content = content::measure(&bench, &content)?;
        report.costs = costs::measure(&bench, &costs)?;
        bench.array.remove()?;
    }
    if options.wants(reclaim::ROW) {
        report.reclaim = Some(reclaim::measure(options, programs)?);
    }
    Ok(report)
}

/// Returns, for each of these sizes, the seconds until the space of an eradicated volume, full of
/// copies of its beginning, is free.
pub fn freed_s(options: &Options, programs: &Programs, sizes: &[u64]) -> Result<Vec<f64>> {
    let config = options.config.clone();
    let name = "space-back";
    let plan = Plan { name, capacity_bytes: POOL_BYTES, devices: 1, config, is_conditioned: false };
    let array = Array::start(programs, &options.dir, &plan)?;
    let bench = Bench { options, lab: &programs.lab, array };
    let freed = |bytes: &u64| {
        let cost = costs::free(&bench, *bytes)?;
        cost.freed_s.context("its space was not freed")
    };
    let freed = sizes.iter().map(freed).collect::<Result<Vec<f64>>>()?;
    bench.array.remove()?;
    Ok(freed)
}

/// An array, and the tools to measure it.
struct Bench<'a> {
    options: &'a Options,
    lab: &'a Path,
    array: Array,
}

impl<'a> Bench<'a> {
    fn start(
        options: &'a Options,
        programs: &'a Programs,
        name: &'static str,
        capacity_bytes: u64,
    ) -> Result<Self> {
        let config = options.config.clone();
        let plan = Plan { name, capacity_bytes, devices: 1, config, is_conditioned: true };
        let array = Array::start(programs, &options.dir, &plan)?;
        Ok(Self { options, lab: &programs.lab, array })
    }

    /// Runs the load generator from its first command to its last, without a warm-up, so that all
    /// of the array's work in that time belongs to the measurement.
    fn load(&self, url: &str, arguments: &str) -> Result<Value> {
        let mut all = words(arguments);
        all.extend(words("--ramp 0"));
        super::load(self.lab, url, self.array.pid(), &all)
    }

    /// Waits until background work has freed space, down to this much stored data.
    fn wait_freed(&self, data_bytes: u64) -> Result<Duration> {
        let start = Instant::now();
        while self.array.pool()?.data_bytes > data_bytes {
            if start.elapsed() > Duration::from_secs(60) {
                bail!("the space of the destroyed volume was not freed");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(start.elapsed())
    }
}

/// Returns the median by `key`.
fn median_by<T>(mut all: Vec<T>, key: impl Fn(&T) -> f64) -> Option<T> {
    all.sort_by(|a, b| key(a).total_cmp(&key(b)));
    let middle = all.len().checked_sub(1)? / 2;
    all.into_iter().nth(middle)
}
