//! The LUNs under which the hosts of a group see its volumes, and conflicts between them.

use std::collections::BTreeSet;

use block::VolumeId;

use super::{SharedConnectionInfo, object, shared_info};
use crate::connections::check_lun_range;
use crate::state::{HostEntry, HostGroupEntry, HostGroupId, State};
use crate::{Error, LUN_MAX, LUN_MIN};

/// The first LUN for a shared volume. Further ones go down from it, to stay clear of private ones,
/// which go up from 1. After 1 come those above this one.
const SHARED_LUN_FIRST: u16 = 254;

/// A connection to show.
pub(super) type PlannedShared = (HostGroupId, VolumeId, SharedConnectionInfo);

/// Checks that a host's private connections do not conflict with a group's.
pub(super) fn check_member(
    state: &State,
    host: &HostEntry,
    group_id: HostGroupId,
    group: &HostGroupEntry,
) -> Result<(), Error> {
    for (lun, volume) in &host.luns {
        let Some(volume) = state.volumes.get(volume) else { continue };
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

pub(super) fn plan_shared(
    state: &State,
    volume: &str,
    group: &str,
    lun: Option<u16>,
    taken: &BTreeSet<(HostGroupId, u16)>,
) -> Result<PlannedShared, Error> {
    let volume = state.volume(volume)?;
    let (id, group) = state.host_group(group)?;
    let exists = |to: String, lun: u16| {
        Err(Error::ConnectionExists { volume: volume.record.name.to_string(), to, lun })
    };
    if let Some(lun) = volume.host_groups.get(&id) {
        return exists(object(group), *lun);
    }
    for (host_id, host) in group.entries(state) {
        if let Some(lun) = volume.hosts.get(&host_id) {
            return exists(format!("host {}", host.host.name), *lun);
        }
    }
    let lun = match lun {
        None => free_shared_lun(state, id, group, taken)?,
        Some(lun) => check_shared_lun(state, group, lun)?,
    };
    if taken.contains(&(id, lun)) {
        let volume = volume.record.name.to_string();
        return Err(Error::LunInUse { lun, of: object(group), volume });
    }
    Ok((id, volume.record.id, shared_info(volume, group, lun)))
}

fn check_shared_lun(state: &State, group: &HostGroupEntry, lun: u16) -> Result<u16, Error> {
    check_lun_range(lun)?;
    let in_use = |of: String, id: &VolumeId| {
        let volume = state.volumes.get(id)?.record.name.to_string();
        Some(Error::LunInUse { lun, of, volume })
    };
    let own = group.luns.get(&lun).and_then(|id| in_use(object(group), id));
    let private = || {
        let mut holders = group.entries(state).filter_map(|(_, host)| {
            in_use(format!("host {}", host.host.name), host.luns.get(&lun)?)
        });
        holders.next()
    };
    own.or_else(private).map_or(Ok(lun), Err)
}

/// The next LUN for a group which neither it nor any of its hosts uses.
fn free_shared_lun(
    state: &State,
    id: HostGroupId,
    group: &HostGroupEntry,
    taken: &BTreeSet<(HostGroupId, u16)>,
) -> Result<u16, Error> {
    let mut used = vec![false; usize::from(LUN_MAX) + 1];
    let private = group.entries(state).flat_map(|(_, host)| host.luns.keys());
    for lun in group.luns.keys().chain(private) {
        used[usize::from(*lun)] = true;
    }
    let mut order = (LUN_MIN..=SHARED_LUN_FIRST).rev().chain(SHARED_LUN_FIRST + 1..=LUN_MAX);
    let free = order.find(|lun| !used[usize::from(*lun)] && !taken.contains(&(id, *lun)));
    free.ok_or(Error::Limit { what: "LUNs of one host group", limit: usize::from(LUN_MAX) })
}
