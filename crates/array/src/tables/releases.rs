//! Releases in memory, by what was released and by time.

use std::collections::{BTreeMap, BTreeSet};

use crate::objects::host_groups::HostGroupId;
use crate::objects::hosts::HostId;
use crate::objects::releases::{
    LUN_REST_MS, LunOwner, RELEASES_MAX, Release, ReleaseKey, ReleaseUpdate,
};

/// The number of releases that a commit drops because they are over, so that it stays small.
const DROPPED_AT_ONCE: usize = 100;

/// The remembered releases.
#[derive(Default)]
pub(crate) struct Releases {
    by_key: BTreeMap<ReleaseKey, Release>,
    by_time: BTreeSet<(u64, ReleaseKey)>,
}

fn rests(at_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(at_ms) < LUN_REST_MS
}

impl Releases {
    /// Replaces or removes a release.
    pub(crate) fn set(&mut self, (key, release): ReleaseUpdate) {
        let old = match release {
            Some(release) => self.by_key.insert(key, release),
            None => self.by_key.remove(&key),
        };
        if let Some(old) = old {
            self.by_time.remove(&(old.at_ms, key));
        }
        if let Some(release) = release {
            self.by_time.insert((release.at_ms, key));
        }
    }

    /// Returns the time of a new release: later than all others.
    pub(crate) fn next_ms(&self, now_ms: u64) -> u64 {
        let last = self.by_time.last().map_or(0, |(at_ms, _)| *at_ms);
        now_ms.max(last.saturating_add(1))
    }

    /// Returns whether some LUN rests.
    pub(crate) fn is_any_resting(&self, now_ms: u64) -> bool {
        self.by_time.last().is_some_and(|(at_ms, _)| rests(*at_ms, now_ms))
    }

    /// Returns the LUNs that a host or group released and that still rest.
    pub(crate) fn resting(
        &self,
        owner: LunOwner,
        now_ms: u64,
    ) -> impl Iterator<Item = (u16, Release)> + '_ {
        let range = ReleaseKey::Lun(owner, 0)..=ReleaseKey::Lun(owner, u16::MAX);
        let lun = |(key, release): (&ReleaseKey, &Release)| match key {
            ReleaseKey::Lun(_, lun) => Some((*lun, *release)),
            ReleaseKey::Membership(..) => None,
        };
        let resting = move |(_, release): &(u16, Release)| rests(release.at_ms, now_ms);
        self.by_key.range(range).filter_map(lun).filter(resting)
    }

    /// Returns the groups that a host left recently, and when.
    pub(crate) fn left(
        &self,
        host: HostId,
        now_ms: u64,
    ) -> impl Iterator<Item = (HostGroupId, u64)> + '_ {
        let of = |group| ReleaseKey::Membership(host, HostGroupId(group));
        let group = |(key, release): (&ReleaseKey, &Release)| match key {
            ReleaseKey::Membership(_, group) => Some((*group, release.at_ms)),
            ReleaseKey::Lun(..) => None,
        };
        let left = self.by_key.range(of(0)..=of(u64::MAX)).filter_map(group);
        left.filter(move |(_, at_ms)| rests(*at_ms, now_ms))
    }

    /// Returns what a commit drops that adds `new`: some that no longer rest, and the oldest ones
    /// beyond the limit.
    pub(crate) fn dropped(&self, new: &[ReleaseUpdate], now_ms: u64) -> Vec<ReleaseUpdate> {
        let new: BTreeSet<ReleaseKey> = new.iter().map(|(key, _)| *key).collect();
        let replaced = new.iter().filter(|key| self.by_key.contains_key(key)).count();
        let count = self.by_key.len() + new.len() - replaced;
        let excess = count.saturating_sub(RELEASES_MAX);
        let others = self.by_time.iter().filter(|(_, key)| !new.contains(key));
        let is_dropped = |(nth, (at_ms, _)): &(usize, &(u64, ReleaseKey))| {
            *nth < excess || (*nth < excess + DROPPED_AT_ONCE && !rests(*at_ms, now_ms))
        };
        others.enumerate().take_while(is_dropped).map(|(_, (_, key))| (*key, None)).collect()
    }

    /// Sets times after `latest_ms` to it: a LUN never rests for longer than it should, whatever
    /// has happened to the clock.
    pub(crate) fn limit(&mut self, latest_ms: u64) {
        let late: Vec<_> = self.by_time.split_off(&(latest_ms, LAST_KEY)).into_iter().collect();
        for (_, key) in late {
            if let Some(release) = self.by_key.get_mut(&key) {
                release.at_ms = latest_ms;
                self.by_time.insert((latest_ms, key));
            }
        }
    }

    /// Returns the number of remembered releases.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        assert_eq!(self.by_key.len(), self.by_time.len());
        self.by_key.len()
    }
}

/// The last key in their order.
const LAST_KEY: ReleaseKey = ReleaseKey::Membership(HostId(u64::MAX), HostGroupId(u64::MAX));
