//! Space: which segments are free, what they are free for, and winning them back.
//!
//! * `segments`, `tally`: what of each is live, `held`: what is free of which the device does not
//!   know, `holes`: what of metadata segments is not,
//! * `row_pages`, `segment_table`: the pages that rows of segments are stored in,
//! * `room`, `next_checkpoint`, `estimate`, `need`: what free segments are for, `supply`: what was
//!   done to win some, `starved`, `pace`, `revive`: who waits
//!   for them, and goes on, `relief`: checkpoints in the midst of a recovery,
//! * `reclaim`, `relocate`, `compact`: winning segments back, `grow`: more of them,
//! * `readers`: who may still read what is freed, `accounting`: whose the space is.
//!
//! Invariants:
//! 1. A segment is used again only when nothing durable names what is in it, and no reader may
//!    still read it.
//! 2. What makes space has room for itself: a full pool never stops (`room`).

pub(crate) mod held;
pub(crate) mod need;
pub(crate) mod next_checkpoint;
pub(crate) mod pace;
pub(crate) mod readers;
pub(crate) mod row_pages;
pub(crate) mod segments;
pub(crate) mod supply;
pub(crate) mod tally;
