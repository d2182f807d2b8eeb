//! Space: which segments are free, and what is known of winning some.
//!
//! * `segments`, `tally`: what of each is live, `row_pages`: the pages that their rows are stored
//!   in, `undiscarded`: what is free and the device still keeps,
//! * `need`: what space is needed for, `supply`: what was done to win some, `pace`: how fast hosts
//!   may write meanwhile, `next_checkpoint`: the room for that,
//! * `readers`: who may still read what is freed.
//!
//! Who waits for space is the writer's, winning it back upkeep's.
//!
//! Invariants:
//! 1. A segment is used again only when nothing durable names what is in it, and no reader may
//!    still read it.
//! 2. What makes space has room for itself: a full pool never stops (`writer::room`).

pub(crate) mod need;
pub(crate) mod next_checkpoint;
pub(crate) mod pace;
pub(crate) mod readers;
pub(crate) mod row_pages;
pub(crate) mod segments;
pub(crate) mod supply;
pub(crate) mod tally;
pub(crate) mod undiscarded;
pub(crate) mod widths;
