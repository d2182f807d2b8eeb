//! Volumes and snapshots as they are requested and shown.

use block::{LogicalBlockSize, Offload, Offloads, VolumeId, VolumeLimits};

use crate::container_kind::ContainerKind;
use crate::pool::ObjectSpace;
use crate::values::container::ContainerName;
use crate::values::limits::LimitsChange;
use crate::values::name::{Suffix, VolumeName};
use crate::values::reduction::{Reduction, ReductionChange};

/// A volume to create.
#[derive(Clone, Debug)]
pub struct NewVolume {
    /// Its name, which no other volume has.
    pub name: VolumeName,
    /// Its size: a multiple of 4096, from 4096 to 64 TiB.
    pub size_bytes: u64,
    /// Its logical block.
    pub logical_block: LogicalBlockSize,
    /// How data written to it is reduced.
    pub reduction: Reduction,
    /// Limits on the I/O of hosts.
    pub limits: VolumeLimits,
    /// The time, in milliseconds since 1970.
    pub created_ms: u64,
}

/// A change to a volume; `None` leaves a setting as it is.
#[derive(Clone, Debug, Default)]
pub struct VolumeUpdate {
    /// A new name, including that of a volume group or a pod to move it into one.
    pub name: Option<VolumeName>,
    /// The container to move it into or out of; its own name stays.
    pub placed: Option<Placed>,
    /// A new size.
    pub size_bytes: Option<u64>,
    /// Whether a smaller size may discard data.
    pub truncate: bool,
    /// Offloads to switch on or off.
    pub offloads: Vec<(Offload, bool)>,
    /// How data written from now on is reduced.
    pub reduction: ReductionChange,
    /// Limits on the I/O of hosts.
    pub limits: LimitsChange,
}

/// The container that a volume is moved into or out of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// Into this volume group or pod.
    Within(ContainerName),
    /// Out of a container of this kind: a volume in one of the other kind stays there.
    OutOf(ContainerKind),
}

impl Placed {
    /// Returns the new name of a volume.
    pub(crate) fn name_of(&self, volume: &VolumeName) -> VolumeName {
        match self {
            Self::Within(container) => volume.within(Some(container)),
            Self::OutOf(kind) if volume.container().is_some_and(|(of, _)| of == *kind) => {
                volume.within(None)
            }
            Self::OutOf(_) => volume.clone(),
        }
    }
}

/// Volumes to create or overwrite from another volume or a snapshot.
#[derive(Clone, Debug)]
pub struct NewCopy {
    /// The volume or snapshot to copy.
    pub source: String,
    /// The names of the volumes.
    pub names: Vec<VolumeName>,
    /// Whether existing ones are overwritten instead of refused.
    pub overwrite: bool,
    /// The limits of each new one.
    pub limits: VolumeLimits,
    /// The time, in milliseconds since 1970.
    pub created_ms: u64,
}

/// The object that a volume was created from, or last overwritten with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceInfo {
    /// The id of the volume or the snapshot, which may be gone.
    pub id: VolumeId,
    /// Its current name; if it is gone, its name at that time.
    pub name: String,
}

/// A volume, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Its id, which never changes.
    pub id: VolumeId,
    /// Its current name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its logical block.
    pub logical_block: LogicalBlockSize,
    /// Its serial number: 24 upper-case hex digits.
    pub serial: String,
    /// Its NAA designator, as hosts show it: `naa.6…`.
    pub naa: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// Bytes that hosts have written and not unmapped since.
    pub mapped_bytes: u64,
    /// The part of them that is stored data, not zeros or a pattern, before sharing.
    pub data_bytes: u64,
    /// Its stored data; `None` until a pass of accounting has covered it.
    pub space: Option<ObjectSpace>,
    /// Stored bytes that only one of its snapshots refers to, as far as the last pass covers them.
    pub snapshots_bytes: u64,
    /// The offloads that are on in the volume's own setting.
    pub offloads: Offloads,
    /// The offloads in effect: on in both the volume's and the array's settings.
    pub offloads_in_effect: Offloads,
    /// How data written to it is reduced.
    pub reduction: Reduction,
    /// Limits on the I/O of hosts.
    pub limits: VolumeLimits,
    /// The object that it was created from, unless it was created empty.
    pub source: Option<SourceInfo>,
    /// The number of hosts to which it is connected, directly or through their groups.
    pub connection_count: usize,
    /// The number of its snapshots that are not destroyed.
    pub snapshot_count: usize,
    /// If it is destroyed: when it is eradicated, in milliseconds since 1970.
    pub eradicate_ms: Option<u64>,
}

/// The volumes to snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotSource {
    /// These volumes, by their names; at most [`crate::GROUP_MEMBERS_MAX`].
    Volumes(Vec<String>),
    /// All volumes of this group.
    Group(String),
}

/// Consistent snapshots to create.
#[derive(Clone, Debug)]
pub struct NewSnapshots {
    /// The volumes to snapshot.
    pub source: SnapshotSource,
    /// The part of their names after the volume or the group; by default a number.
    pub suffix: Option<Suffix>,
    /// Whether the retention of the group applies to them, as to those of its schedule.
    pub apply_retention: bool,
    /// The time, in milliseconds since 1970.
    pub created_ms: u64,
}

/// A filter for snapshots.
#[derive(Clone, Debug, Default)]
pub struct SnapshotFilter {
    /// Those of this volume.
    pub volume: Option<String>,
    /// Those taken with this group.
    pub group: Option<String>,
    /// Only destroyed ones, separately or with their volume, or only the others; `None`: both.
    pub destroyed: Option<bool>,
}

/// A snapshot, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its id, which never changes.
    pub id: VolumeId,
    /// `VOLUME.SUFFIX`, or `GROUP.SUFFIX.VOLUME` if it was made with a group.
    pub name: String,
    /// The name of its volume.
    pub volume: String,
    /// The id of its volume.
    pub volume_id: VolumeId,
    /// The name of the group with which it was taken.
    pub group: Option<String>,
    /// The part of its name after the volume or the group.
    pub suffix: String,
    /// The size of the volume at that time.
    pub size_bytes: u64,
    /// Its serial number: 24 upper-case hex digits.
    pub serial: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// Bytes of it that hosts had written and not unmapped.
    pub mapped_bytes: u64,
    /// Its stored data; `None` until a pass of accounting has covered it.
    pub space: Option<ObjectSpace>,
    /// If it is destroyed, or its volume is: when it is eradicated, in milliseconds since 1970.
    pub eradicate_ms: Option<u64>,
}
