//! The lab: hosts' loads for any target that speaks iSCSI, through libiscsi.
//!
//! - [`datastore`]: a cluster file system that several hosts use at a time, like VMFS.
//! - [`load`]: a steady load for the benchmark, measured.
//! - [`deploy`]: a template deployed many times, by host reads and writes and by EXTENDED COPY.
//! - [`engine`], [`host`]: the runtime of hosts, and hosts with their paths, commands and counters.
//! - [`datastore`], [`disk`], [`mover`], [`vm`], [`guest`]: what ESXi does with a unit, and what
//!   runs on it.
//! - [`scenario`]: what the papers measured, repeated.
//! - [`top`]: the counters of the hosts of a running lab, as esxtop shows them.
//! - [`figures`]: the published figures. [`outcome`]: what scenarios measure to compare with them.
//! - [`sheet`]: reports of that, and comparisons of two reports.
//! - [`verify`]: a load that knows what every block must contain, for targets that are killed.
//!
//! Everything runs in one thread over any number of sessions, because a host must use little of two
//! cores compared with the target.

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
