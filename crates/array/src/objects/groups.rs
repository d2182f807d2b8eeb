//! Groups of volumes as they are stored.

use block::VolumeId;

use super::host_groups::HostGroupId;
use super::hosts::HostId;
use crate::values::name::GroupName;
use crate::values::retention::Retention;
use crate::values::schedule::SnapshotSchedule;

/// The maximum number of groups of an array.
pub const GROUPS_MAX: usize = 1_000;
/// The maximum number of volumes that are snapshotted together: their records must fit one commit
/// of the store.
pub const GROUP_MEMBERS_MAX: usize = 512;

/// The id of a group. It is stored, so that a renamed group keeps its snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId(pub(crate) u64);

/// The members of a group: only one of these kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members {
    /// Volumes, including destroyed ones. Eradicated ones are not removed from the record: their
    /// ids are never used again, and they are dropped when it is loaded.
    pub(crate) volumes: Vec<VolumeId>,
    /// Hosts, and so the volumes connected to them. They can't be deleted while they are members.
    pub(crate) hosts: Vec<HostId>,
    /// Host groups, like hosts.
    pub(crate) host_groups: Vec<HostGroupId>,
}

/// A group as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: GroupName,
    pub(crate) members: Members,
    /// The number for the next snapshots without a given suffix.
    pub(crate) next_suffix: u64,
    pub(crate) created_ms: u64,
    pub(crate) schedule: SnapshotSchedule,
    /// When the schedule's next snapshots are due; meaningless while it is off.
    pub(crate) next_ms: u64,
    pub(crate) retention: Retention,
    /// If it is destroyed: when it is eradicated, in milliseconds since 1970.
    pub(crate) eradicate_ms: Option<u64>,
}

impl Group {
    /// Returns a group without members and schedule.
    pub(crate) fn new(name: GroupName, created_ms: u64) -> Self {
        Self {
            name,
            members: Members::default(),
            next_suffix: 1,
            created_ms,
            schedule: SnapshotSchedule::default(),
            next_ms: 0,
            retention: Retention::default(),
            eradicate_ms: None,
        }
    }

    /// Removes a volume from the members.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.members.volumes.retain(|id| *id != volume);
    }
}
