//! Volume groups and pods as they are stored. They have no lists of their volumes: the names of
//! volumes begin with that of the container.

use block::VolumeLimits;

use crate::container_kind::ContainerKind;
use crate::values::container::ContainerName;

/// The maximum number of volume groups, and of pods, destroyed ones included.
pub const CONTAINERS_MAX: usize = 1_000;
/// The maximum number of volumes of a volume group or a pod, destroyed ones included: one commit
/// renames or destroys all of them.
pub const CONTAINER_VOLUMES_MAX: usize = 500;

/// The id of a volume group or a pod, which is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ContainerId {
    pub(crate) kind: ContainerKind,
    pub(crate) number: u64,
}

/// A volume group or a pod as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) name: ContainerName,
    pub(crate) created_ms: u64,
    /// If it is destroyed: when it is eradicated, in milliseconds of the array's time. The volumes
    /// that were destroyed with it have the same.
    pub(crate) eradicate_ms: Option<u64>,
    /// The limits for all volumes together. Pods have none.
    pub(crate) limits: VolumeLimits,
}
