//! Snapshots as they are stored.
//!
//! A record contains only parts of the snapshot's name, so renaming a volume with ten thousand
//! snapshots changes one record.

use block::{SectorCount, VolumeId};

use super::groups::GroupId;
use crate::values::name::{GroupName, Suffix, VolumeName};

/// The maximum number of snapshots of an array, including destroyed ones; all may belong to one
/// volume. Each costs about half a KiB of memory.
pub const SNAPSHOTS_MAX: usize = 100_000;

/// A snapshot as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotRecord {
    /// The volume.
    pub(crate) source: VolumeId,
    pub(crate) suffix: Suffix,
    /// The group with which it was taken, which it does not outlive.
    pub(crate) group: Option<GroupId>,
    /// Whether the retention of its group applies to it.
    pub(crate) retained: bool,
    /// The size of the volume at that time.
    pub(crate) size: SectorCount,
    pub(crate) created_ms: u64,
    /// If it was destroyed separately: when it is eradicated, in milliseconds since 1970.
    pub(crate) eradicate_ms: Option<u64>,
}

impl SnapshotRecord {
    /// Returns what distinguishes it from other snapshots of its volume, in lower case. A group is
    /// represented by its id, which stays when it is renamed.
    pub(crate) fn key(&self) -> String {
        match self.group {
            None => self.suffix.key(),
            Some(group) => group_key(group, &self.suffix.key()),
        }
    }

    /// Returns its name: `VOLUME.SUFFIX`, or `GROUP.SUFFIX.VOLUME` if it was made with a group.
    pub(crate) fn name(&self, volume: &VolumeName, group: Option<&GroupName>) -> String {
        let suffix = &self.suffix;
        match group {
            None => format!("{volume}.{suffix}"),
            Some(group) => format!("{group}.{suffix}.{volume}"),
        }
    }
}

/// Returns the key of a snapshot that was made with a group. It sorts after all suffixes, as `~`
/// does.
pub(crate) fn group_key(group: GroupId, suffix: &str) -> String {
    format!("~{:016x}.{suffix}", group.0)
}
