//! The options of `cargo xtask bench`.

use std::path::PathBuf;

use clap::Parser;

/// Measure Holdfast against tgt on the same directory and against itself, and print the ratios.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// Where the pool and tgt's files go, on the device to measure.
    #[arg(long, default_value = "bench-data")]
    pub dir: PathBuf,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 4.0)]
    pub seconds: f64,
    /// The range that is read and written.
    #[arg(long, value_parser = parse_size, default_value = "2G")]
    pub span: u64,
    /// Rounds; the median counts.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Another benchmark instead of the rows.
    #[arg(long)]
    pub only: Option<Only>,
    /// With `--only memory` and `--only opening`: distinct chunks of 4 KiB in the pool; each number
    /// is a separate pool. 52 million are 213 GB, and take 420 MB of memory and about 5 GB below
    /// the temporary directory.
    #[arg(long, value_delimiter = ',', default_value = "1000000,10000000")]
    pub chunks: Vec<u64>,
    /// With `--only memory`: the budgets, in GiB per TiB stored.
    #[arg(long, value_delimiter = ',', default_value = "0.125,0.25,0.5,1,2,4,8")]
    pub per_tib: Vec<f64>,
    /// With `--only memory`: files whose duplicates are searched for, such as the parts of
    /// `tests-reduction/build`.
    #[arg(long, value_delimiter = ',')]
    pub files: Vec<PathBuf>,
    /// With `--only aged`: for how long each pool is overwritten, in seconds. The goals are meant
    /// for an hour (3600).
    #[arg(long, default_value_t = 50.0, value_parser = parse_seconds)]
    pub aged_seconds: f64,
    /// With `--only aged`: how full the pools are, in percent.
    #[arg(long, value_delimiter = ',', default_value = "61,80,90",
          value_parser = clap::value_parser!(u32).range(1..=95))]
    pub aged_full: Vec<u32>,
    /// With `--only cold`: the amount of data. The metadata of 3 GiB and more does not fit the
    /// least memory.
    #[arg(long, value_parser = parse_size, default_value = "8G")]
    pub cold_size: u64,
    /// Only rows whose name contains one of these.
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<String>,
    /// Also measure tgt with a volatile cache, and with aio and O_DIRECT.
    #[arg(long)]
    pub all: bool,
    /// Measure the raw directory with fio first.
    #[arg(long)]
    pub raw: bool,
    /// Measure tgt alone.
    #[arg(long)]
    pub without_holdfast: bool,
    /// The `holdfast` of an earlier build, to measure against this one instead of tgt.
    #[arg(long, conflicts_with_all = ["only", "all", "without_holdfast"])]
    pub against: Option<PathBuf>,
    /// Measure Holdfast on this many files against itself on one, instead of tgt: all files are in
    /// the same directory.
    #[arg(long, conflicts_with_all = ["only", "all", "without_holdfast", "against"],
          value_parser = clap::value_parser!(u16).range(2..=18))]
    pub devices: Option<u16>,
    /// Write all numbers to this file, as JSON.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// A configuration for Holdfast instead of the benchmark's own.
    #[arg(long)]
    pub config: Option<PathBuf>,
}

/// Another benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Only {
    /// Throughput and duplicates found against the memory of the store, over a device that
    /// generates its data.
    Memory,
    /// The cost of opening a pool after a shutdown and after crashes, against the chunks in it.
    Opening,
    /// Reads whose metadata is not in memory, on a device with a latency that generates its data,
    /// and cached ones at the same time.
    ColdModel,
    /// The cost of overwriting a pool that has been full for a long time: bytes written to the
    /// device, by purpose. The device generates its data.
    AgedModel,
    /// Overwrites of the served binary's pool that has been full for a long time, and of tgt's
    /// file: rates compared with a fresh pool, the longest response time, bytes written. Not part
    /// of all rows. About 5 minutes, 10 GiB of disk; see `--aged-seconds`.
    Aged,
    /// Reads of the served binary whose data comes from the device, with metadata in memory and
    /// without, compared with tgt and the raw device. Not part of all rows. About 3 minutes, 10 GiB
    /// of disk.
    Cold,
    /// The ordinary rows of 64 commands in flight over 1, 8 and 64 sessions, with their ratios to
    /// one session. All rows include these.
    Sessions,
    /// Sequential writes of 32 KiB, 256 KiB and 1 MiB, reduced and not, compared with tgt and the
    /// raw device. Not part of all rows. About 4 minutes, 14 GiB of disk.
    Large,
    /// A start after kill -9, how fast the space of eradicated volumes is freed, writes with 1,000
    /// volumes. Not part of all rows. About 3 minutes, 12 GiB of disk.
    Growth,
    /// Reads and writes of a pool on six files while two of them are out, and while they are
    /// replaced. Not part of all rows. About 2 minutes, 15 GiB of disk.
    Failing,
    /// As `cold-model`, with the served binary over iSCSI. All rows include this. Takes 12 GiB of
    /// disk.
    Slow,
    /// Holdfast against itself: with reduction and without, small and large offloads, with reclaim
    /// and without. All rows include this. Takes 7 GiB of disk.
    Reduction,
}

impl Options {
    /// Returns whether a row was requested.
    pub fn wants(&self, row: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|part| row.contains(part.as_str()))
    }

    /// Returns the size of the volumes in bytes: far more than the span, because offloads continue
    /// after it.
    pub fn volume_bytes(&self) -> u64 {
        self.span.saturating_add(1 << 40)
    }

    /// Returns one line for the report.
    pub fn describe(&self) -> String {
        format!("{} s a measurement, median of {} interleaved rounds", self.seconds, self.rounds)
    }

    /// Returns one line for the rows that are compared with a peer.
    pub fn describe_load(&self) -> String {
        format!(
            "One session unless a row says otherwise; a span of {} MiB, 50% compressible data \
             without duplicates",
            self.span >> 20
        )
    }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (1.0..=1e6).contains(seconds));
    seconds.ok_or_else(|| format!("{text:?}: write seconds, at least 1"))
}

fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        Some((at, 't' | 'T')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|bytes| *bytes >= 64 << 20 && bytes % (1 << 20) == 0)
        .ok_or_else(|| format!("{text:?}: write whole MiBs, at least 64M, such as 512M or 2G"))
}
