//! Host groups as they are stored.

use crate::values::name::HostGroupName;

/// The maximum number of host groups of an array.
pub const HOST_GROUPS_MAX: usize = 1_000;

/// The id of a host group. It is stored, so that a renamed group keeps its hosts and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostGroupId(pub(crate) u64);

/// A host group as it is stored. The records of hosts contain the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostGroup {
    pub(crate) name: HostGroupName,
    pub(crate) created_ms: u64,
}
