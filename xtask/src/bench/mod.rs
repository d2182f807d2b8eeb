//! `cargo xtask bench`: Holdfast and Debian's tgt in turn, on the same directory, with the same
//! light client, and the ratios of their results.
//!
//! Both targets run all the time, but only one at a time is loaded: each row is measured on each
//! target before the next row, and all rows again in every round, so that variations of the machine
//! affect both. The median of the rounds counts.
//!
//! After that, Holdfast is compared with itself: `reduction`, and `slow`. The groups of `served`
//! are measured only if `--only` names them. With `--against` a comparison with an earlier build
//! replaces all of it.

mod against;
mod array;
mod memory;
mod options;
mod process;
mod raw;
mod reduction;
mod rows;
mod served;
mod slow;
mod table;
mod targets;

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

use options::Options;
use process::words;
use rows::{ROWS, Row};
use targets::Target;

/// One measurement.
#[derive(Clone, Debug, Serialize)]
struct Sample {
    /// Commands per second.
    iops: f64,
    /// Million bytes per second.
    mb_per_s: f64,
    /// The 99th percentile of latency, in microseconds.
    p99_us: f64,
    /// The target's CPU seconds per million commands.
    cpu_s_per_million: f64,
}

/// A row's medians: one entry for each target, `None` if the target does not support it.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    /// The row.
    #[serde(flatten)]
    row: &'static Row,
    /// In the order of the targets.
    targets: Vec<Option<Sample>>,
}

/// All that was measured.
#[derive(Debug, Default, Serialize)]
struct Results {
    machine: String,
    options: String,
    /// A description of the load common to rows measured against a peer.
    load: String,
    targets: Vec<String>,
    raw: Vec<raw::RawRow>,
    rows: Vec<Measured>,
    reduction: Option<reduction::Report>,
    slow: Vec<slow::Row>,
    served: Vec<served::Table>,
    against: Vec<against::Compared>,
    /// The number of files of the second target, if that is compared.
    devices: Option<u16>,
}

/// Runs the benchmark with the arguments after `cargo xtask bench`.
pub fn run(arguments: &[String]) -> Result<()> {
    let name = String::from("cargo xtask bench");
    let options = Options::parse_from(std::iter::once(&name).chain(arguments));
    match options.only {
        Some(options::Only::Memory) => return memory::curve(&options),
        Some(options::Only::Opening) => return memory::opening(&options),
        Some(options::Only::ColdModel) => return memory::cold(&options),
        Some(options::Only::AgedModel) => return memory::aged(&options),
        Some(_) | None => {}
    }
    let group = options.only.and_then(served::Group::of);
    let rows: Vec<&'static Row> = match options.only {
        Some(_) => Vec::new(),
        None => ROWS.iter().filter(|row| options.wants(row.id)).collect(),
    };
    let is_beside_itself = options.against.is_some() || options.devices.is_some();
    let is_alone = options.without_holdfast || is_beside_itself;
    let with_group = |only| !is_alone && options.only.is_none_or(|o| o == only);
    let with_reduction =
        with_group(options::Only::Reduction) && reduction::row_ids().any(|id| options.wants(id));
    let with_slow = with_group(options::Only::Slow) && slow::row_ids().any(|id| options.wants(&id));
    let of_group = group.map_or(Vec::new(), |group| group.row_ids(&options));
    let group = group.filter(|_| !is_alone && of_group.iter().any(|id| options.wants(id)));
    if rows.is_empty() && !with_reduction && !with_slow && group.is_none() {
        let ids = ROWS.iter().map(|row| row.id).chain(reduction::row_ids()).map(String::from);
        let ids = if of_group.is_empty() { ids.chain(slow::row_ids()).collect() } else { of_group };
        bail!("no row matches --rows; there are: {}", ids.join(" "));
    }
    let is_beside_tgt = !rows.is_empty() && !is_beside_itself;
    process::install_missing(
        is_beside_tgt || group.is_some_and(served::Group::has_tgt),
        options.raw || group.is_some_and(served::Group::has_fio),
    )?;
    let programs = process::build(&options)?;
    std::fs::create_dir_all(&options.dir)
        .with_context(|| format!("making {}", options.dir.display()))?;
    let mut results = Results {
        machine: process::machine(&options.dir),
        options: options.describe(),
        load: options.describe_load(),
        raw: if options.raw { raw::measure(&options)? } else { Vec::new() },
        ..Results::default()
    };
    if let Some(before) = &options.against {
        let before = programs.with_holdfast(before)?;
        results.against = against::run(&options, &programs, &before, &rows)?;
    } else if options.devices.is_some() {
        results.devices = options.devices;
        results.against = against::run(&options, &programs, &programs, &rows)?;
    } else if !rows.is_empty() {
        (results.targets, results.rows) = measure_rows(&options, &programs, &rows)?;
        results.served.extend(served::of_sessions(&results.targets, &results.rows));
    }
    if with_reduction {
        results.reduction = Some(reduction::run(&options, &programs)?);
    }
    if let Some(group) = group {
        results.served.push(group.run(&options, &programs)?);
    }
    if with_slow {
        results.slow = slow::run(&options, &programs)?;
    }
    print!("{}", table::render(&results));
    write_json(options.json.as_ref(), &results)
}

/// Measures rows on Holdfast and on its peers. Returns the names of these targets, and medians.
fn measure_rows(
    options: &Options,
    programs: &process::Programs,
    rows: &[&'static Row],
) -> Result<(Vec<String>, Vec<Measured>)> {
    let targets = targets::start(options, programs)?;
    let samples = sample_in_rounds(options, &programs.lab, &targets, rows)?;
    let median_of = |samples: Vec<Vec<Sample>>| samples.into_iter().map(median).collect();
    let measured = rows.iter().zip(samples);
    let measured = measured.map(|(row, samples)| Measured { row, targets: median_of(samples) });
    let names = targets.iter().map(|target| target.name.to_owned()).collect();
    // Pools and files that are no longer needed take up to a hundred GiB.
    drop(targets);
    targets::clear(&options.dir)?;
    Ok((names, measured.collect()))
}

fn write_json(path: Option<&PathBuf>, results: &Results) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let text = serde_json::to_string_pretty(results)? + "\n";
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// Returns the arguments for the writes that fill the span, followed by one read, because a load
/// must measure something.
fn fill_arguments() -> Vec<String> {
    ["--prefill", "--rw", "read", "--commands", "1", "--ramp", "0", "--seconds", "60"]
        .map(String::from)
        .to_vec()
}

/// Returns the samples of every row, on every target, one for each round. Fills the targets first.
fn sample_in_rounds(
    options: &Options,
    lab: &Path,
    targets: &[Target],
    rows: &[&'static Row],
) -> Result<Vec<Vec<Vec<Sample>>>> {
    for target in targets {
        eprintln!("fill {} bytes of {}", options.span, target.name);
        load_span(lab, target, options, &fill_arguments())?;
    }
    let mut samples = vec![vec![Vec::new(); targets.len()]; rows.len()];
    for round in 1..=options.rounds {
        for (row, samples) in rows.iter().zip(&mut samples) {
            let mut turns: Vec<_> = targets.iter().zip(samples).collect();
            // The order alternates from round to round.
            if round % 2 == 0 {
                turns.reverse();
            }
            for (target, samples) in turns {
                if !target.can(row) {
                    continue;
                }
                let sample = measure_one(options, lab, target, row)?;
                eprintln!(
                    "round {round}: {:<20} {:<14} {:>10.0}/s {:>8.1} MB/s, CPU {:>6.1} s/million",
                    row.id, target.name, sample.iops, sample.mb_per_s, sample.cpu_s_per_million
                );
                samples.push(sample);
            }
        }
    }
    Ok(samples)
}

fn measure_one(options: &Options, lab: &Path, target: &Target, row: &Row) -> Result<Sample> {
    if row.needs_mapped {
        // What the row unmaps must be mapped: otherwise it measures nothing.
        load_span(lab, target, options, &rows::remap_arguments(options.volume_bytes()))?;
    }
    let report = load_span(lab, target, options, &row.arguments(options))?;
    target.settle()?;
    sample(&report).with_context(|| format!("{} on {}: no numbers", row.id, target.name))
}

fn sample(report: &Value) -> Option<Sample> {
    let number = |name: &str| report.get(name)?.as_f64();
    Some(Sample {
        iops: number("iops")?,
        mb_per_s: number("mb_per_s")?,
        p99_us: report.get("latency_us")?.get("p99")?.as_f64()?,
        cpu_s_per_million: number("target_cpu_s_per_million")?,
    })
}

/// Runs the load generator on the span of a target, and returns its report.
fn load_span(
    lab: &Path,
    target: &Target,
    options: &Options,
    arguments: &[String],
) -> Result<Value> {
    let mut all = vec![String::from("--span"), options.span.to_string()];
    all.extend_from_slice(arguments);
    load(lab, &target.url, target.pid(), &all)
}

/// Runs the load generator against a logical unit of a process, and returns its report.
fn load(lab: &Path, url: &str, pid: u32, arguments: &[String]) -> Result<Value> {
    let mut all = words(&format!("load --url {url} --target-pid {pid}"));
    all.extend_from_slice(arguments);
    let output = process::output(lab, &all)?;
    serde_json::from_str(&output).context("the load generator's report")
}

/// Returns a number in the load generator's report: its name, or `object.name`.
fn number_of(report: &Value, name: &str) -> Result<f64> {
    let found = name.split('.').try_fold(report, |value, part| value.get(part));
    let number = found.and_then(Value::as_f64);
    number.with_context(|| format!("the load generator does not report {name}"))
}

/// Returns the sample with the median rate. Its other numbers are from the same run.
fn median(mut samples: Vec<Sample>) -> Option<Sample> {
    samples.sort_by(|a, b| a.iops.total_cmp(&b.iops));
    let middle = samples.len().checked_sub(1)? / 2;
    samples.into_iter().nth(middle)
}

/// Returns the median; `None` if there are no numbers.
fn middle_of(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(iops: f64) -> Sample {
        Sample { iops, mb_per_s: 0.0, p99_us: 0.0, cpu_s_per_million: 0.0 }
    }

    #[test]
    fn the_median_is_the_middle_one() {
        let middle = |rates: &[f64]| {
            median(rates.iter().map(|rate| rated(*rate)).collect()).map(|sample| sample.iops)
        };
        assert_eq!(middle(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(middle(&[3.0, 1.0]), Some(1.0));
        assert_eq!(middle(&[]), None);
    }
}
