//! The cost of reclaim: the same load on a pool that needs it and on one that does not.

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::{Bench, median_by, number};
use crate::bench::options::Options;
use crate::bench::process::Programs;

/// The row's name, for `--rows`.
pub const ROW: &str = "reclaim";

/// The capacity of a pool that is nearly full.
const TIGHT_BYTES: u64 = 4 << 30;
/// The capacity of a pool with space for everything written.
const ROOMY_BYTES: u64 = 8 << 30;
/// The live data in each: four fifths of the small one, in whole MiB.
const LIVE_BYTES: u64 = ((TIGHT_BYTES >> 20) * 4 / 5) << 20;
/// The most that all measurements may write on the large one, before only an eighth of it is left.
const WRITE_BYTES_MAX: u64 = ROOMY_BYTES / 8 * 7 - LIVE_BYTES - (768 << 20);
/// How long the small one is overwritten before the measurement, at most; only once over all live
/// data, if that takes less. At first all segments are alike, and reclaim frees little from each.
const WARM_SECONDS: u64 = 40;
/// Overwrites of 4 KiB blocks, anywhere.
const LOAD: &str = "--rw randwrite --depth 32 --compressible 0 --allow-full";

/// One measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Commands per second.
    pub iops: f64,
    /// The median latency, in microseconds.
    pub p50_us: f64,
    /// The 99th percentile of latency, in microseconds.
    pub p99_us: f64,
    /// Commands refused for lack of space.
    pub refused: f64,
    /// The array's CPU seconds per million commands.
    pub cpu_s_per_million: f64,
    /// Bytes written to the device per byte that hosts wrote.
    pub amplification: f64,
}

/// The same load on both pools; medians.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// The small pool.
    pub with: Sample,
    /// The large one.
    pub without: Sample,
}

/// The medians.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The share of live volume data in the small pool.
    pub live_share: f64,
    /// As many commands as the pools accept.
    pub saturated: Pair,
    /// A third of the small pool's maximum, on both.
    pub steady: Pair,
}

/// Measures both pools in turn, in every round. Returns medians.
pub fn measure(options: &Options, programs: &Programs) -> Result<Measured> {
    let tight = Bench::start(options, programs, "tight", TIGHT_BYTES)?;
    let roomy = Bench::start(options, programs, "roomy", ROOMY_BYTES)?;
    eprintln!("{ROW}: filling two pools");
    let urls = [fill(&tight)?, fill(&roomy)?];
    let warm = format!("--seconds {WARM_SECONDS} --commands {}", LIVE_BYTES / 4096);
    tight.load(&urls[0], &format!("{LOAD} --seed 200 {warm}"))?;
    let [mut saturated, mut steady] = [(); 2].map(|()| [Vec::new(), Vec::new()]);
    let commands = WRITE_BYTES_MAX / 4096 / 2 / options.rounds.max(1) as u64;
    for round in 0..options.rounds {
        let seconds = options.seconds;
        let load = format!("{LOAD} --seconds {seconds} --commands {commands}");
        let both = |samples: &mut [Vec<Sample>; 2], load: &str| -> Result<()> {
            for (side, bench) in [&tight, &roomy].into_iter().enumerate() {
                let sample = measure_one(bench, &urls[side], load)?;
                tell(round, ["tight", "roomy"][side], &sample);
                samples[side].push(sample);
            }
            Ok(())
        };
        both(&mut saturated, &format!("{load} --seed {}", 201 + round))?;
        let rate = saturated[0].last().map_or(0.0, |sample| sample.iops / 3.0) as u32;
        both(&mut steady, &format!("{load} --seed {} --rate {rate}", 301 + round))?;
    }
    let pool = roomy.array.pool()?;
    ensure!(
        pool.allocated_bytes < pool.capacity_bytes / 8 * 7,
        "reclaim runs in the large pool too, so there is no baseline"
    );
    let pool = tight.array.pool()?;
    let live_share = pool.data_bytes as f64 / pool.capacity_bytes as f64;
    tight.array.remove()?;
    roomy.array.remove()?;
    let saturated = pair(saturated, |sample| sample.iops)?;
    let steady = pair(steady, |sample| sample.p99_us)?;
    Ok(Measured { live_share, saturated, steady })
}

fn pair(samples: [Vec<Sample>; 2], key: impl Fn(&Sample) -> f64) -> Result<Pair> {
    let [with, without] = samples.map(|samples| median_by(samples, &key));
    let (with, without) = with.zip(without).context("--rounds 0 measures nothing")?;
    Ok(Pair { with, without })
}

fn tell(round: usize, pool: &str, sample: &Sample) {
    let Sample { iops, p50_us, p99_us, refused, amplification, .. } = sample;
    let round = round + 1;
    eprintln!(
        "round {round}: {pool:<5} {iops:>8.0}/s, p50 {p50_us:>6.0} us, p99 {p99_us:>7.0} us, \
         {refused} refused, {amplification:.2} device bytes per host byte"
    );
}

/// Creates a volume that is fully written. Returns its URL.
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
