//! The connections of host groups: the LUNs under which the hosts of a group see its volumes, and
//! conflicts between them.

use std::collections::{BTreeMap, BTreeSet};

use block::VolumeId;
use store::Change;

use super::free_luns::Resting;
use crate::error::Error;
use crate::objects::connections::{LUN_MAX, LUN_MIN, check_lun_range};
use crate::objects::host_groups::HostGroupId;
use crate::record;
use crate::state::State;
use crate::tables::host_groups::HostGroupEntry;
use crate::tables::hosts::HostEntry;
use crate::tables::volumes::VolumeEntry;

/// The first LUN for a shared volume. Further LUNs descend from it, to avoid those of private
/// connections, which ascend from 1. After 1 follow those above this one.
const SHARED_LUN_FIRST: u16 = 254;

/// A volume that the hosts of a group may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedConnectionInfo {
    /// The name of the volume.
    pub volume: String,
    /// The name of the group.
    pub host_group: String,
    /// The LUN under which its hosts see it.
    pub lun: u16,
}

/// A connection to add to the state.
pub(crate) type PlannedShared = (HostGroupId, VolumeId, SharedConnectionInfo);

/// The LUNs of groups, while connections with them are planned.
#[derive(Default)]
pub(crate) struct SharedLuns {
    /// The LUNs of connections that were already planned.
    taken: BTreeSet<(HostGroupId, u16)>,
    free: BTreeMap<HostGroupId, FreeLuns>,
    /// The number of hosts and LUNs examined.
    pub(crate) steps: usize,
}

/// The free LUNs of a group, in the order of assignment. They are computed once for all connections
/// of one change: the hosts of a large group can have millions of connections.
struct FreeLuns {
    /// The LUNs that the group or one of its hosts uses, or that this change assigns.
    used: Vec<bool>,
    resting: Resting,
    /// The number of examined LUNs in the order.
    at: u16,
}

impl Iterator for FreeLuns {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        while self.at < LUN_MAX {
            let lun = match SHARED_LUN_FIRST.checked_sub(self.at) {
                Some(lun) if lun >= LUN_MIN => lun,
                _ => self.at + 1,
            };
            self.at += 1;
            if !self.used[usize::from(lun)] && !self.resting.contains(lun) {
                return Some(lun);
            }
        }
        None
    }
}

impl SharedLuns {
    /// Assigns a LUN that neither a group nor any of its hosts uses to a volume: a new one if
    /// `None`.
    pub(super) fn assign(
        &mut self,
        state: &State,
        id: HostGroupId,
        group: &HostGroupEntry,
        volume: Option<VolumeId>,
    ) -> Result<u16, Error> {
        let steps = &mut self.steps;
        let free = self.free.entry(id).or_insert_with(|| {
            let mut used = vec![false; usize::from(LUN_MAX) + 1];
            let private = state.hosts_in(group).flat_map(|(_, host)| host.luns().keys());
            for lun in group.luns.keys().chain(private) {
                used[usize::from(*lun)] = true;
                *steps += 1;
            }
            let resting = Resting::of_group(state, id, group.hosts.iter().copied());
            FreeLuns { used, resting, at: 0 }
        });
        let before = free.at;
        let lun = free.resting.returning(state, volume, |lun| !free.used[usize::from(lun)]);
        let lun = lun.or_else(|| free.next());
        *steps += usize::from(free.at - before);
        let lun = lun.or_else(|| free.resting.oldest(|lun| !free.used[usize::from(lun)]));
        let lun = lun
            .ok_or(Error::Limit { what: "LUNs of one host group", limit: usize::from(LUN_MAX) })?;
        free.used[usize::from(lun)] = true;
        Ok(lun)
    }
}

/// Checks that a host's private connections do not conflict with a group's.
pub(super) fn check_member(
    state: &State,
    host: &HostEntry,
    group_id: HostGroupId,
    group: &HostGroupEntry,
) -> Result<(), Error> {
    for (lun, volume) in host.luns() {
        let Some(volume) = state.volumes().get(volume) else { continue };
        let to = || format!("host {}", host.host.name);
        if volume.host_groups.contains_key(&group_id) {
            let volume = volume.record.name.to_string();
            return Err(Error::ConnectionExists { volume, to: to(), lun: *lun });
        }
        if group.luns.contains_key(lun) {
            let volume = volume.record.name.to_string();
            return Err(Error::LunInUse { lun: *lun, of: to(), volume });
        }
    }
    Ok(())
}

/// Plans connections of pairs (volume, group).
pub(crate) fn plan_pairs(
    state: &State,
    pairs: &[(String, String)],
    lun: Option<u16>,
    luns: &mut SharedLuns,
) -> Result<(Change, Vec<PlannedShared>), Error> {
    let (mut change, mut planned) = (Change::default(), Vec::new());
    for (volume, group) in pairs {
        let one = plan_shared(state, volume, group, lun, luns)?;
        let row = record::connection(one.2.lun)?;
        change.config.push((record::shared_connection_key(one.0, one.1), Some(row)));
        planned.push(one);
    }
    Ok((change, planned))
}

fn plan_shared(
    state: &State,
    volume: &str,
    group: &str,
    lun: Option<u16>,
    luns: &mut SharedLuns,
) -> Result<PlannedShared, Error> {
    let volume = state.volume(volume)?;
    let (id, group) = state.host_group(group)?;
    let exists = |to: String, lun: u16| {
        Err(Error::ConnectionExists { volume: volume.record.name.to_string(), to, lun })
    };
    if let Some(lun) = volume.host_groups.get(&id) {
        return exists(object(group), *lun);
    }
    // The first host that is in both; the shorter list is scanned.
    luns.steps += group.hosts.len().min(volume.hosts.len());
    let private = match volume.hosts.len() < group.hosts.len() {
        true => volume.hosts.keys().find(|host| group.hosts.contains(host)),
        false => group.hosts.iter().find(|host| volume.hosts.contains_key(host)),
    };
    let private =
        private.and_then(|host| Some((state.hosts().get(host)?, volume.hosts.get(host)?)));
    if let Some((host, lun)) = private {
        return exists(format!("host {}", host.host.name), *lun);
    }
    let lun = match lun {
        None => luns.assign(state, id, group, Some(volume.record.id))?,
        Some(lun) => check_shared_lun(state, group, lun)?,
    };
    if !luns.taken.insert((id, lun)) {
        let volume = volume.record.name.to_string();
        return Err(Error::LunInUse { lun, of: object(group), volume });
    }
    Ok((id, volume.record.id, shared_info(volume, group, lun)))
}

fn check_shared_lun(state: &State, group: &HostGroupEntry, lun: u16) -> Result<u16, Error> {
    check_lun_range(lun)?;
    let in_use = |of: String, id: &VolumeId| {
        let volume = state.volumes().get(id)?.record.name.to_string();
        Some(Error::LunInUse { lun, of, volume })
    };
    let own = group.luns.get(&lun).and_then(|id| in_use(object(group), id));
    let private = || {
        let mut holders = state.hosts_in(group).filter_map(|(_, host)| {
            in_use(format!("host {}", host.host.name), host.luns().get(&lun)?)
        });
        holders.next()
    };
    own.or_else(private).map_or(Ok(lun), Err)
}

/// Returns the connections of a group, in the order of the LUNs.
pub(super) fn shared_by<'a>(
    state: &'a State,
    group: &'a HostGroupEntry,
) -> impl Iterator<Item = SharedConnectionInfo> + 'a {
    let info = |(lun, id): (&u16, &_)| Some(shared_info(state.volumes().get(id)?, group, *lun));
    group.luns.iter().filter_map(info)
}

pub(super) fn object(group: &HostGroupEntry) -> String {
    format!("host group {}", group.record.name)
}

pub(super) fn shared_info(
    volume: &VolumeEntry,
    group: &HostGroupEntry,
    lun: u16,
) -> SharedConnectionInfo {
    let (volume, host_group) = (volume.record.name.to_string(), group.record.name.to_string());
    SharedConnectionInfo { volume, host_group, lun }
}
