//! The log: its tail and its records on one side, finding and believing them on the other.
//!
//! * `tail`: where it ends, and what a recovery of this moment would read,
//! * `record`: a record before it is written, `in_flight`: one that was sealed, `relocation`:
//!   chunks that move to another place in it, `packed_blocks`: its compressed groups, `columns`:
//!   where these are if segments have several,
//! * `log_reader`, `replay`: finding records, `ahead`: reading on meanwhile, `plausible`: what
//!   can't be right, `copied_header`, `mend`: those that only some devices have,
//! * `checkpointer`: the superblocks, and what outlives a checkpoint for the next one,
//!   `incarnation`: which opening it is.
//!
//! Invariants:
//! 1. LSNs are contiguous: a record follows the one before it, in the segment that that one named.
//! 2. Entries are applied in the order of the log, and each once.
//! 3. No segment that recovery would read is free.

pub(crate) mod ahead;
mod by_successor;
pub(crate) mod checkpointer;
pub(crate) mod columns;
pub(crate) mod copied_header;
pub(crate) mod in_flight;
pub(crate) mod incarnation;
pub(crate) mod log_reader;
pub(crate) mod mend;
pub(crate) mod packed_blocks;
pub(crate) mod plausible;
pub(crate) mod record;
pub(crate) mod relocation;
pub(crate) mod replay;
pub(crate) mod tail;
