//! Snapshots as they are asked for and shown.

use block::VolumeId;

use crate::ObjectSpace;
use crate::name::Suffix;

/// Of what snapshots are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotSource {
    /// Of these volumes, by their names; at most [`crate::GROUP_MEMBERS_MAX`].
    Volumes(Vec<String>),
    /// Of all volumes of this group.
    Group(String),
}

/// Snapshots that are to be made, all of one moment.
#[derive(Clone, Debug)]
pub struct NewSnapshots {
    /// Of what.
    pub source: SnapshotSource,
    /// What they are called behind the name of the volume or the group; else a number.
    pub suffix: Option<Suffix>,
    /// Whether the retention of the group lets them go, as it does those that its schedule took.
    pub apply_retention: bool,
    /// When, in milliseconds since 1970.
    pub created_ms: u64,
}

/// Which snapshots of a list.
#[derive(Clone, Debug, Default)]
pub struct SnapshotFilter {
    /// Those of this volume.
    pub volume: Option<String>,
    /// Those made with this group.
    pub group: Option<String>,
    /// Those that are destroyed, with their volume or by themselves, or the others; `None`: both.
    pub destroyed: Option<bool>,
}

/// A snapshot, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its id, for ever.
    pub id: VolumeId,
    /// `VOLUME.SUFFIX`, or `GROUP.SUFFIX.VOLUME` if it was made with a group.
    pub name: String,
    /// The name of its volume.
    pub volume: String,
    /// The id of its volume.
    pub volume_id: VolumeId,
    /// The name of the group that it was made with.
    pub group: Option<String>,
    /// What stands behind the name of the volume or the group.
    pub suffix: String,
    /// The size of the volume at that moment.
    pub size_bytes: u64,
    /// Its serial number: 24 upper-case hex digits.
    pub serial: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// Bytes of it that hosts had written and not unmapped.
    pub mapped_bytes: u64,
    /// What is stored for it; `None` before the first pass of accounting has seen it.
    pub space: Option<ObjectSpace>,
    /// If it is destroyed, or its volume is: when it is eradicated, in milliseconds since 1970.
    pub eradicate_ms: Option<u64>,
}
