//! Volumes and their snapshots, from being made to their end.
//!
//! Ids and serial numbers are never used twice. A volume in use by hosts can't be destroyed. What
//! is destroyed keeps its name until it is eradicated. A snapshot never outlives its volume. How
//! much data a volume holds makes no difference to the time of an operation: the store shares it.

mod clones;
mod containers;
mod ends;
mod list;
mod provision;
mod several;
mod snapshots;
mod types;

pub use containers::ContainerInfo;
pub use list::{Looked, SnapshotGlance};
pub use types::{
    NewCopy, NewSnapshots, NewVolume, Placed, SnapshotFilter, SnapshotInfo, SnapshotSource,
    SourceInfo, VolumeInfo, VolumeUpdate,
};

pub(crate) use ends::{ERADICATED_MAX, check_recoverable};
#[cfg(test)]
pub(crate) use several::TRUNCATED_MAX;
