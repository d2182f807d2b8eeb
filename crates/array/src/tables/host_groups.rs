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
    /// The next free id. Releases may refer to a deleted group, so its id is not reused.
    pub(crate) next: u64,
}

impl HostGroups {
    /// Returns the next free id.
    pub(crate) fn next_id(&self) -> HostGroupId {
        HostGroupId(self.next.max(1))
    }

    /// Records that something refers to an id.
    pub(crate) fn note_id(&mut self, id: HostGroupId) {
        self.next = self.next.max(id.0.saturating_add(1));
    }
}
