//! A host in memory, with what is derived from it.
//!
//! The free LUNs are kept up to date, so that the time to find one does not depend on the number of
//! connections.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use block::{LunMap, VolumeAttributes, VolumeId};
use parking_lot::Mutex;

use crate::objects::connections::{LUN_MAX, LUN_MIN};
use crate::objects::hosts::Host;

/// A host with what is derived from it.
pub(crate) struct HostEntry {
    pub(crate) host: Host,
    /// Its private connections; those of its group apply as well.
    luns: BTreeMap<u16, VolumeId>,
    /// The LUNs that are free below the highest used one.
    gaps: BTreeSet<u16>,
    /// The generation in which the volumes that it sees changed last, except for changes by its
    /// group.
    generation: u64,
    /// The volumes that it sees, built on demand: a series of changes costs one map, not many.
    seen: Mutex<Option<Arc<LunMap>>>,
}

impl HostEntry {
    pub(crate) fn new(host: Host, generation: u64) -> Self {
        let (luns, gaps) = (BTreeMap::new(), BTreeSet::new());
        Self { host, luns, gaps, generation, seen: Mutex::new(None) }
    }

    /// Returns the free LUNs after one, the lowest first, without scanning those before it.
    pub(crate) fn free_luns(&self, after: u16) -> impl Iterator<Item = u16> + '_ {
        let next = self.luns.last_key_value().map_or(LUN_MIN, |(last, _)| last + 1);
        let gaps = self.gaps.range((Bound::Excluded(after), Bound::Unbounded));
        gaps.copied().chain(next.max(after.saturating_add(1))..=LUN_MAX)
    }

    /// Returns its private connections; those of its group apply as well.
    pub(crate) fn luns(&self) -> &BTreeMap<u16, VolumeId> {
        &self.luns
    }

    /// Returns the generation in which the volumes that it sees changed last, except for changes by
    /// its group.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Records that the volumes that it sees have changed.
    pub(crate) fn touch(&mut self, generation: u64) {
        self.generation = generation;
        *self.seen.get_mut() = None;
    }

    /// Returns the volumes that it sees in a generation: built from `luns`, unless already cached.
    pub(crate) fn lun_map(
        &self,
        generation: u64,
        luns: impl Iterator<Item = (u16, Arc<VolumeAttributes>)>,
    ) -> Arc<LunMap> {
        let mut seen = self.seen.lock();
        if let Some(map) = seen.as_ref().filter(|map| map.generation == generation) {
            return map.clone();
        }
        let map = Arc::new(LunMap { generation, luns: luns.collect() });
        *seen = Some(map.clone());
        map
    }

    pub(crate) fn take_lun(&mut self, lun: u16, volume: VolumeId) {
        let next = self.luns.last_key_value().map_or(LUN_MIN, |(last, _)| last + 1);
        self.gaps.extend(next..lun.max(next));
        self.gaps.remove(&lun);
        self.luns.insert(lun, volume);
    }

    pub(crate) fn free_up_lun(&mut self, lun: u16) {
        self.luns.remove(&lun);
        let next = self.luns.last_key_value().map_or(LUN_MIN, |(last, _)| last + 1);
        if lun < next {
            self.gaps.insert(lun);
        } else {
            self.gaps.split_off(&next);
        }
    }
}
