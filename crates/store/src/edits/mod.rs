//! What a request that changes something comes down to, before it is in the log.
//!
//! * `edit`, `put`, `classify`, `compare`: what becomes of which blocks, `entries`: what the log
//!   says of that,
//! * `copies`, `stage`, `rest`: what takes more than one record,
//! * `take`, `grafts`, `origins`: what copies take from their sources, and what that changes for
//!   others,
//! * `preload`: what an edit will touch is in memory before it is taken, `foresee`: what an entry
//!   of the log will touch is asked for before it is applied.
//!
//! Invariants:
//! 1. An edit that is in a record can be applied without I/O, and does not fail.
//! 2. An edit that depends on what it has read is refused, or begun anew, if that has changed.

pub(crate) mod classify;
pub(crate) mod compare;
pub(crate) mod copies;
pub(crate) mod edit;
pub(crate) mod entries;
pub(crate) mod foresee;
pub(crate) mod grafts;
pub(crate) mod origins;
pub(crate) mod preload;
pub(crate) mod put;
pub(crate) mod rest;
pub(crate) mod stage;
pub(crate) mod take;
