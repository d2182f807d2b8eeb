//! Space: which segments are free, and the state of reclaim.
//!
//! * `segments`, `tally`: the live bytes of each segment; `row_pages`: the pages in which their
//!   rows are stored; `undiscarded`: free segments that were not discarded,
//! * `need`: what space is needed for; `supply`: what was done to free some; `pace`: how fast hosts
//!   may write meanwhile; `next_checkpoint`: the room for that,
//! * `readers`: who may still read what is freed.
//!
//! The writer has the jobs that wait for space; upkeep reclaims it.
//!
//! Invariants:
//! 1. A segment is reused only when nothing durable refers to its content, and no reader may still
//!    read it.
//! 2. Operations that free space have space reserved for themselves: a full pool never gets stuck
//!    (`writer::room`).

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
