//! The store: log, map, chunk table, checkpoints, recovery, check.
//!
//! It decides, and has no effects of its own: it says which device reads and which one write it
//! wants, and is told when they are done. A front end drives it like this:
//!
//! ```text
//! match store.start(request, token) {
//!     Started::Done(result) => answer(result),
//!     Started::Read(op)     => perform op.reads, then store.resume(op, token) -> Started
//!     Started::Queued       => the answer comes through the sink of `token`
//! }
//! // after a batch of those: whoever finds the writer's role free takes it
//! while let Some(commit) = store.take_commit() {
//!     append commit.frames at commit.place, as durable as commit.persist says
//!     store.finish_commit(commit, result);   // calls the sinks
//! }
//! ```
//!
//! # The house
//! Two stories are told from their beginning to their end: [`write`], how a request that changes
//! something gets into the open record ([`reduce`]: what of it need not be stored), and [`read`],
//! how one is answered from the cache or the device ([`fetch`]). A request that waits for the
//! device is an [`operation`].
//!
//! Behind them are rooms, each with its invariants at its door. A room imports those below it only:
//!
//! | room | what it has |
//! |---|---|
//! | [`opening`] | making and opening a pool: recovery |
//! | [`upkeep`] | the store: the engine with checkpoints, passes, administration and tools |
//! | [`checkpoint`] | what a checkpoint captures, where it goes, and reading it back |
//! | [`writer`] | the one owner of all that changes: who joins the open record, and its commit |
//! | [`apply`] | entries take effect, live and in recovery alike |
//! | [`map`] | the radix trees of volumes |
//! | [`log`] | its tail, records, finding and believing them; superblocks |
//! | [`edits`] | what a request comes down to |
//! | [`world`] | what all threads share, and what only the writer changes |
//! | [`space`] | segments, and what is known of winning some |
//! | [`key_space`] | the pairs that the layer above keeps, in leaves |
//! | [`nodes`] | the nodes of all maps, in memory |
//! | [`chunks`] | rows in tables, the medium and its metadata in memory, reduction |
//!
//! A [`Store`] is what callers see: the [`engine`] that front ends ask and that never waits, and
//! above it what [`upkeep`] does with it, which may. [`status`] says how it stands ([`waiters`]:
//! where the answers of callers go that wait on the spot), [`api`] and [`error`] are the words for
//! it, [`tuning`] the sizes that the simulator makes small.

mod api;
mod apply;
mod checkpoint;
mod chunks;
mod edits;
mod engine;
mod error;
mod fetch;
mod key_space;
mod log;
mod map;
mod nodes;
mod opening;
mod operation;
mod read;
mod reduce;
mod space;
mod status;
mod sync;
#[cfg(test)]
mod tests;
mod tuning;
mod upkeep;
mod waiters;
mod world;
mod write;
mod writer;

pub use api::{
    Change, Commit, DiskRead, DiskReads, Durability, MemoryStatus, OpenOptions, PoolStatus, SinkId,
    Token, UpgradeStatus, VolumeChange, VolumeStatus, WrittenBytes,
};
pub use chunks::table_name::TableName;
pub use engine::Engine;
pub use error::StoreError;
pub use format::Handling;
pub use format::map::Fanout;
pub use log::incarnation::Incarnation;
pub use opening::follower::{Follower, Following};
pub use operation::{Outcome, ReadOperation, Sink, Started};
pub use tuning::Tuning;
pub use upkeep::Store;
pub use upkeep::accounting::{SpaceFigures, SpacePass, SpaceStatus, VolumeSpace};
pub use upkeep::catch_up::CatchingUp;
pub use upkeep::check::{CheckOptions, CheckReport};
pub use upkeep::inspect::{InspectOptions, InspectReport, LostRange, inspect};
pub use upkeep::lost::LostBlocks;
pub use upkeep::maintain::Next;
pub use upkeep::optimize::OptimizeStatus;
pub use upkeep::read_ahead::ReadAhead;
pub use upkeep::salvage::{
    LogCut, LossReason, OrphanMap, Salvage, SalvageError, SalvageOptions, SalvageSink,
    SalvageVolume, Salvaged,
};
pub use upkeep::scrub::{DamageList, DamagedRange, Finding, Repair, ScrubStatus, ScrubStep, What};

/// Units of 64 bytes that a node takes on the medium.
const NODE_UNITS: u32 = (format::map::NODE_BYTES as u64 / format::PLACE_UNIT_BYTES) as u32;
