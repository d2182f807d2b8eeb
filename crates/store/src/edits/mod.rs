//! What a request that changes something comes down to, before it is in the log.
//!
//! * `edit`, `put`, `classify`, `compare`: what becomes of which blocks, `join`: how it gets into
//!   the open record,
//! * `copies`, `stage`, `bulk`, `rest`, `places`: what takes more than one record,
//! * `preload`, `plans`: what an edit will touch is in memory before it is taken, and stays there,
//! * `comparisons`: the COMPARE AND WRITEs of the last minute, `change`: what an administrator
//!   changes.
//!
//! Invariants:
//! 1. An edit that is in a record can be applied without I/O, and does not fail.
//! 2. An edit that depends on what it has read is refused, or begun anew, if that has changed.

pub(crate) mod classify;
pub(crate) mod compare;
pub(crate) mod copies;
pub(crate) mod edit;
pub(crate) mod entries;
pub(crate) mod grafts;
pub(crate) mod origins;
pub(crate) mod preload;
pub(crate) mod put;
pub(crate) mod rest;
pub(crate) mod stage;
pub(crate) mod take;
