//! What reclaim costs: the same load on a pool where it must run and on one where it need not.

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::{Bench, median_by, number};
use crate::bench::options::Options;
use crate::bench::process::Programs;

/// The row's name, for `--rows`.
pub const ROW: &str = "reclaim";

/// A pool that is nearly full.
const TIGHT_BYTES: u64 = 2 << 30;
/// One that has room for all that is written.
const ROOMY_BYTES: u64 = 5 << 30;
/// What is live in each: four fifths of the small one, in whole MiB.
const LIVE_BYTES: u64 = ((TIGHT_BYTES >> 20) * 4 / 5) << 20;
/// What all measurements may write on the large one, before an eighth of it is left.
const WRITE_BYTES_MAX: u64 = ROOMY_BYTES / 8 * 7 - LIVE_BYTES - (768 << 20);
/// How long the small one is written over before it is measured, at most; once over all that is
/// live, if that takes less. At first segments are alike, and reclaim finds little in each.
const WARM_SECONDS: u64 = 40;
/// What is written over: blocks of 4 KiB, anywhere.
const LOAD: &str = "--rw randwrite --depth 32 --compressible 0 --allow-full";

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Commands a second.
    pub iops: f64,
    /// The median latency, in microseconds.
    pub p50_us: f64,
    /// 99 of 100 commands took less, in microseconds.
    pub p99_us: f64,
    /// Commands that were refused for want of room.
    pub refused: f64,
    /// The array's CPU seconds for a million commands.
    pub cpu_s_per_million: f64,
    /// Bytes written to the device for each byte that hosts wrote.
    pub amplification: f64,
}

/// The medians.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// How much of the small pool is live volume data.
    pub live_share: f64,
    /// The small pool.
    pub with: Sample,
    /// The large one.
    pub without: Sample,
}

/// Both pools in turn, in every round; medians.
pub fn measure(options: &Options, programs: &Programs) -> Result<Measured> {
    let tight = Bench::start(options, programs, "tight", TIGHT_BYTES)?;
    let roomy = Bench::start(options, programs, "roomy", ROOMY_BYTES)?;
    eprintln!("{ROW}: filling two pools");
    let urls = [fill(&tight)?, fill(&roomy)?];
    let warm = format!("--seconds {WARM_SECONDS} --commands {}", LIVE_BYTES / 4096);
    tight.load(&urls[0], &format!("{LOAD} --seed 200 {warm}"))?;
    let mut samples = [Vec::new(), Vec::new()];
    let commands = WRITE_BYTES_MAX / 4096 / options.rounds.max(1) as u64;
    for round in 0..options.rounds {
        for (side, bench) in [&tight, &roomy].into_iter().enumerate() {
            let seed = 201 + round;
            let load =
                format!("{LOAD} --seed {seed} --seconds {} --commands {commands}", options.seconds);
            let sample = measure_one(bench, &urls[side], &load)?;
            eprintln!(
                "round {}: {:<5} {:>8.0}/s, p50 {:>6.0} us, p99 {:>7.0} us, {} refused, {:.2} \
                 written for one",
                round + 1,
                ["tight", "roomy"][side],
                sample.iops,
                sample.p50_us,
                sample.p99_us,
                sample.refused,
                sample.amplification
            );
            samples[side].push(sample);
        }
    }
    let pool = roomy.array.pool()?;
    ensure!(
        pool.allocated_bytes < pool.capacity_bytes / 8 * 7,
        "the large pool has come to where reclaim runs too, so nothing can be compared"
    );
    let pool = tight.array.pool()?;
    let live_share = pool.data_bytes as f64 / pool.capacity_bytes as f64;
    tight.array.remove()?;
    roomy.array.remove()?;
    let median = |samples| median_by(samples, |sample: &Sample| sample.iops);
    let [with, without] = samples.map(median);
    let (with, without) = with.zip(without).context("--rounds 0 measures nothing")?;
    Ok(Measured { live_share, with, without })
}

/// A volume that is written all over; its URL.
fn fill(bench: &Bench) -> Result<String> {
    let url = bench.array.create_volume("live", LIVE_BYTES, 1, "")?;
    bench.load(&url, "--prefill --rw read --commands 1 --compressible 0")?;
    Ok(url)
}

fn measure_one(bench: &Bench, url: &str, load: &str) -> Result<Sample> {
    let written = bench.array.written_bytes()?;
    let report = bench.load(url, load)?;
    let device = bench.array.written_bytes()? - written;
    Ok(Sample {
        iops: number(&report, "iops")?,
        p50_us: number(&report, "latency_us.p50")?,
        p99_us: number(&report, "latency_us.p99")?,
        refused: number(&report, "refused")?,
        cpu_s_per_million: number(&report, "target_cpu_s_per_million")?,
        amplification: device as f64 / (number(&report, "commands")? * 4096.0),
    })
}
