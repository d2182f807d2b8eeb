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
//! The way of a write (`write`), top to bottom: [`Store::start`] plans an *edit* (`edit`), the
//! front end fingerprints its blocks (`classify`), the edit joins the open record (`writer`,
//! `record`), the record is written (`commit`), its entries are applied (`apply`) to the map
//! (`map`) and the tables (`table`). The way of a read (`read`): `walk` down the map, `fetch` from
//! cache or device. What is not in memory of either is asked for first (`asking`).
//! `checkpoint` and `recovery` are the two ends of a crash; `check` proves that all adds up, and
//! `scrub` that all bytes are what was written; `salvage` gets out what is left where they are not.
//! `preload` sees to it that a damaged one costs no more than the requests that need it.

mod above;
mod accounting;
mod api;
mod apply;
mod asking;
mod barrier;
mod bring;
mod bulk;
mod captures;
mod change;
mod check;
mod checkpoint;
mod checkpointer;
mod classify;
mod commit;
mod compact;
mod compare;
mod comparisons;
mod copies;
mod counts;
mod cursor;
mod dedup;
mod due;
mod edit;
mod elsewhere;
mod estimate;
mod extents;
mod fetch;
mod gather;
mod grafts;
mod groups;
mod grow;
mod holes;
mod ids;
mod images;
mod incarnation;
mod index;
mod inspect;
mod join;
mod log_reader;
mod lossy;
mod lost;
mod maintain;
mod map;
mod medium;
mod memory;
mod need;
mod node_slots;
mod nodes;
mod optimize;
mod origins;
mod pace;
mod pack;
mod pages;
mod part;
mod placer;
mod places;
mod plans;
mod plausible;
mod preload;
mod put;
mod quiet;
mod read;
mod readers;
mod recapture;
mod reclaim;
mod record;
mod recovery;
mod relief;
mod relocate;
mod repairs;
mod replay;
mod rest;
mod revive;
mod room;
mod rotten;
mod salvage;
mod scrub;
mod segments;
mod slices;
mod stage;
mod starved;
mod status;
mod store;
mod sync;
mod table;
mod take;
mod tally;
#[cfg(test)]
mod tests;
mod tuning;
mod unflushed;
mod unplaced;
mod upgrade;
mod value;
mod verify;
mod visit;
mod volumes;
mod wait;
mod walk;
mod weightless;
mod world;
mod write;
mod writer;

pub use accounting::{SpaceFigures, SpacePass, SpaceStatus, VolumeSpace};
pub use api::{
    Change, Commit, DiskRead, Durability, MemoryStatus, OpenOptions, Outcome, PoolStatus,
    ReadOperation, Sink, SinkId, Started, StoreError, Token, UpgradeStatus, VolumeChange,
    VolumeStatus, WrittenBytes,
};
pub use check::{CheckOptions, CheckReport};
pub use format::Handling;
pub use format::map::Fanout;
pub use incarnation::Incarnation;
pub use inspect::{InspectOptions, InspectReport, LostRange, inspect};
pub use lost::LostBlocks;
pub use maintain::Next;
pub use optimize::OptimizeStatus;
pub use salvage::{
    LogCut, LossReason, OrphanMap, Salvage, SalvageError, SalvageOptions, SalvageSink,
    SalvageVolume, Salvaged,
};
pub use scrub::{
    DamageList, DamagedRange, Finding, Repair, ScrubStatus, ScrubStep, TableName, What,
};
pub use store::Store;
pub use tuning::Tuning;

/// Units of 64 bytes that a node takes on the medium.
const NODE_UNITS: u32 = (format::map::NODE_BYTES as u64 / format::PLACE_UNIT_BYTES) as u32;
