//! What goes on beside hosts' work: checkpoints, passes over the pool, and tools.
//!
//! * `due`, `maintain`: what is to be done next,
//! * `checkpoint`, `checkpointer`, `captures`, `slices`, `above`, `images`, `placer`, `recapture`:
//!   checkpoints; `repairs`, `upgrade`: what they write anew,
//! * `discard`: telling the device what is free,
//! * `optimize`: the background pass of reduction, `scrub`: reading all that is stored,
//! * `check`, `inspect`, `lost`, `salvage`: for administrators and their tools; `part`: passes in
//!   rounds.
//!
//! Invariants:
//! 1. What a checkpoint names is durable before the root names the checkpoint.
//! 2. What the last checkpoint needs stays where it is until the next one is durable.
//! 3. Nothing here holds a lock over I/O that a host waits for.

pub(crate) mod accounting;
pub(crate) mod barrier;
pub(crate) mod check;
pub(crate) mod checkpoint;
pub(crate) mod compact;
pub(crate) mod discard;
pub(crate) mod due;
pub(crate) mod grow;
pub(crate) mod incarnation;
pub(crate) mod inspect;
pub(crate) mod lost;
pub(crate) mod maintain;
pub(crate) mod optimize;
pub(crate) mod part;
pub(crate) mod reclaim;
pub(crate) mod relocate;
pub(crate) mod repairs;
pub(crate) mod salvage;
pub(crate) mod scrub;
pub(crate) mod starving;
pub(crate) mod upgrade;
pub(crate) mod weightless;
