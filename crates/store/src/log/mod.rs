//! The log: its tail, records in flight and sealing on one side, replay and recovery on the other.
//!
//! * `tail`: where it ends, `queues`: who waits to join, `writer`: the one owner of both, `record`: a record before it is written, `commit`:
//!   sealing it and what follows, `elsewhere`: a record that the device refuses, `quiet`: the log
//!   at rest,
//! * `unflushed`, `barrier`: what no flush has covered yet (`durability = "flush"`),
//! * `apply`: its entries take effect, live and in recovery alike,
//! * `recovery`, `replay`, `log_reader`, `incarnation`: opening a pool; `lossy`, `plausible`: over
//!   what can't be read, and what can't be right.
//!
//! Invariants:
//! 1. LSNs are contiguous: a record follows the one before it, in the segment that that one named.
//! 2. Entries are applied in the order of the log, and each once.
//! 3. A request is acknowledged when its record and all before it are durable, or, with
//!    `durability = "flush"`, when they are written.

pub(crate) mod checkpointer;
pub(crate) mod in_flight;
pub(crate) mod incarnation;
pub(crate) mod log_reader;
pub(crate) mod plausible;
pub(crate) mod record;
pub(crate) mod relocation;
pub(crate) mod replay;
pub(crate) mod tail;
