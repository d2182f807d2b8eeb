//! Snapshots as they are requested and shown.

use block::VolumeId;

use crate::ObjectSpace;
use crate::name::Suffix;

/// What to snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotSource {
    /// These volumes, by their names; at most [`crate::GROUP_MEMBERS_MAX`].
    Volumes(Vec<String>),
    /// All volumes of this group.
    Group(String),
}

/// Consistent snapshots to make.
#[derive(Clone, Debug)]
pub struct NewSnapshots {
    /// What to snapshot.
    pub source: SnapshotSource,
    /// The part of their names after the volume or the group; by default a number.
    pub suffix: Option<Suffix>,
    /// Whether the retention of the group applies to them, as to those of its schedule.
    pub apply_retention: bool,
    /// The time, in milliseconds since 1970.
    pub created_ms: u64,
}

/// Which snapshots to list.
#[derive(Clone, Debug, Default)]
pub struct SnapshotFilter {
    /// Those of this volume.
    pub volume: Option<String>,
    /// Those made with this group.
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
    /// The name of the group that it was made with.
    pub group: Option<String>,
    /// The part of its name after the volume or the group.
    pub suffix: String,
    /// The size of the volume when it was made.
    pub size_bytes: u64,
    /// Its serial number: 24 upper-case hex digits.
    pub serial: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// Bytes of it that hosts had written and not unmapped.
    pub mapped_bytes: u64,
    /// Its stored data; `None` until a pass of accounting has covered it.
    pub space: Option<ObjectSpace>,
    /// If it is destroyed, or its volume is: when it is eradicated, in milliseconds since 1970.
    pub eradicate_ms: Option<u64>,
}
