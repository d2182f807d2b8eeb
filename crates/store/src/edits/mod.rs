//! Planning a request that changes something, before it is in the log.
//!
//! * `edit`, `put`, `classify`, `compare`: what each block becomes; `entries`: the log entries for
//!   that,
//! * `copies`, `stage`, `rest`: requests that need more than one record,
//! * `take`, `grafts`, `origins`: what copies take from their sources, and the effect on others,
//! * `preload`: loading what an edit will touch before it is accepted; `foresee`: requesting what a
//!   log entry will touch before it is applied.
//!
//! Invariants:
//! 1. An edit in a record can be applied without I/O, and does not fail.
//! 2. An edit that depends on what it has read is refused, or planned again, if that has changed.

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
