//! Volume groups as they are stored. A group has no list of its volumes: their names begin with its
//! own.

use crate::values::name::VolumeGroupName;

/// The most volume groups, destroyed ones included.
pub const VOLUME_GROUPS_MAX: usize = 1_000;
/// The most volumes of a volume group, destroyed ones included: one commit renames or destroys all
/// of them.
pub const VOLUME_GROUP_VOLUMES_MAX: usize = 500;

/// The id of a volume group, which is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct VolumeGroupId(pub(crate) u64);

/// A volume group as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeGroup {
    pub(crate) name: VolumeGroupName,
    pub(crate) created_ms: u64,
    /// If it is destroyed: when it is eradicated, in milliseconds of the array's time. The volumes
    /// that were destroyed with it have the same.
    pub(crate) eradicate_ms: Option<u64>,
}
