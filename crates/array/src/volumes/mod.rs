//! Volumes and their snapshots, from being made to their end.

mod clones;
mod ends;
mod list;
mod provision;
mod several;
mod snapshots;
mod types;

pub use list::{Looked, SnapshotGlance};
pub use types::{
    NewCopy, NewSnapshots, NewVolume, SnapshotFilter, SnapshotInfo, SnapshotSource, SourceInfo,
    VolumeInfo, VolumeUpdate,
};

pub(crate) use ends::{ERADICATED_MAX, check_recoverable};
#[cfg(test)]
pub(crate) use several::TRUNCATED_MAX;
