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
//! something gets into the open record, and [`read`], how one is answered from the cache or the
//! device ([`fetch`]). What is not in memory of either is asked for first ([`asking`]). Behind them
//! are seven rooms, each with its invariants at its door:
//!
//! * [`edits`]: what a request comes down to,
//! * [`log`]: the record, its commit, its taking effect; replay, and recovery,
//! * [`map`]: the radix trees of volumes, [`chunks`]: the rows that they name, and what is there,
//! * [`key_space`]: the pairs that the layer above keeps, in leaves,
//! * [`space`]: free segments, who waits for them, and winning them back,
//! * [`upkeep`]: checkpoints, passes, tools.
//!
//! [`store`] is what callers see, [`world`] what all threads share, [`wait`] callers that wait on
//! the spot, [`tuning`] the sizes that the simulator makes small.

mod api;
mod apply;
mod change;
mod checkpoint;
mod chunks;
mod edits;
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
mod store;
mod sync;
#[cfg(test)]
mod tests;
mod tuning;
mod upkeep;
mod wait;
mod waiters;
mod world;
mod write;
mod writer;

pub use api::{
    Change, Commit, DiskRead, Durability, MemoryStatus, OpenOptions, PoolStatus, SinkId, Token,
    UpgradeStatus, VolumeChange, VolumeStatus, WrittenBytes,
};
pub use chunks::table_name::TableName;
pub use error::StoreError;
pub use format::Handling;
pub use format::map::Fanout;
pub use log::incarnation::Incarnation;
pub use operation::{Outcome, ReadOperation, Sink, Started};
pub use store::Store;
pub use tuning::Tuning;
pub use upkeep::accounting::{SpaceFigures, SpacePass, SpaceStatus, VolumeSpace};
pub use upkeep::check::{CheckOptions, CheckReport};
pub use upkeep::inspect::{InspectOptions, InspectReport, LostRange, inspect};
pub use upkeep::lost::LostBlocks;
pub use upkeep::maintain::Next;
pub use upkeep::optimize::OptimizeStatus;
pub use upkeep::salvage::{
    LogCut, LossReason, OrphanMap, Salvage, SalvageError, SalvageOptions, SalvageSink,
    SalvageVolume, Salvaged,
};
pub use upkeep::scrub::{DamageList, DamagedRange, Finding, Repair, ScrubStatus, ScrubStep, What};

/// Units of 64 bytes that a node takes on the medium.
const NODE_UNITS: u32 = (format::map::NODE_BYTES as u64 / format::PLACE_UNIT_BYTES) as u32;
