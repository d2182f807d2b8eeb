//! The device itself, measured with fio: the upper limit for any target without a cache.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

use super::options::Options;
use super::process::{self, words};

/// One measurement of the raw directory.
#[derive(Clone, Debug, Serialize)]
pub struct RawRow {
    /// The kind of operation.
    pub title: &'static str,
    /// What is durable when an operation ends.
    pub durable: &'static str,
    /// Operations per second.
    pub iops: f64,
    /// Million bytes per second.
    pub mb_per_s: f64,
}

/// Title, durability, fio's arguments.
const RAW_ROWS: &[(&str, &str, &str)] = &[
    ("4 KiB random read, depth 1", "-", "--rw=randread --bs=4k --iodepth=1"),
    ("4 KiB random read, depth 32", "-", "--rw=randread --bs=4k --iodepth=32"),
    ("4 KiB append and fdatasync", "yes", "--rw=write --bs=4k --iodepth=1 --fdatasync=1"),
    ("128 KiB append and fdatasync", "yes", "--rw=write --bs=128k --iodepth=1 --fdatasync=1"),
    ("1 MiB sequential write", "no: the device's cache", "--rw=write --bs=1M --iodepth=8"),
    ("1 MiB sequential read", "-", "--rw=read --bs=1M --iodepth=8"),
];

/// Measures all of them on one file, bypassing the page cache.
pub fn measure(options: &Options) -> Result<Vec<RawRow>> {
    let file = options.dir.join("raw.img");
    let rows = RAW_ROWS
        .iter()
        .map(|(title, durable, arguments)| {
            eprintln!("raw: {title}");
            measure_one(options, &file, arguments).map(|(iops, mb_per_s)| RawRow {
                title,
                durable,
                iops,
                mb_per_s,
            })
        })
        .collect();
    std::fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    rows
}

fn measure_one(options: &Options, file: &Path, arguments: &str) -> Result<(f64, f64)> {
    let timed = format!("--time_based --runtime={} --size={}", options.seconds, options.span);
    run(file, &format!("{timed} {arguments}"))
}

/// Runs fio on a file, bypassing the page cache. Returns operations and million bytes per second.
pub fn run(file: &Path, arguments: &str) -> Result<(f64, f64)> {
    let mut all = words("--name=raw --ioengine=libaio --direct=1 --output-format=json");
    all.push(format!("--filename={}", file.display()));
    all.extend(words(arguments));
    let output = process::output(Path::new("fio"), &all)?;
    let report: Value = serde_json::from_str(&output).context("fio's report")?;
    let side = if arguments.contains("read") { "read" } else { "write" };
    let job = report.get("jobs").and_then(|jobs| jobs.get(0)?.get(side));
    let job = job.context("fio's report")?;
    let number = |name: &str| job.get(name).and_then(Value::as_f64).context("fio's report");
    Ok((number("iops")?, number("bw_bytes")? / 1e6))
}
