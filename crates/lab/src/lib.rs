//! The lab: what hosts do to an array, done to any target that speaks iSCSI, through libiscsi.
//!
//! - [`datastore`]: a cluster file system that several hosts use at a time, as they do VMFS.
//! - [`load`]: a steady load for the benchmark, measured.
//! - [`deploy`]: a template deployed many times, by host reads and writes and by EXTENDED COPY.
//! - [`engine`], [`host`]: what hosts run in, and hosts with their paths, commands and counters.
//! - [`datastore`], [`disk`], [`mover`], [`vm`], [`guest`]: what ESXi makes of a unit, and
//!   what runs on it.
//! - [`scenario`]: what the papers measured, done again.
//! - [`top`]: what the hosts of a running lab count, as esxtop shows it.
//! - [`figures`]: what the papers publish. [`outcome`]: what scenarios measure beside it.
//! - [`sheet`]: the reports of that, and two of them side by side.
//! - [`verify`]: a load that knows what every block must hold, for targets that are killed.
//!
//! Everything runs in one thread over any number of sessions: a host's share of two cores must
//! stay small beside the target's.

pub mod copy;
pub mod datastore;
pub mod deploy;
pub mod disk;
pub mod engine;
pub mod figures;
pub mod fill;
pub mod guest;
pub mod host;
pub mod load;
pub mod mover;
pub mod number;
pub mod outcome;
pub mod process;
pub mod random;
pub mod report;
pub mod scenario;
pub mod sheet;
pub mod size;
pub mod target;
pub mod top;
pub mod verify;
pub mod vm;
