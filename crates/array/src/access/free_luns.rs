//! Choosing a LUN for a new connection.
//!
//! A LUN rests for some hours after it was released ([`LUN_REST_MS`]), so that no host finds
//! another volume behind a disk that it has not removed yet. It is not chosen meanwhile, except for
//! the volume that had it, or if all other free LUNs rest as well: then the one that was released
//! first is chosen. An administrator may name any LUN.
//!
//! [`LUN_REST_MS`]: crate::objects::releases::LUN_REST_MS

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use block::VolumeId;

use crate::error::Error;
use crate::objects::connections::LUN_MAX;
use crate::objects::host_groups::HostGroupId;
use crate::objects::hosts::HostId;
use crate::objects::releases::{LunOwner, Release};
use crate::state::State;
use crate::tables::hosts::HostEntry;

/// The LUNs that rest for a host, or for the hosts of a group, each with its last release.
pub(super) struct Resting {
    owner: LunOwner,
    last: BTreeMap<u16, Release>,
}

impl Resting {
    /// Returns the LUNs that rest for a host, with those of its group.
    fn of_host(state: &State, id: HostId, host: &HostEntry) -> Self {
        let mut found = Self { owner: LunOwner::Host(id), last: BTreeMap::new() };
        found.add(state, host.host.group, [id]);
        found
    }

    /// Returns the LUNs that rest for a group or one of its hosts.
    pub(super) fn of_group(
        state: &State,
        id: HostGroupId,
        hosts: impl IntoIterator<Item = HostId>,
    ) -> Self {
        let mut found = Self { owner: LunOwner::Group(id), last: BTreeMap::new() };
        found.add(state, Some(id), hosts);
        found
    }

    fn add(
        &mut self,
        state: &State,
        group: Option<HostGroupId>,
        hosts: impl IntoIterator<Item = HostId>,
    ) {
        let (releases, now_ms) = (&state.releases, state.time.known_ms());
        if !releases.is_any_resting(now_ms) {
            return;
        }
        let mut left: BTreeMap<HostGroupId, u64> = BTreeMap::new();
        for host in hosts {
            self.note_all(releases.resting(LunOwner::Host(host), now_ms));
            for (group, at_ms) in releases.left(host, now_ms) {
                let last = left.entry(group).or_default();
                *last = at_ms.max(*last);
            }
        }
        if let Some(group) = group {
            self.note_all(releases.resting(LunOwner::Group(group), now_ms));
        }
        for (group, left_ms) in left {
            // Volumes that the group got later rest as well: that is simpler, and harmless.
            let until_left =
                |release: Release| Release { at_ms: release.at_ms.min(left_ms), ..release };
            let released = releases.resting(LunOwner::Group(group), now_ms);
            self.note_all(released.map(|(lun, release)| (lun, until_left(release))));
            let luns = state.host_groups().by_id.get(&group).map(|group| &group.luns);
            let seen = |(lun, id): (&u16, &VolumeId)| {
                (*lun, Release { at_ms: left_ms, volume: Some(*id) })
            };
            self.note_all(luns.into_iter().flatten().map(seen));
        }
    }

    fn note_all(&mut self, releases: impl Iterator<Item = (u16, Release)>) {
        for (lun, release) in releases {
            let last = self.last.entry(lun).or_insert(release);
            if release.at_ms > last.at_ms {
                *last = release;
            }
        }
    }

    /// Returns whether a LUN rests.
    pub(super) fn contains(&self, lun: u16) -> bool {
        self.last.contains_key(&lun)
    }

    /// Returns the free LUN that a volume had last for this owner, if nothing else had it since.
    pub(super) fn returning(
        &self,
        state: &State,
        volume: Option<VolumeId>,
        is_free: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        let volume = Some(volume?);
        let own = state.releases.resting(self.owner, state.time.known_ms());
        let returns = |(lun, release): &(u16, Release)| {
            release.volume == volume && self.last.get(lun) == Some(release) && is_free(*lun)
        };
        let last = own.filter(returns).max_by_key(|(lun, release)| (release.at_ms, Reverse(*lun)));
        last.map(|(lun, _)| lun)
    }

    /// Returns the free LUN that was released first.
    pub(super) fn oldest(&self, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        let free = self.last.iter().filter(|(lun, _)| is_free(**lun));
        free.min_by_key(|(lun, release)| (release.at_ms, **lun)).map(|(lun, _)| *lun)
    }
}

/// The LUNs of hosts, while connections with them are planned.
#[derive(Default)]
pub(crate) struct HostLuns {
    of: BTreeMap<HostId, FreeOfHost>,
}

struct FreeOfHost {
    resting: Resting,
    /// The LUNs that this change assigns.
    taken: BTreeSet<u16>,
    /// One change assigns the LUNs that don't rest in order: the search continues after the last.
    after: u16,
}

impl HostLuns {
    fn of(&mut self, state: &State, id: HostId, host: &HostEntry) -> &mut FreeOfHost {
        self.of.entry(id).or_insert_with(|| FreeOfHost {
            resting: Resting::of_host(state, id, host),
            taken: BTreeSet::new(),
            after: 0,
        })
    }

    /// Assigns a LUN that neither a host nor its group uses to a volume: a new one if `None`.
    pub(super) fn assign(
        &mut self,
        state: &State,
        id: HostId,
        host: &HostEntry,
        volume: Option<VolumeId>,
    ) -> Result<u16, Error> {
        let shared = state.group_of(host);
        let is_shared = |lun: u16| shared.is_some_and(|group| group.luns.contains_key(&lun));
        let FreeOfHost { resting, taken, after } = self.of(state, id, host);
        let is_free =
            |lun: u16| !host.luns().contains_key(&lun) && !is_shared(lun) && !taken.contains(&lun);
        let lowest = || {
            let mut free = host.free_luns(*after).filter(|lun| !is_shared(*lun));
            let lowest = free.find(|lun| !taken.contains(lun) && !resting.contains(*lun));
            *after = lowest.unwrap_or(LUN_MAX);
            lowest
        };
        let lun = resting.returning(state, volume, is_free);
        let lun = lun.or_else(lowest).or_else(|| resting.oldest(is_free));
        let lun =
            lun.ok_or(Error::Limit { what: "LUNs of one host", limit: usize::from(LUN_MAX) })?;
        taken.insert(lun);
        Ok(lun)
    }

    /// Assigns a requested LUN, which is free. Returns whether this change has not assigned it yet.
    pub(super) fn take(&mut self, state: &State, id: HostId, host: &HostEntry, lun: u16) -> bool {
        self.of(state, id, host).taken.insert(lun)
    }
}
