//! The log: its tail and its records; finding and validating records.
//!
//! * `tail`: where it ends, and what a recovery would read now,
//! * `record`: a record before it is written; `in_flight`: a sealed one; `relocation`: chunks that
//!   move to another location in the log; `packed_blocks`: its compressed groups; `columns`: their
//!   location in segments with several columns,
//! * `log_reader`, `replay`: finding records; `by_successor`: by their copy in the next one;
//!   `log_end`: whether there is none; `ahead`: reading ahead; `plausible`: detecting impossible
//!   values; `copied_header`, `mend`: records that only some devices have,
//! * `checkpointer`: the superblocks, and state from one checkpoint to the next; `incarnation`: the
//!   number of the opening.
//!
//! Invariants:
//! 1. LSNs are contiguous: a record follows the previous one, or is in the segment that that one
//!    names as the next.
//! 2. Entries are applied in log order, each once.
//! 3. No segment that recovery would read is free.

pub(crate) mod ahead;
mod by_successor;
pub(crate) mod checkpointer;
pub(crate) mod columns;
pub(crate) mod copied_header;
pub(crate) mod in_flight;
pub(crate) mod incarnation;
mod log_end;
pub(crate) mod log_reader;
pub(crate) mod mend;
pub(crate) mod packed_blocks;
pub(crate) mod plausible;
pub(crate) mod record;
pub(crate) mod relocation;
pub(crate) mod replay;
pub(crate) mod tail;
