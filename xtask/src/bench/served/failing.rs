//! `cargo xtask bench --only failing`: a striped pool on six files while two of them are out, and
//! while their columns are rebuilt.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use super::table::{Column, Goal, Line, Table, column};
use super::{QUIET, Unit, plan, ratio};
use crate::bench::array::Array;
use crate::bench::options::Options;
use crate::bench::process::Programs;
use crate::bench::{Sample, median, middle_of, raw};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const DEVICES: u16 = 6;
/// The devices that fail: the second of each pair of neighbours.
const FAILED: [u16; 2] = [1, 4];
const POOL_BYTES: u64 = 8 * GIB;
const VOLUME_BYTES: u64 = 2 * GIB;
/// The least possible, so that reads reach the device.
const MEMORY: &str = "memory = \"64M\"\n";

const DEGRADED_RATIO_MIN: f64 = 0.333;
const REBUILD_OF_RAW_MIN: f64 = 0.5;
const P99_RATIO_MAX: f64 = 2.0;
const SETTLES: Duration = Duration::from_secs(3);
const REBUILD_TIME_MAX: Duration = Duration::from_secs(600);

const REBUILD: &str = "failing-rebuild";

/// Loads that are measured with all devices and without two of them: name, title, load.
const LOADS: &[(&str, &str, &str)] = &[
    ("failing-read-4k", "4 KiB random read, depth 32", "--rw randread --block 4096 --depth 32"),
    ("failing-read-256k", "256 KiB sequential read", "--rw read --block 262144 --depth 8"),
    ("failing-write-4k", "4 KiB random write, depth 32", "--rw randwrite --block 4096 --depth 32"),
];

pub const COLUMNS: &[Column] = &[
    column("all devices, /s", 0),
    column("two out, /s", 0),
    column("ratio", 2),
    column("p99 all devices, us", 0),
    column("p99 two out, us", 0),
    column("seconds", 1),
    column("rebuilt, MiB", 0),
    column("rebuild reads, MB/s", 0),
    column("raw device, MB/s", 0),
];

/// Returns the names of all rows.
pub fn row_ids() -> Vec<String> {
    LOADS.iter().map(|(id, ..)| *id).chain([REBUILD]).map(String::from).collect()
}

/// Measures the rows that the options request.
pub fn run(options: &Options, programs: &Programs) -> Result<Table> {
    let config = format!("{QUIET}{MEMORY}");
    let plan = plan(options, "failing", POOL_BYTES, &config)?;
    let plan = crate::bench::array::Plan { devices: DEVICES, ..plan };
    let array = Array::start(programs, &options.dir, &plan)?;
    let url = array.create_volume("failing", VOLUME_BYTES, 1, "")?;
    let unit = Unit::of_array(programs, &array, &url);
    eprintln!("filling {} MiB", VOLUME_BYTES / MIB);
    unit.fill("--compressible 0 --seed 1000")?;
    // Background work of the array afterwards is not part of the measurement.
    std::thread::sleep(SETTLES);
    let mut lines = Vec::new();
    for row in LOADS.iter().filter(|(id, ..)| options.wants(id)) {
        lines.push(degraded(options, unit, &array, row)?);
    }
    if options.wants(REBUILD) {
        change(&array, "fail")?;
        lines.push(rebuild(options, unit, &array)?);
    }
    array.remove()?;
    let text = "A pool on six files of one disk, of which two are taken out; 64 MiB of memory, \
                incompressible data. Rebuild: both are replaced by empty ones, one after the \
                other, under 4 KiB random writes at depth 4; the read rate is that of the process \
                without those writes, the raw rate is that of fio reading one of the files that \
                are out. All files share that disk.";
    let (title, text) = ("Devices that fail", text.to_owned());
    Ok(Table { title, text, columns: COLUMNS, lines })
}

/// Measures a load with all devices and without two of them, in turns.
fn degraded(
    options: &Options,
    unit: Unit<'_>,
    array: &Array,
    row: &(&'static str, &'static str, &'static str),
) -> Result<Line> {
    let (mut all_in, mut two_out) = (Vec::new(), Vec::new());
    for round in 1..=options.rounds {
        let load =
            format!("{} --compressible 0 --seconds {} --seed {round}", row.2, options.seconds);
        all_in.push(unit.sample(&load)?);
        change(array, "fail")?;
        two_out.push(unit.sample(&load)?);
        change(array, "return")?;
        wait_until_in(array)?;
        std::thread::sleep(SETTLES);
        let rates = [&all_in, &two_out].map(|samples| samples.last().map_or(0.0, |one| one.iops));
        eprintln!("round {round}: {} {:.0}/s, two out {:.0}/s", row.0, rates[0], rates[1]);
    }
    let nothing = "--rounds 0 measures nothing";
    let (before, then) = (median(all_in).context(nothing)?, median(two_out).context(nothing)?);
    Ok(degraded_line(row, &before, &then))
}

/// Makes both devices fail, or return.
fn change(array: &Array, verb: &str) -> Result<()> {
    FAILED.iter().try_for_each(|device| array.verb(&format!("device {verb} {device}")).map(drop))
}

fn degraded_line(
    (id, title, _): &(&'static str, &'static str, &'static str),
    before: &Sample,
    then: &Sample,
) -> Line {
    let ratio = ratio(then.iops, before.iops);
    let goals = match id.contains("read") {
        true => vec![Goal::at_least("ratio", ratio.unwrap_or(f64::NAN), DEGRADED_RATIO_MIN)],
        false => Vec::new(),
    };
    let rates = [Some(before.iops), Some(then.iops), ratio];
    let latencies = [Some(before.p99_us), Some(then.p99_us)];
    let figures = rates.into_iter().chain(latencies).chain([None; 4]).collect();
    Line { id: (*id).to_owned(), title: (*title).to_owned(), figures, goals }
}

/// Replaces both devices that are out, one after the other, while a host writes.
fn rebuild(options: &Options, unit: Unit<'_>, array: &Array) -> Result<Line> {
    let load = "--rw randwrite --block 4096 --depth 4 --compressible 0";
    let file = options.dir.join("failing").join("pool.2.data");
    let seconds = options.seconds;
    let (_, raw_mb_per_s) = raw::run(
        &file,
        &format!("--time_based --runtime={seconds} --rw=read --bs=1M --iodepth=8"),
    )?;
    let quiet = unit.sample(&format!("{load} --seconds {seconds} --seed 7"))?;
    let mut rebuilds = Vec::new();
    let mut p99s = Vec::new();
    for device in FAILED {
        let place = options.dir.join("failing").join(format!("new-{device}"));
        std::fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
        let (read_before, start) = (array.read_bytes()?, Instant::now());
        array.verb(&format!("device replace {device} {}", place.display()))?;
        let time = std::thread::scope(|scope| -> Result<Duration> {
            let loaded =
                scope.spawn(|| unit.sample(&format!("{load} --seconds {seconds} --seed 8")));
            wait_until_in(array)?;
            let time = start.elapsed();
            p99s.push(loaded.join().expect("the load does not panic")?.p99_us);
            Ok(time)
        })?;
        let read = array.read_bytes()? - read_before;
        eprintln!("{REBUILD}: device {device} after {:.1} s", time.as_secs_f64());
        rebuilds.push((time.as_secs_f64(), read as f64 / 1e6 / time.as_secs_f64()));
    }
    let seconds = middle_of(rebuilds.iter().map(|(time, _)| *time).collect());
    let read_mb_per_s = middle_of(rebuilds.iter().map(|(_, rate)| *rate).collect());
    let p99 = middle_of(p99s).context("no device was rebuilt")?;
    let rebuilt_mib = array.pool()?.allocated_bytes / MIB / u64::from(DEVICES - 2);
    let of_raw = read_mb_per_s.and_then(|rate| ratio(rate, raw_mb_per_s)).unwrap_or(f64::NAN);
    let slower = ratio(p99, quiet.p99_us).unwrap_or(f64::NAN);
    let figures = [None, None, None, Some(quiet.p99_us), Some(p99), seconds];
    let rebuilt = [Some(rebuilt_mib as f64), read_mb_per_s, Some(raw_mb_per_s)];
    Ok(Line {
        id: REBUILD.to_owned(),
        title: String::from("rebuild of a device"),
        figures: figures.into_iter().chain(rebuilt).collect(),
        goals: vec![
            Goal::at_least("read to raw", of_raw, REBUILD_OF_RAW_MIN),
            Goal::at_most("p99 to before", slower, P99_RATIO_MAX),
        ],
    })
}

/// Waits until no device catches up.
fn wait_until_in(array: &Array) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < REBUILD_TIME_MAX {
        let devices: Value = serde_json::from_str(&array.verb("device list --json")?)?;
        let mut devices = devices.as_array().into_iter().flatten();
        if !devices.any(|device| device["state"] == "catching_up") {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    anyhow::bail!("the device has not caught up within {} s", REBUILD_TIME_MAX.as_secs())
}
