//! The store: the engine, and everything except hosts' requests: checkpoints, passes over the pool,
//! administration, and tools.
//!
//! * `store`: the engine and the state of passes; `change`: administrative changes; `wait`: callers
//!   that block,
//! * `due`, `maintain`: what to do next; `starving`: for jobs that wait for space,
//! * `checkpoint`, `barrier`: writing checkpoints; `repairs`, `upgrade`: what they rewrite,
//! * `reclaim`, `victim`, `relocate`, `compact`, `weightless`: reclaiming segments; `grow`: adding
//!   some; `discard`: returning their space to the device; `accounting`: whose space is used,
//! * `catch_up`: copying to a device what it lacks,
//! * `optimize`: the background pass of reduction; `scrub`: verifying everything stored,
//! * `check`, `inspect`, `lost`, `salvage`: for administrators and their tools; `part`: passes in
//!   rounds; `incarnation`: the number of the opening.
//!
//! Invariant: nothing here holds a lock during I/O that a host waits for.

pub(crate) mod accounting;
pub(crate) mod barrier;
pub(crate) mod catch_up;
pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod discard;
pub(crate) mod due;
pub(crate) mod grow;
pub(crate) mod incarnation;
pub(crate) mod inspect;
pub(crate) mod laying;
pub(crate) mod lost;
pub(crate) mod maintain;
pub(crate) mod optimize;
pub(crate) mod part;
pub(crate) mod read_ahead;
pub(crate) mod reclaim;
pub(crate) mod relocate;
pub(crate) mod repairs;
pub(crate) mod salvage;
pub(crate) mod scrub;
pub(crate) mod starving;
mod store;
pub(crate) mod upgrade;
mod victim;
mod wait;
pub(crate) mod weightless;

pub use store::Store;
