//! A steady load, measured: what the benchmark runs against Holdfast and its peers.

mod measure;
mod pattern;
mod rate;
mod run;
mod silence;

pub use measure::{Latency, Part, Report};
pub(crate) use run::is_put_off;
pub use run::run;
pub use silence::Silence;

use crate::target::ConnectArgs;

/// How a load reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Access {
    /// Random reads.
    Randread,
    /// Random writes.
    Randwrite,
    /// Sequential reads.
    Read,
    /// Sequential writes.
    Write,
    /// Reads and writes, random and sequential: see `--read-percent` and `--seq-percent`.
    Mixed,
}

/// A command that a load may send instead of reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Offload {
    /// TEST UNIT READY.
    Tur,
    /// EXTENDED COPY, from random places in the span to sequential places after it.
    Xcopy,
    /// WRITE SAME (16) of zeros, sequential, after the span.
    Writesame,
    /// UNMAP, sequential, after the span.
    Unmap,
}

/// The arguments of `load`.
#[derive(Clone, Debug, clap::Args)]
pub struct LoadArgs {
    /// The logical unit: `iscsi://[user%secret@]address:port/target/lun`.
    #[arg(long)]
    pub url: String,
    /// How to read and write.
    #[arg(long, value_enum, default_value_t = Access::Randread)]
    pub rw: Access,
    /// Send this command instead of reads and writes.
    #[arg(long, value_enum)]
    pub command: Option<Offload>,
    /// Bytes in one read or write.
    #[arg(long, value_parser = crate::size::parse, default_value = "4k")]
    pub block: u64,
    /// Bytes of one `--command` (1920M at most for xcopy).
    #[arg(long, value_parser = crate::size::parse, default_value = "4M")]
    pub length: u64,
    /// Commands in flight in each session.
    #[arg(long, default_value_t = 1)]
    pub depth: usize,
    /// Sessions.
    #[arg(long, default_value_t = 1)]
    pub sessions: usize,
    /// Seconds to measure.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Also report the rate and the longest latency of each interval of this many seconds.
    #[arg(long, value_parser = seconds)]
    pub part: Option<f64>,
    /// Seconds to run before measuring.
    #[arg(long, default_value_t = 0.5)]
    pub ramp: f64,
    /// Commands a second, of all sessions together. Default: limited only by `--depth`.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,
    /// Stop after this many commands, regardless of the time.
    #[arg(long)]
    pub commands: Option<u64>,
    /// Bytes of the logical unit to use, from its beginning. Default: all.
    #[arg(long, value_parser = crate::size::parse)]
    pub span: Option<u64>,
    /// Write the whole span once before measuring.
    #[arg(long)]
    pub prefill: bool,
    /// Compressible share of each 4 KiB block written, in percent.
    #[arg(long, default_value_t = 50)]
    pub compressible: u32,
    /// Share of 4 KiB blocks written that repeat an earlier block, in percent.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..100))]
    pub duplicates: u32,
    /// Share of reads in a mixed load, in percent.
    #[arg(long, default_value_t = 65)]
    pub read_percent: u32,
    /// Share of sequential accesses in a mixed load, in percent.
    #[arg(long, default_value_t = 40)]
    pub seq_percent: u32,
    /// Count writes that the target refuses because it is full, and continue.
    #[arg(long)]
    pub allow_full: bool,
    /// The seed of addresses and data.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The process of the target; its CPU time is measured over the same interval.
    #[arg(long)]
    pub target_pid: Option<u32>,
    /// How to connect.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// The length of a part: a millisecond at least.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (1e-3..=1e6).contains(seconds));
    seconds.ok_or_else(|| format!("{text:?} is not a number of seconds, such as 0.5 or 20"))
}
