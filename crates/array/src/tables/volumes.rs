//! A volume in memory, with what is derived from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::{VolumeAttributes, VolumeId};

use crate::objects::groups::GroupId;
use crate::objects::host_groups::HostGroupId;
use crate::objects::hosts::HostId;
use crate::objects::snapshots::SnapshotRecord;
use crate::objects::volumes::VolumeRecord;

/// A volume with what is derived from it.
pub(crate) struct VolumeEntry {
    pub(crate) record: VolumeRecord,
    pub(crate) attributes: Arc<VolumeAttributes>,
    /// Its private connections.
    pub(crate) hosts: BTreeMap<HostId, u16>,
    /// Its shared connections.
    pub(crate) host_groups: BTreeMap<HostGroupId, u16>,
    /// Its snapshots, including destroyed ones, by the parts of their names without its own.
    pub(crate) snapshots: BTreeMap<String, VolumeId>,
    /// The number of separately destroyed snapshots.
    pub(crate) destroyed_snapshots: usize,
    /// The number of the others that were made without a group.
    pub(crate) own_snapshots: usize,
    /// The number of the others that were made with each group.
    pub(crate) group_snapshots: BTreeMap<GroupId, usize>,
    /// The number for its next snapshot without a given suffix.
    pub(crate) next_suffix: u64,
}

impl VolumeEntry {
    /// Returns a volume without connections and snapshots.
    pub(crate) fn new(record: VolumeRecord, attributes: Arc<VolumeAttributes>) -> Self {
        Self {
            attributes,
            record,
            hosts: BTreeMap::new(),
            host_groups: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            destroyed_snapshots: 0,
            own_snapshots: 0,
            group_snapshots: BTreeMap::new(),
            next_suffix: 1,
        }
    }

    /// Returns the count that includes a snapshot.
    pub(crate) fn count_of(&mut self, snapshot: &SnapshotRecord) -> &mut usize {
        match snapshot.group.filter(|_| snapshot.eradicate_ms.is_none()) {
            Some(group) => self.group_snapshots.entry(group).or_default(),
            None if snapshot.eradicate_ms.is_some() => &mut self.destroyed_snapshots,
            None => &mut self.own_snapshots,
        }
    }
}
