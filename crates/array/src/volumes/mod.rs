//! Volumes and their snapshots, from creation to eradication.
//!
//! Ids and serial numbers are never reused. A volume that is connected to hosts can't be destroyed.
//! A destroyed object keeps its name until it is eradicated. A snapshot never outlives its volume.
//! The time of an operation does not depend on the amount of data in a volume: the store shares it.

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
