//! Host groups in memory, with what is derived from them.

use std::collections::{BTreeMap, BTreeSet};

use block::VolumeId;

use crate::objects::host_groups::{HostGroup, HostGroupId};
use crate::objects::hosts::HostId;

/// A host group with what is derived from it.
pub(crate) struct HostGroupEntry {
    pub(crate) record: HostGroup,
    pub(crate) hosts: BTreeSet<HostId>,
    /// The volumes connected to it, and so to each of its hosts.
    pub(crate) luns: BTreeMap<u16, VolumeId>,
    /// The generation in which the volumes that its hosts see by it changed last.
    pub(crate) generation: u64,
}

/// All host groups.
#[derive(Default)]
pub(crate) struct HostGroups {
    pub(crate) by_id: BTreeMap<HostGroupId, HostGroupEntry>,
    /// By name in lower case.
    pub(crate) names: BTreeMap<String, HostGroupId>,
}

impl HostGroups {
    /// Returns the next free id. Nothing refers to a deleted group, so its id may be reused.
    pub(crate) fn next_id(&self) -> HostGroupId {
        HostGroupId(self.by_id.last_key_value().map_or(1, |(last, _)| last.0.saturating_add(1)))
    }
}
