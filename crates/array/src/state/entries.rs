//! What is kept for a volume and for a host.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use block::{
    LogicalBlockSize, LunMap, Offloads, SectorCount, VolumeAttributes, VolumeId, VolumeLimits,
};
use parking_lot::Mutex;

use super::HostGroupId;
use crate::groups::GroupId;
use crate::identity::Serial;
use crate::name::{HostName, InitiatorName, VolumeName};
use crate::{Chap, CompanyId, LUN_MAX, LUN_MIN, Personality};

/// Names a host; durable, so that a renamed host keeps its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostId(pub(crate) u64);

/// A volume as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeRecord {
    pub(crate) id: VolumeId,
    pub(crate) name: VolumeName,
    pub(crate) size: SectorCount,
    pub(crate) logical_block: LogicalBlockSize,
    pub(crate) company_id: CompanyId,
    pub(crate) serial: Serial,
    pub(crate) created_ms: u64,
    /// Its own setting; the array's applies as well.
    pub(crate) offloads: Offloads,
    pub(crate) limits: VolumeLimits,
    /// The object that it was made from.
    pub(crate) source: Option<SourceRecord>,
    /// If it is destroyed: when it is eradicated, in milliseconds since 1970.
    pub(crate) eradicate_ms: Option<u64>,
}

/// The object that a volume was made from, or last overwritten with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceRecord {
    /// The volume or the snapshot, which may be gone.
    pub(crate) id: VolumeId,
    /// Its name at that time.
    pub(crate) name: String,
}

impl VolumeRecord {
    pub(super) fn attributes(&self, array: Offloads, write_cache: bool) -> Arc<VolumeAttributes> {
        Arc::new(VolumeAttributes {
            id: self.id,
            size: self.size,
            logical_block: self.logical_block,
            naa: self.serial.naa(self.company_id),
            serial: self.serial.to_string(),
            write_cache,
            offloads: self.offloads.and(array),
            limits: self.limits,
        })
    }
}

/// A host as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: HostName,
    pub(crate) initiators: Vec<InitiatorName>,
    pub(crate) chap: Option<Chap>,
    pub(crate) personality: Option<Personality>,
    /// The host group that it is in.
    pub(crate) group: Option<HostGroupId>,
    pub(crate) created_ms: u64,
}

/// A volume with what is derived from it.
pub(crate) struct VolumeEntry {
    pub(crate) record: VolumeRecord,
    pub(crate) attributes: Arc<VolumeAttributes>,
    /// Its private connections.
    pub(crate) hosts: BTreeMap<HostId, u16>,
    /// Its shared connections.
    pub(crate) host_groups: BTreeMap<HostGroupId, u16>,
    /// Its snapshots, including destroyed ones, by the parts of their names besides its own.
    pub(crate) snapshots: BTreeMap<String, VolumeId>,
    /// How many of them were destroyed separately.
    pub(crate) destroyed_snapshots: usize,
    /// How many of the others were made without a group.
    pub(crate) own_snapshots: usize,
    /// How many of the others were made with each group.
    pub(crate) group_snapshots: BTreeMap<GroupId, usize>,
    /// The number for its next snapshot that is not given a suffix.
    pub(crate) next_suffix: u64,
}

/// A host with what is derived from it.
pub(crate) struct HostEntry {
    pub(crate) host: Host,
    /// Its private connections; those of its group apply as well.
    pub(crate) luns: BTreeMap<u16, VolumeId>,
    /// The LUNs that are free below the highest used one.
    gaps: BTreeSet<u16>,
    /// When what it sees changed last, but for what its group has changed.
    pub(crate) generation: u64,
    /// What it sees, built when it is needed: a series of changes costs one map, not many.
    pub(super) seen: Mutex<Option<Arc<LunMap>>>,
}

impl HostEntry {
    pub(crate) fn new(host: Host, generation: u64) -> Self {
        let (luns, gaps) = (BTreeMap::new(), BTreeSet::new());
        Self { host, luns, gaps, generation, seen: Mutex::new(None) }
    }

    /// The LUNs without a volume after one, the lowest first. Those before it are not walked.
    pub(crate) fn free_luns(&self, after: u16) -> impl Iterator<Item = u16> + '_ {
        let next = self.luns.last_key_value().map_or(LUN_MIN, |(last, _)| last + 1);
        let gaps = self.gaps.range((Bound::Excluded(after), Bound::Unbounded));
        gaps.copied().chain(next.max(after.saturating_add(1))..=LUN_MAX)
    }

    pub(super) fn take_lun(&mut self, lun: u16, volume: VolumeId) {
        let next = self.luns.last_key_value().map_or(LUN_MIN, |(last, _)| last + 1);
        self.gaps.extend(next..lun.max(next));
        self.gaps.remove(&lun);
        self.luns.insert(lun, volume);
    }

    pub(super) fn free_up_lun(&mut self, lun: u16) {
        self.luns.remove(&lun);
        let next = self.luns.last_key_value().map_or(LUN_MIN, |(last, _)| last + 1);
        if lun < next {
            self.gaps.insert(lun);
        } else {
            self.gaps.split_off(&next);
        }
    }
}
