//! A load that knows what every block must contain: the oracle of the kill -9 test.
//!
//! Blocks of 4 KiB are self-describing (which operation wrote them, and where). Each MiB of the
//! span has at most one operation in flight, so its possible content is always known: what the last
//! acknowledged operation left, or what the one in flight leaves. When the target dies, the result
//! of operations in flight is determined by reading their blocks: each block of a write has the old
//! or the new content, and a copy, a zeroing, an unmap or a COMPARE AND WRITE has happened
//! completely or not at all. Everything is recorded in a journal, so that another process can
//! verify.

mod choose;
mod journal;
mod model;
mod operation;
mod run;
#[cfg(test)]
mod tests;

pub use run::run;

use std::path::PathBuf;

use crate::target::ConnectArgs;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Reads, which are compared immediately.
    Read,
    /// WRITE (16) of 4 to 128 KiB.
    Write,
    /// COMPARE AND WRITE of 4 KiB.
    Compare,
    /// WRITE SAME (16) of zeros.
    Zero,
    /// UNMAP.
    Unmap,
    /// EXTENDED COPY, of parts of a MiB and of whole MiB.
    Copy,
}

/// The arguments of `verify-load`.
#[derive(Clone, Debug, clap::Args)]
pub struct VerifyArgs {
    /// The logical unit. A new journal needs one that has never been written.
    #[arg(long)]
    pub url: String,
    /// The journal of sent and acknowledged operations. An existing one is continued.
    #[arg(long)]
    pub journal: PathBuf,
    /// Run no load: settle unacknowledged operations, and compare the whole span.
    #[arg(long)]
    pub verify: bool,
    /// Bytes of the logical unit to use, from its beginning; for a new journal.
    #[arg(long, value_parser = crate::size::parse, default_value = "256M")]
    pub span: u64,
    /// Seconds to run the load.
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Commands in flight in each session.
    #[arg(long, default_value_t = 8)]
    pub depth: usize,
    /// Sessions.
    #[arg(long, default_value_t = 3)]
    pub sessions: usize,
    /// The kinds of operations. Half of the operations are writes; the other kinds share the rest.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "read,write,compare,zero,unmap,copy"
    )]
    pub kinds: Vec<Kind>,
    /// The seed of the load; for a new journal.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How long to wait for a target that does not answer, in seconds.
    #[arg(long, default_value_t = 60)]
    pub patience_s: u64,
    /// How to connect.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// The results of a load or a verification.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Summary {
    /// Operations acknowledged.
    pub acknowledged: u64,
    /// Reads compared while the load ran.
    pub reads: u64,
    /// Operations that the target deferred.
    pub put_off: u64,
    /// How often all sessions had to reconnect.
    pub reconnects: u64,
    /// Unanswered operations that had happened.
    pub settled_done: u64,
    /// Unanswered operations that had not happened.
    pub settled_not_done: u64,
    /// Unanswered writes of which some blocks had been written.
    pub settled_in_part: u64,
    /// Blocks compared by the final verification.
    pub verified_blocks: u64,
}
