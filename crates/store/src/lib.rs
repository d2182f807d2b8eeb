//! The store: log, map, chunk table, checkpoints, recovery, check.
//!
//! It makes decisions, and performs no I/O for requests itself: it returns the device reads and the
//! one write that it needs, and the caller reports their completion. A front end drives it like
//! this:
//!
//! ```text
//! match store.start(request, token) {
//!     Started::Done(result) => answer(result),
//!     Started::Read(op)     => perform op.reads, then store.resume(op, token) -> Started
//!     Started::Queued       => the answer comes through the sink of `token`
//! }
//! // after a batch of requests: whoever finds the writer's role free takes it
//! while let Some(commit) = store.take_commit() {
//!     append commit.frames at commit.place, as durable as commit.persist says
//!     store.finish_commit(commit, result);   // calls the sinks
//! }
//! ```
//!
//! # Modules
//! Two modules follow a request from beginning to end: [`write`], how a change gets into the open
//! record ([`reduce`]: which of its data need not be stored), and [`read`], how a read is served
//! from the cache or the device ([`fetch`]). A request that waits for the device is an
//! [`operation`].
//!
//! Below them are layers; the head of each states its invariants. A layer imports only those below
//! it:
//!
//! | layer | content |
//! |---|---|
//! | [`opening`] | creating and opening a pool: recovery |
//! | [`upkeep`] | the store: the engine with checkpoints, passes, administration and tools |
//! | [`checkpoint`] | what a checkpoint captures, where it is written, and reading it back |
//! | [`writer`] | the only owner of mutable state: how jobs join the open record, its commit |
//! | [`apply`] | applying entries, live and in recovery alike |
//! | [`map`] | the radix trees of volumes |
//! | [`log`] | the log tail; records, finding and validating them; superblocks |
//! | [`edits`] | the steps that a request consists of |
//! | [`world`] | state that all threads share, and state that only the writer changes |
//! | [`space`] | segments, and the state of reclaim |
//! | [`key_space`] | the key-value pairs of the layer above, in leaves |
//! | [`nodes`] | the nodes of all maps, in memory |
//! | [`chunks`] | rows in tables, the medium and its cached metadata, reduction |
//!
//! Callers use a [`Store`]: the [`engine`], which front ends call and which never blocks, and above
//! it [`upkeep`], which may. [`status`] reports its state ([`waiters`] collects the answers of
//! callers that block), [`api`] and [`error`] have the types, [`tuning`] the sizes that the
//! simulator reduces, [`handover`] what one process passes on to the next.

mod api;
mod apply;
mod checkpoint;
mod chunks;
mod edits;
mod engine;
mod error;
mod fetch;
mod handover;
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
pub use handover::{LogEnd, NoLogEnd};
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
