//! The write path with reduction on and off, by content.

use anyhow::{Context, Result};
use serde::Serialize;

use super::{Bench, median_by, number};

/// The most bytes that a measurement writes: two of them, and dead data, fit the pool.
const WRITE_BYTES_MAX: u64 = 1 << 30;
/// The size of the volume, which is written sequentially: nothing is overwritten.
const VOLUME_BYTES: u64 = 64 << 30;
/// The flags of a volume without reduction.
const OFF: &str = "--deduplication off --compression off";

/// The kind of load.
#[derive(Clone, Copy, Debug)]
struct Shape {
    title: &'static str,
    load: &'static str,
    bytes: u64,
}

const RANDOM_4K: Shape = Shape {
    title: "4 KiB random, depth 32",
    load: "--rw randwrite --span 1G --depth 32",
    bytes: 4 << 10,
};
const SEQUENTIAL_32K: Shape =
    Shape { title: "32 KiB sequential, depth 8", load: "--rw write --depth 8", bytes: 32 << 10 };
const SEQUENTIAL_256K: Shape =
    Shape { title: "256 KiB sequential, depth 8", load: "--rw write --depth 8", bytes: 256 << 10 };

/// A row.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// Its name, for `--rows`.
    pub id: &'static str,
    #[serde(skip)]
    shape: Shape,
    /// How many blocks were written before, in percent.
    pub duplicate_percent: u32,
    /// How much of each block is one repeated byte, in percent.
    pub compressible_percent: u32,
    /// The goal: the least ratio of rates.
    pub goal: f64,
}

const fn row(id: &'static str, shape: Shape, duplicate: u32, compressible: u32) -> Row {
    let goal = if duplicate == 0 && compressible == 0 { 0.7 } else { 1.0 };
    Row { id, shape, duplicate_percent: duplicate, compressible_percent: compressible, goal }
}

impl Row {
    /// Returns its title for display.
    pub fn title(&self) -> String {
        let what = match (self.duplicate_percent, self.compressible_percent) {
            (0, 0) => String::from("unique, incompressible"),
            (0, percent) => format!("unique, {}x compressible", 100 / (100 - percent)),
            (percent, _) => format!("{percent}% duplicates, incompressible"),
        };
        format!("{}: {what}", self.shape.title)
    }
}

/// All rows, in the order in which they run.
pub const ROWS: &[Row] = &[
    row("reduce-4k-unique", RANDOM_4K, 0, 0),
    row("reduce-4k-duplicates-50", RANDOM_4K, 50, 0),
    row("reduce-4k-duplicates-90", RANDOM_4K, 90, 0),
    row("reduce-32k-unique", SEQUENTIAL_32K, 0, 0),
    row("reduce-32k-duplicates-50", SEQUENTIAL_32K, 50, 0),
    row("reduce-32k-duplicates-90", SEQUENTIAL_32K, 90, 0),
    row("reduce-32k-compressible-2x", SEQUENTIAL_32K, 0, 50),
    row("reduce-32k-compressible-4x", SEQUENTIAL_32K, 0, 75),
    row("reduce-256k-unique", SEQUENTIAL_256K, 0, 0),
];

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Million bytes per second.
    pub mb_per_s: f64,
    /// The 99th percentile of latency, in microseconds.
    pub p99_us: f64,
    /// The array's CPU seconds per billion bytes.
    pub cpu_s_per_gb: f64,
    /// Stored bytes per byte that was written and not overwritten.
    pub stored: f64,
    /// Bytes written to the device per byte written.
    pub device: f64,
}

/// A row's medians.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The row.
    #[serde(flatten)]
    pub row: &'static Row,
    /// With reduction.
    pub on: Sample,
    /// Without.
    pub off: Sample,
}

/// Measures every row, on and off, in every round. Returns medians.
pub fn measure(bench: &Bench, rows: &[&'static Row]) -> Result<Vec<Measured>> {
    let mut samples = vec![[Vec::new(), Vec::new()]; rows.len()];
    let mut seed = 0;
    for round in 0..bench.options.rounds {
        for (row, samples) in rows.iter().zip(&mut samples) {
            // The order of the sides alternates from round to round.
            for side in [round % 2, 1 - round % 2] {
                seed += 1;
                let is_reduced = side == 0;
                let sample = measure_one(bench, row, is_reduced, seed)?;
                let state = if is_reduced { "on" } else { "off" };
                eprintln!(
                    "round {}: {:<26} {state:<3} {:>7.1} MB/s, CPU {:>5.2} s/GB, stored {:.3}",
                    round + 1,
                    row.id,
                    sample.mb_per_s,
                    sample.cpu_s_per_gb,
                    sample.stored
                );
                samples[side].push(sample);
            }
        }
    }
    let median = |samples| median_by(samples, |sample: &Sample| sample.mb_per_s);
    rows.iter()
        .zip(samples)
        .map(|(row, [on, off])| {
            let (on, off) = median(on).zip(median(off)).context("--rounds 0 measures nothing")?;
            Ok(Measured { row, on, off })
        })
        .collect()
}

/// Writes a new volume, and destroys it.
fn measure_one(bench: &Bench, row: &Row, is_reduced: bool, seed: u64) -> Result<Sample> {
    let array = &bench.array;
    let flags = if is_reduced { "" } else { OFF };
    let url = array.create_volume("content", VOLUME_BYTES, 1, flags)?;
    let (pool, written) = (array.pool()?, array.written_bytes()?);
    let bytes = row.shape.bytes;
    let report = bench.load(
        &url,
        &format!(
            "{} --block {bytes} --duplicates {} --compressible {} --seed {seed} --seconds {} \
             --commands {}",
            row.shape.load,
            row.duplicate_percent,
            row.compressible_percent,
            bench.options.seconds,
            WRITE_BYTES_MAX / bytes
        ),
    )?;
    let (after, device) = (array.pool()?, array.written_bytes()? - written);
    array.verb("disconnect content lab")?;
    array.verb("volume destroy content --eradicate")?;
    bench.wait_freed(pool.data_bytes)?;
    let host = number(&report, "commands")? * bytes as f64;
    let mapped = (after.mapped_bytes - pool.mapped_bytes) as f64;
    Ok(Sample {
        mb_per_s: number(&report, "mb_per_s")?,
        p99_us: number(&report, "latency_us.p99")?,
        cpu_s_per_gb: number(&report, "target_cpu_s")? / host * 1e9,
        stored: (after.data_bytes - pool.data_bytes) as f64 / mapped,
        device: device as f64 / host,
    })
}
