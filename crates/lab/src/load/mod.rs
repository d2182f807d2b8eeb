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
    /// Reads and writes, random and sequential, as `--read-percent` and `--seq-percent` say.
    Mixed,
}

/// A command that a load may consist of instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Offload {
    /// TEST UNIT READY.
    Tur,
    /// EXTENDED COPY, from anywhere in the span to behind it, walking.
    Xcopy,
    /// WRITE SAME (16) of zeros, walking behind the span.
    Writesame,
    /// UNMAP, walking behind the span.
    Unmap,
}

/// What load to make.
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
    /// Bytes that one `--command` covers (1920M at most for xcopy).
    #[arg(long, value_parser = crate::size::parse, default_value = "4M")]
    pub length: u64,
    /// Commands in flight in each session.
    #[arg(long, default_value_t = 1)]
    pub depth: usize,
    /// Sessions.
    #[arg(long, default_value_t = 1)]
    pub sessions: usize,
    /// How long to measure.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Report the rate and the longest latency of each so many seconds of the measurement, too.
    #[arg(long, value_parser = seconds)]
    pub part: Option<f64>,
    /// How long to run before measuring.
    #[arg(long, default_value_t = 0.5)]
    pub ramp: f64,
    /// Commands a second, together. Default: as many as `--depth` lets through.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,
    /// Stop after so many commands, whatever the time.
    #[arg(long)]
    pub commands: Option<u64>,
    /// The range of the unit that is read and written, from its beginning. Default: all of it.
    #[arg(long, value_parser = crate::size::parse)]
    pub span: Option<u64>,
    /// Write the whole span once before measuring.
    #[arg(long)]
    pub prefill: bool,
    /// How compressible what is written is, in percent of each 4 KiB.
    #[arg(long, default_value_t = 50)]
    pub compressible: u32,
    /// How many of the 4 KiB blocks that are written are one that was written before, in percent.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..100))]
    pub duplicates: u32,
    /// Share of reads in a mixed load.
    #[arg(long, default_value_t = 65)]
    pub read_percent: u32,
    /// Share of sequential accesses in a mixed load.
    #[arg(long, default_value_t = 40)]
    pub seq_percent: u32,
    /// Count writes that the target refuses because it is full, and go on.
    #[arg(long)]
    pub allow_full: bool,
    /// For a repeatable choice of addresses and data.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Measure this process's CPU time over the same interval: the target's.
    #[arg(long)]
    pub target_pid: Option<u32>,
    /// How to connect.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// The length of a part: a millisecond at least.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (1e-3..=1e6).contains(seconds));
    seconds.ok_or_else(|| format!("{text:?}: write seconds, such as 0.5 or 20"))
}
