//! `cargo xtask bench --only slow`: requests whose metadata is not in memory, on a slow device, and
//! their effect on others that need no device.
//!
//! The array is restarted for each measurement, over a pool whose metadata does not fit its memory,
//! with a latency added to each request to the device
//! ([slow.rs](../../../crates/segments/src/slow.rs)). One session reads cold blocks at random, one
//! at a time and 64 in parallel; another one, at a steady rate, reads what is in memory, or sends
//! TEST UNIT READY, without the first and at the same time.
//!
//! Together with the first it also sends the same to *another, idle array*: the additional latency
//! there is due to the machine, because all of these programs share its processors.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

use super::array::{Array, Plan};
use super::options::Options;
use super::process::{Programs, words};
use super::{load, number_of};

/// The latency added to each request to the device, in milliseconds.
const LATENCIES_MS: [u32; 2] = [1, 10];
/// Parallel cold requests, compared with one at a time.
const DEPTH: usize = 64;
/// The goal: the least ratio of their rates.
const RATIO_MIN: f64 = 50.0;
/// The goal for the growth of the 99th percentile of commands that need no device.
const P99_RATIO_MAX: f64 = 1.5;

const GIB: u64 = 1 << 30;
const POOL_BYTES: u64 = 12 * GIB;
/// Two million blocks: about 80 MiB of rows and leaves.
const COLD_BYTES: u64 = 8 * GIB;
/// The range that is read from memory.
const HOT_BYTES: u64 = 1 << 20;
/// The least memory that can be configured, and no background work.
const CONFIG: &str = "memory = \"64M\"\nscrub = \"off\"\noptimize = \"off\"\n";
/// Reads until memory has its later content.
const SETTLE: &str = "--rw randread --depth 64 --commands 20000 --seconds 60";
/// Commands per second of the second session.
const BESIDE: &str = "--rate 1000 --depth 4";

/// Returns the name of each latency's row, for `--rows`.
pub fn row_ids() -> impl Iterator<Item = String> {
    LATENCIES_MS.iter().map(|ms| format!("slow-{ms}ms"))
}

/// The results with one latency, in one round or as medians.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The latency in milliseconds.
    latency_ms: u32,
    /// Cold reads per second, one at a time.
    one_per_s: f64,
    /// The same with [`DEPTH`] in parallel.
    many_per_s: f64,
    /// The 99th percentile of cached reads, in microseconds: alone, together with those, and
    /// together with those on another array.
    read_p99_us: [f64; 3],
    /// The same for TEST UNIT READY.
    tur_p99_us: [f64; 3],
}

/// Measures the rows that the options request.
pub fn run(options: &Options, programs: &Programs) -> Result<Vec<Row>> {
    let (pool, config) = prepare(options, programs)?;
    let other = prepare_other(options, programs)?;
    let bench = Bench { options, programs, pool, config, other };
    let mut rows = Vec::new();
    for latency_ms in LATENCIES_MS {
        if !options.wants(&format!("slow-{latency_ms}ms")) {
            continue;
        }
        let mut rounds = Vec::new();
        for round in 1..=options.rounds {
            let row = bench.measure(latency_ms, round as u64)?;
            eprintln!("round {round}: {}", row.line());
            rounds.push(row);
        }
        rows.push(median(&rounds).context("--rounds 0 measures nothing")?);
    }
    let other = bench.other.stop()?;
    for pool in [&bench.pool, &other] {
        std::fs::remove_dir_all(pool).context("removing a pool")?;
    }
    Ok(rows)
}

/// Starts an array that is idle except for the second session's commands.
fn prepare_other(options: &Options, programs: &Programs) -> Result<Array> {
    let plan = Plan {
        name: "slow-other",
        capacity_bytes: GIB,
        devices: 1,
        config: None,
        is_conditioned: false,
    };
    let array = Array::start(programs, &options.dir, &plan)?;
    let url = array.create_volume("hot", 64 << 20, 2, "")?;
    let fill = "--prefill --rw read --commands 1 --ramp 0 --seconds 60 --compressible 0 --seed 2";
    load(&programs.lab, &url, array.pid(), &words(fill))?;
    Ok(array)
}

/// Creates a pool with its volumes, at the device's own speed. Returns it, and the configuration
/// for the measurements.
fn prepare(options: &Options, programs: &Programs) -> Result<(PathBuf, PathBuf)> {
    let plan = Plan {
        name: "slow",
        capacity_bytes: POOL_BYTES,
        devices: 1,
        config: None,
        is_conditioned: false,
    };
    let array = Array::start(programs, &options.dir, &plan)?;
    for (name, bytes, lun) in [("cold", COLD_BYTES, 1), ("hot", 64 << 20, 2)] {
        eprintln!("slow: filling {} MiB", bytes >> 20);
        let url = array.create_volume(name, bytes, lun, "")?;
        let fill = "--prefill --rw read --commands 1 --ramp 0 --seconds 60 --compressible 0";
        load(&programs.lab, &url, array.pid(), &words(&format!("{fill} --seed {lun}")))?;
    }
    let config = options.dir.join("slow.toml");
    std::fs::write(&config, CONFIG).with_context(|| format!("writing {}", config.display()))?;
    Ok((array.stop()?, config))
}

/// A pool that no process serves.
struct Bench<'a> {
    options: &'a Options,
    programs: &'a Programs,
    pool: PathBuf,
    config: PathBuf,
    other: Array,
}

/// What the second session reads or sends.
const HOT: [&str; 2] = ["--rw randread --span 1048576", "--command tur"];

impl Bench<'_> {
    fn measure(&self, latency_ms: u32, seed: u64) -> Result<Row> {
        let (one, alone) = self.served(latency_ms, |bench, array| {
            // The upper levels that stay in memory are the same in both.
            self.load(array, 1, &format!("{SETTLE} --seed {}", seed + 200))?;
            let alone = HOT.map(|load| bench.p99_us(array, load, seed));
            Ok((bench.cold(array, 1, bench.options.seconds, seed)?, alone))
        })?;
        let (many, beside, elsewhere) = self.served(latency_ms, |bench, array| {
            // For as long as the other measurement, including the time to start programs.
            let seconds = bench.options.seconds * 4.0 + 6.0;
            self.load(array, 1, &format!("{SETTLE} --seed {}", seed + 200))?;
            std::thread::scope(|scope| {
                let cold = scope.spawn(|| bench.cold(array, DEPTH, seconds, seed + 100));
                std::thread::sleep(std::time::Duration::from_secs(1));
                let beside = HOT.map(|load| bench.p99_us(array, load, seed));
                let elsewhere = HOT.map(|load| bench.p99_us(&bench.other, load, seed));
                let many = cold.join().expect("the cold load does not panic")?;
                Ok((many, beside, elsewhere))
            })
        })?;
        let [read_alone, tur_alone] = alone;
        let [read_beside, tur_beside] = beside;
        let [read_elsewhere, tur_elsewhere] = elsewhere;
        Ok(Row {
            latency_ms,
            one_per_s: number_of(&one, "iops")?,
            many_per_s: number_of(&many, "iops")?,
            read_p99_us: [read_alone?, read_beside?, read_elsewhere?],
            tur_p99_us: [tur_alone?, tur_beside?, tur_elsewhere?],
        })
    }

    /// Serves the pool with an empty cache, except for what is read into it.
    fn served<T>(
        &self,
        latency_ms: u32,
        measure: impl FnOnce(&Self, &Array) -> Result<T>,
    ) -> Result<T> {
        let config = self.config.display();
        let flags = format!("--config {config} --slow-device-for-tests {latency_ms}");
        let log = self.options.dir.join(format!("slow-{latency_ms}ms.log"));
        let array = Array::serve(self.programs, self.pool.clone(), &words(&flags), &log)?;
        let warm = format!("--rw read --span {HOT_BYTES} --depth 16 --ramp 0 --commands 512");
        self.load(&array, 2, &warm)?;
        let result = measure(self, &array)?;
        array.stop()?;
        Ok(result)
    }

    fn load(&self, array: &Array, lun: u16, arguments: &str) -> Result<Value> {
        load(&self.programs.lab, &array.url(lun), array.pid(), &words(arguments))
    }

    fn cold(&self, array: &Array, depth: usize, seconds: f64, seed: u64) -> Result<Value> {
        let load = format!("--rw randread --depth {depth} --seconds {seconds} --seed {seed}");
        self.load(array, 1, &load)
    }

    fn p99_us(&self, array: &Array, load: &str, seed: u64) -> Result<f64> {
        let seconds = self.options.seconds;
        let report =
            self.load(array, 2, &format!("{load} {BESIDE} --seconds {seconds} --seed {seed}"))?;
        number_of(&report, "latency_us.p99")
    }
}

impl Row {
    fn ratio(&self) -> f64 {
        self.many_per_s / self.one_per_s
    }

    fn line(&self) -> String {
        let Self { latency_ms, one_per_s, many_per_s, read_p99_us, tur_p99_us } = self;
        let ratio = self.ratio();
        format!(
            "slow-{latency_ms}ms {one_per_s:.0}/s and {many_per_s:.0}/s, {ratio:.1}; p99 us of \
             cached reads {:.0}, {:.0}, elsewhere {:.0}, of TEST UNIT READY {:.0}, {:.0}, \
             elsewhere {:.0}",
            read_p99_us[0],
            read_p99_us[1],
            read_p99_us[2],
            tur_p99_us[0],
            tur_p99_us[1],
            tur_p99_us[2]
        )
    }
}

/// Returns the median of each figure.
fn median(rounds: &[Row]) -> Option<Row> {
    let middle =
        |figure: &dyn Fn(&Row) -> f64| super::middle_of(rounds.iter().map(figure).collect());
    let three = |figure: &dyn Fn(&Row, usize) -> f64| {
        let at = |at| middle(&|row| figure(row, at));
        Some([at(0)?, at(1)?, at(2)?])
    };
    Some(Row {
        latency_ms: rounds.first()?.latency_ms,
        one_per_s: middle(&|row| row.one_per_s)?,
        many_per_s: middle(&|row| row.many_per_s)?,
        read_p99_us: three(&|row, at| row.read_p99_us[at])?,
        tur_p99_us: three(&|row, at| row.tur_p99_us[at])?,
    })
}

/// Returns the table in Markdown.
pub fn render(rows: &[Row]) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_table(&mut text, rows);
    text
}

fn write_table(text: &mut String, rows: &[Row]) -> std::fmt::Result {
    writeln!(
        text,
        "## Cold metadata on a slow device\n\n\
         4 KiB random reads of {} GiB after a start, with 64 MiB of memory, each request to the \
         device held back for the latency. Beside {DEPTH} of them another session sends 1,000 \
         commands a second, to this array and to another one (\"elsewhere\": the machine's \
         part).\n",
        COLD_BYTES >> 30
    )?;
    writeln!(
        text,
        "| latency, ms | reads/s, one | reads/s, {DEPTH} | ratio | cached read p99, us, alone | \
         beside | elsewhere | ratio | TEST UNIT READY p99, us, alone | beside | elsewhere | \
         ratio | goal |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    )?;
    for row in rows {
        let [read, tur] = [row.read_p99_us, row.tur_p99_us];
        let [of_read, of_tur] = [read[1] / read[0], tur[1] / tur[0]];
        let is_met = row.ratio() >= RATIO_MIN && of_read.max(of_tur) <= P99_RATIO_MAX;
        writeln!(
            text,
            "| {} | {:.0} | {:.0} | {:.1} | {:.0} | {:.0} | {:.0} | {of_read:.2} | {:.0} | {:.0} | \
             {:.0} | {of_tur:.2} | {RATIO_MIN:.0}, p99 {P99_RATIO_MAX}: {} |",
            row.latency_ms,
            row.one_per_s,
            row.many_per_s,
            row.ratio(),
            read[0],
            read[1],
            read[2],
            tur[0],
            tur[1],
            tur[2],
            if is_met { "met" } else { "MISSED" }
        )?;
    }
    writeln!(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(one_per_s: f64, many_per_s: f64, beside_us: f64) -> Row {
        let p99_us = [100.0, beside_us, 90.0];
        Row { latency_ms: 1, one_per_s, many_per_s, read_p99_us: [100.0; 3], tur_p99_us: p99_us }
    }

    #[test]
    fn a_goal_needs_both_medians_to_meet_it() {
        let rounds = [row(10.0, 400.0, 140.0), row(10.0, 600.0, 900.0), row(9.0, 510.0, 120.0)];
        let middle = median(&rounds).unwrap();
        assert_eq!((middle.one_per_s, middle.many_per_s), (10.0, 510.0));
        assert_eq!(middle.tur_p99_us, [100.0, 140.0, 90.0]);
        assert!(render(&[middle]).contains(": met |"));
        assert!(render(&[row(10.0, 499.0, 100.0)]).contains("MISSED"));
        assert!(render(&[row(10.0, 510.0, 151.0)]).contains("MISSED"));
        assert!(median(&[]).is_none());
    }
}
