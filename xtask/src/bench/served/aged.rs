//! `cargo xtask bench --only aged`: the cost of overwriting a pool that has been full for a long
//! time.
//!
//! A volume that fills part of the pool is written once, and then overwritten at random, by one
//! load without a pause. Its rate in the first 20 seconds is that of a pool that needs no reclaim
//! yet, and later rates are compared with it. tgt overwrites a file of the same size, which does
//! not age: its rate is measured for a few seconds.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::table::{Column, Goal, Line, Table, column};
use super::{QUIET, Unit, start};
use crate::bench::number_of as number;
use crate::bench::options::Options;
use crate::bench::process::Programs;
use crate::bench::targets::{self, Mode};

const GIB: u64 = 1 << 30;
const POOL_BYTES: u64 = 10 * GIB;
/// How long a pool counts as fresh, in seconds, if the load is long enough.
const FRESH_S: f64 = 20.0;
/// The parts of the time after that, each with a column.
const THIRDS: usize = 3;
/// The length of the peer's load, at most, in seconds.
const PEER_S_MAX: f64 = 5.0;
/// The goal for the longest write, in milliseconds.
const LONGEST_MS_MAX: f64 = 50.0;
const P999_MS_MAX: f64 = 10.0;

pub const COLUMNS: &[Column] = &[
    column("fresh /s", 0),
    column("1st third /s", 0),
    column("2nd third /s", 0),
    column("last third /s", 0),
    column("lowest /s", 0),
    column("slowest third / fresh", 2),
    column("longest latency, ms", 0),
    column("longest pause, ms", 0),
    column("p99, ms", 1),
    column("p99.9, ms", 1),
    column("p99.99, ms", 1),
    column("refused", 0),
    column("device bytes / host byte", 2),
    column("CPU", 1),
    column("tgt /s", 0),
    column("lowest / tgt", 2),
];

/// A row.
#[derive(Clone, Copy, Debug)]
struct Row {
    full_percent: u32,
    is_large: bool,
}

impl Row {
    fn all(options: &Options) -> Vec<Self> {
        let of = |percent: &u32| Self { full_percent: *percent, is_large: false };
        let mut rows: Vec<Self> = options.aged_full.iter().map(of).collect();
        rows.push(Self { full_percent: 80, is_large: true });
        rows
    }

    fn id(&self) -> String {
        format!("aged-{}{}", self.full_percent, if self.is_large { "-1m" } else { "" })
    }

    fn title(&self) -> String {
        let what = if self.is_large { "1 MiB, depth 8" } else { "4 KiB, depth 32" };
        format!("{}% full: {what}", self.full_percent)
    }

    fn load(&self) -> &'static str {
        if self.is_large { "--block 1M --depth 8" } else { "--depth 32" }
    }

    fn block_bytes(&self) -> f64 {
        if self.is_large { f64::from(1 << 20) } else { 4096.0 }
    }

    /// Returns the size of the volume, in whole MiB.
    fn volume_bytes(&self) -> u64 {
        ((POOL_BYTES >> 20) * u64::from(self.full_percent) / 100) << 20
    }

    /// Returns the goal: the least ratio to fresh.
    fn ratio_min(&self) -> Option<f64> {
        match self.full_percent {
            0..=61 => Some(0.7),
            62..=80 => Some(0.45),
            _ => None,
        }
    }
}

/// Returns the names of all rows.
pub fn row_ids(options: &Options) -> Vec<String> {
    Row::all(options).iter().map(Row::id).collect()
}

/// Measures the rows that the options request.
pub fn run(options: &Options, programs: &Programs) -> Result<Table> {
    let mut rows = Row::all(options);
    rows.retain(|row| options.wants(&row.id()));
    let aged = rows.iter().map(|row| age(options, programs, row)).collect::<Result<Vec<_>>>()?;
    let peers = measure_peer(options, programs, &rows)?;
    let lines = rows.iter().zip(&aged).zip(&peers);
    let lines = lines.map(|((row, aged), peer)| line(row, aged, *peer)).collect();
    Ok(table(options, lines))
}

/// Returns how long a pool counts as fresh, in seconds.
fn fresh_s(options: &Options) -> f64 {
    FRESH_S.min(options.aged_seconds * 0.4)
}

/// Fills a pool and overwrites it.
fn age(options: &Options, programs: &Programs, row: &Row) -> Result<Aged> {
    let id = row.id();
    eprintln!("{id}: filling {} MiB", row.volume_bytes() >> 20);
    let array = start(options, programs, "aged", POOL_BYTES, QUIET)?;
    let url = array.create_volume("aged", row.volume_bytes(), 1, "")?;
    let unit = Unit::of_array(programs, &array, &url);
    unit.fill("--compressible 0 --seed 1000")?;
    eprintln!("{id}: overwriting it for {} s", options.aged_seconds);
    let written = array.written_bytes()?;
    let report = unit.load(&format!(
        "--rw randwrite {} --compressible 0 --allow-full --ramp 0 --seconds {} --part {}",
        row.load(),
        options.aged_seconds,
        fresh_s(options) / 2.0
    ))?;
    let device = array.written_bytes()? - written;
    array.remove()?;
    let host_bytes = number(&report, "commands")? * row.block_bytes();
    let aged = Aged::from_report(&report, device as f64 / host_bytes.max(1.0))?;
    eprintln!("{id}: {:.0}/s, and {:?} after that", aged.fresh, aged.thirds);
    Ok(aged)
}

/// Returns the rate of durable tgt for each row, on one file.
fn measure_peer(options: &Options, programs: &Programs, rows: &[Row]) -> Result<Vec<f64>> {
    let bytes = rows.iter().map(Row::volume_bytes).max().unwrap_or(0);
    ensure!(bytes > 0, "the volume is empty");
    eprintln!("aged: filling {} MiB of tgt", bytes >> 20);
    let target = targets::start_tgt(&options.dir, Mode::Durable, bytes)?;
    let unit = Unit::of_peer(programs, &target);
    unit.fill("--compressible 0")?;
    let seconds = PEER_S_MAX.min(options.aged_seconds);
    let rate = |row: &Row| {
        let span = format!("--span {} --compressible 0", row.volume_bytes());
        let load = format!("--rw randwrite {} {span} --seconds {seconds}", row.load());
        number(&unit.load(&load)?, "iops")
    };
    let rates = rows.iter().map(rate).collect();
    drop(target);
    targets::clear(&options.dir)?;
    rates
}

/// The results of the load.
#[derive(Clone, Debug)]
struct Aged {
    /// Writes per second.
    fresh: f64,
    thirds: [f64; THIRDS],
    /// The lowest rate of a part, each of half the fresh time.
    lowest: f64,
    longest_ms: f64,
    silence_ms: f64,
    /// The percentiles 99, 99.9 and 99.99.
    quantiles_ms: [f64; 3],
    refused: f64,
    /// Bytes written to the device per byte that the host wrote.
    amplification: f64,
    cpu_s_per_million: f64,
}

impl Aged {
    fn from_report(report: &Value, amplification: f64) -> Result<Self> {
        let parts = report.get("parts").and_then(Value::as_array);
        let parts = parts.context("the load generator reports no parts")?;
        let rates = parts.iter().map(|part| number(part, "iops")).collect::<Result<Vec<_>>>()?;
        let (fresh, later) = rates.split_at_checked(2).context("too few parts")?;
        // The remainder is not a separate part, because a command may take no time.
        let is_whole = parts.last().is_none_or(|last| {
            let of = |part: &Value| number(part, "seconds").unwrap_or(0.0);
            of(last) > of(&parts[0]) / 2.0
        });
        let later = if is_whole { later } else { &later[..later.len().saturating_sub(1)] };
        ensure!(!later.is_empty(), "--aged-seconds is too short");
        let ms = |name: &str| Ok::<_, anyhow::Error>(number(report, name)? / 1e3);
        Ok(Self {
            fresh: mean(fresh),
            thirds: thirds(later),
            lowest: later.iter().copied().fold(f64::INFINITY, f64::min),
            longest_ms: ms("latency_us.max")?,
            silence_ms: ms("silence_us")?,
            quantiles_ms: [ms("latency_us.p99")?, ms("latency_us.p999")?, ms("latency_us.p9999")?],
            refused: number(report, "refused")?,
            amplification,
            cpu_s_per_million: number(report, "target_cpu_s_per_million")?,
        })
    }
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}

/// Returns the means of three parts of the same length, or nearly so.
fn thirds(rates: &[f64]) -> [f64; THIRDS] {
    std::array::from_fn(|at| {
        let from = at * rates.len() / THIRDS;
        let to = ((at + 1) * rates.len() / THIRDS).max(from + 1);
        mean(&rates[from..to])
    })
}

fn line(row: &Row, aged: &Aged, peer: f64) -> Line {
    let Aged { fresh, thirds, lowest, longest_ms, silence_ms, quantiles_ms, .. } = aged;
    let least = thirds.iter().copied().fold(f64::INFINITY, f64::min);
    let (to_fresh, to_tgt) = (least / fresh, lowest / peer);
    let mut goals = Vec::new();
    goals.extend(row.ratio_min().map(|ratio| Goal::at_least("to fresh", to_fresh, ratio)));
    goals.push(Goal::at_least("to tgt", to_tgt, 1.0));
    goals.push(Goal::at_most("longest", *longest_ms, LONGEST_MS_MAX));
    if !row.is_large {
        goals.push(Goal::at_most("p99.9", quantiles_ms[1], P999_MS_MAX));
    }
    let figures = [*fresh].into_iter().chain(*thirds).chain([*lowest, to_fresh, *longest_ms]);
    let figures = figures.chain([*silence_ms]).chain(*quantiles_ms);
    let rest = [aged.refused, aged.amplification, aged.cpu_s_per_million, peer, to_tgt];
    let figures = figures.chain(rest).map(Some).collect();
    Line { id: row.id(), title: row.title(), figures, goals }
}

fn table(options: &Options, lines: Vec<Line>) -> Table {
    let fresh = fresh_s(options);
    let text = format!(
        "A pool of {} GiB, filled once and overwritten at random for {} s, unique and \
         incompressible, acknowledged writes are durable. Fresh: the first {fresh} s. The time \
         after that is in thirds; lowest is the rate of its slowest {} s. A pause is a time \
         without a response. Device bytes are those written to the device. CPU is the array's, \
         in seconds for a million commands. tgt overwrites a file of the size of the volume, each \
         write flushed.",
        POOL_BYTES / GIB,
        options.aged_seconds,
        fresh / 2.0
    );
    Table {
        title: "Overwrites of a pool that has been full for a long time",
        text,
        columns: COLUMNS,
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a report of parts of 10 s with these rates, and one of `rest_s`.
    fn report(rates: &[f64], rest_s: f64) -> Value {
        let part = |rate: &f64| json!({"seconds": 10.0, "iops": rate});
        let mut parts: Vec<Value> = rates.iter().map(part).collect();
        parts.push(json!({"seconds": rest_s, "iops": 1.0}));
        let latency = json!({"max": 40e3, "p99": 2e3, "p999": 9e3, "p9999": 20e3});
        json!({
            "parts": parts, "latency_us": latency, "silence_us": 12e3, "refused": 0,
            "target_cpu_s_per_million": 25.0
        })
    }

    const ROW: Row = Row { full_percent: 61, is_large: false };

    #[test]
    fn later_rates_are_compared_with_the_fresh_rate() {
        let rates = [90.0, 110.0, 80.0, 80.0, 75.0, 65.0, 60.0, 90.0];
        let aged = Aged::from_report(&report(&rates, 0.001), 2.5).unwrap();
        assert_eq!((aged.fresh, aged.thirds, aged.lowest), (100.0, [80.0, 70.0, 75.0], 60.0));
        let line = line(&ROW, &aged, 50.0);
        assert_eq!(line.figures.len(), COLUMNS.len());
        assert_eq!((line.figures[5], line.figures[15]), (Some(0.7), Some(1.2)));
        assert!(line.goals.iter().all(|goal| goal.is_met));
        // A short remainder that is a part counts as one.
        assert_eq!(Aged::from_report(&report(&rates, 9.0), 2.5).unwrap().lowest, 1.0);
        assert!(Aged::from_report(&report(&[1.0], 0.001), 1.0).is_err());
    }

    #[test]
    fn each_goal_can_be_missed_separately() {
        let rates = [100.0, 100.0, 80.0, 80.0, 80.0];
        let met = Aged::from_report(&report(&rates, 0.001), 2.5).unwrap();
        let slow = Aged { thirds: [80.0, 69.0, 80.0], ..met.clone() };
        let silent = Aged { longest_ms: 50.1, ..met.clone() };
        let tail = Aged { quantiles_ms: [2.0, 10.1, 20.0], ..met.clone() };
        let low = Aged { lowest: 49.0, ..met.clone() };
        let missed = |row: &Row, aged: &Aged| {
            let goals = line(row, aged, 50.0).goals;
            goals.iter().filter(|goal| !goal.is_met).map(|goal| goal.of).collect::<Vec<_>>()
        };
        assert!(missed(&ROW, &met).is_empty());
        assert_eq!(missed(&ROW, &slow), ["to fresh"]);
        assert_eq!(missed(&ROW, &silent), ["longest"]);
        assert_eq!(missed(&ROW, &tail), ["p99.9"]);
        assert_eq!(missed(&ROW, &low), ["to tgt"]);
        let large = Row { full_percent: 80, is_large: true };
        assert!(missed(&large, &tail).is_empty() && missed(&large, &slow).is_empty());
        assert_eq!((ROW.id(), large.id()), ("aged-61".into(), "aged-80-1m".into()));
    }

    #[test]
    fn thirds_work_for_any_number_of_parts() {
        assert_eq!(thirds(&[5.0]), [5.0; 3]);
        assert_eq!(thirds(&[1.0, 2.0, 3.0, 4.0]), [1.0, 2.0, 3.5]);
    }
}
