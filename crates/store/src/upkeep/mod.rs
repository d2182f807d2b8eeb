//! The store: the engine with what goes on beside hosts' work. Checkpoints, passes over the pool,
//! what an administrator changes, and tools.
//!
//! * `store`: the engine and where the passes are, `change`: what an administrator changes, `wait`:
//!   callers that wait on the spot,
//! * `due`, `maintain`: what is to be done next, `starving`: for what waits for space,
//! * `checkpoint`, `barrier`: writing checkpoints, `repairs`, `upgrade`: what they write anew,
//! * `reclaim`, `victim`, `relocate`, `compact`, `weightless`: winning segments back, `grow`: more
//!   of them, `discard`: giving their space back to the device, `accounting`: whose the space is,
//! * `catch_up`: giving a device what it lacks,
//! * `optimize`: the background pass of reduction, `scrub`: reading all that is stored,
//! * `check`, `inspect`, `lost`, `salvage`: for administrators and their tools; `part`: passes in
//!   rounds, `incarnation`: which opening it is.
//!
//! Invariant: nothing here holds a lock over I/O that a host waits for.

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
