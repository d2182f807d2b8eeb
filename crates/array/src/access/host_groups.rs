//! Host groups: hosts that see the same volumes under the same LUNs, as the hosts of a cluster
//! must.
//!
//! A host is in at most one group. A volume connected to a group is *shared*: each of its hosts
//! sees it, including hosts added later. A host may also have private connections to other volumes,
//! under other LUNs. A change that would give a host the same volume twice, or two volumes one LUN,
//! is refused.

use std::ops::Bound;

use store::Change;

use super::connections::check_shown;
use super::shared::{
    PlannedShared, SharedConnectionInfo, SharedLuns, check_member, object, plan_pairs, shared_by,
    shared_info,
};
use crate::array::Array;
use crate::array::distinct::{check, check_all, check_pairs};
use crate::error::Error;
use crate::objects::host_groups::{HOST_GROUPS_MAX, HostGroup, HostGroupId};
use crate::objects::hosts::{Host, HostId};
use crate::record;
use crate::state::State;
use crate::tables::host_groups::HostGroupEntry;
use crate::values::name::HostGroupName;

/// A host group, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGroupInfo {
    /// Its current name.
    pub name: String,
    /// The names of its hosts, in the order of their creation.
    pub hosts: Vec<String>,
    /// The number of volumes connected to it.
    pub connection_count: usize,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
}

impl Array {
    /// Creates host groups without hosts; durable when it returns.
    ///
    /// # Errors
    /// `host_group_exists`, `named_twice`, `limit_reached`, and those of the store.
    pub fn create_host_groups(
        &self,
        names: Vec<HostGroupName>,
        created_ms: u64,
    ) -> Result<Vec<HostGroupInfo>, Error> {
        check(names.iter().map(HostGroupName::as_str))?;
        let plan = |state: &State, before: usize, name: HostGroupName| {
            check_free(state, &name, None)?;
            if state.host_groups().by_id.len() + before >= HOST_GROUPS_MAX {
                return Err(Error::Limit { what: "host groups", limit: HOST_GROUPS_MAX });
            }
            let id = HostGroupId(state.host_groups().next_id().0 + before as u64);
            plan_host_group(id, HostGroup { name, created_ms })
        };
        self.change_all(names, plan, show_host_group)
    }

    /// Renames a host group. Its hosts and connections do not change.
    ///
    /// # Errors
    /// `no_such_host_group`, `host_group_exists`, and those of the store.
    pub fn rename_host_group(
        &self,
        name: &str,
        new_name: HostGroupName,
    ) -> Result<HostGroupInfo, Error> {
        let plan = |state: &State| {
            let (id, entry) = state.host_group(name)?;
            check_free(state, &new_name, Some(id))?;
            plan_host_group(id, HostGroup { name: new_name, ..entry.record.clone() })
        };
        self.change(plan, show_host_group)
    }

    /// Deletes host groups that have no hosts and no connections.
    ///
    /// # Errors
    /// `no_such_host_group`, `existing_connections`, `host_group_not_empty`, `in_group` for one
    /// that is in a group of volumes, `named_twice`, and those of the store.
    pub fn delete_host_groups(&self, names: &[String]) -> Result<(), Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| {
            let (id, entry) = state.host_group(name)?;
            let object = || format!("Host group {}", entry.record.name);
            if !entry.luns.is_empty() {
                return Err(Error::ExistingConnections {
                    object: object(),
                    count: entry.luns.len(),
                });
            }
            if !entry.hosts.is_empty() {
                return Err(Error::HostGroupNotEmpty(entry.record.name.to_string()));
            }
            if let Some(group) = state.group_with(|group| group.members.host_groups.contains(&id)) {
                return Err(Error::InGroup { object: object(), group });
            }
            let config = vec![(record::host_group_key(id), None)];
            Ok((Change { config, ..Change::default() }, id))
        };
        self.change_all(names, plan, State::remove_host_group).map(|_| ())
    }

    /// Adds hosts to groups, as pairs (group, host): they see the groups' volumes at once.
    ///
    /// # Errors
    /// `no_such_host_group`, `no_such_host`, `in_host_group` for a host that is in one already,
    /// `connection_exists` and `lun_in_use` if its private connections conflict, `named_twice`, and
    /// those of the store.
    pub fn add_to_host_groups(&self, pairs: &[(String, String)]) -> Result<(), Error> {
        // A host named twice would be in two groups.
        check(pairs.iter().map(|(_, host)| host.as_str()))?;
        let plan = |state: &State, _, (group, host): &(String, String)| {
            let (group_id, group) = state.host_group(group)?;
            let (id, entry) = state.host(host)?;
            if let Some(other) = state.group_of(entry) {
                let (host, group) = (entry.host.name.to_string(), other.record.name.to_string());
                return Err(Error::InHostGroup { host, group });
            }
            check_member(state, entry, group_id, group)?;
            plan_membership(id, Host { group: Some(group_id), ..entry.host.clone() })
        };
        self.change_all(pairs, plan, show_membership).map(|_| ())
    }

    /// Removes hosts from groups, as pairs (group, host): they no longer see the groups' volumes.
    ///
    /// # Errors
    /// `no_such_host_group`, `no_such_host`, `not_in_host_group`, `named_twice`, and those of the
    /// store.
    pub fn remove_from_host_groups(&self, pairs: &[(String, String)]) -> Result<(), Error> {
        check(pairs.iter().map(|(_, host)| host.as_str()))?;
        let plan = |state: &State, _, (group, host): &(String, String)| {
            let (group_id, group) = state.host_group(group)?;
            let (id, entry) = state.host(host)?;
            if entry.host.group != Some(group_id) {
                let (host, group) = (entry.host.name.to_string(), group.record.name.to_string());
                return Err(Error::NotInHostGroup { host, group });
            }
            plan_membership(id, Host { group: None, ..entry.host.clone() })
        };
        self.change_all(pairs, plan, show_membership).map(|_| ())
    }

    /// Connects volumes to host groups, as pairs (volume, group); each under `lun`, or under the
    /// first one from 254 down that none of the group's hosts uses and that does not rest.
    ///
    /// # Errors
    /// `no_such_volume`, `volume_destroyed`, `no_such_host_group`, `connection_exists`,
    /// `lun_in_use`, `invalid_lun`, `limit_reached`, `named_twice`, and those of the store.
    pub fn connect_host_groups(
        &self,
        pairs: &[(String, String)],
        lun: Option<u16>,
    ) -> Result<Vec<SharedConnectionInfo>, Error> {
        check_pairs(pairs)?;
        let mut luns = SharedLuns::default();
        let plan_all = |state: &State| plan_pairs(state, pairs, lun, &mut luns);
        self.change(plan_all, |state, planned: Vec<PlannedShared>| {
            let show = |(group, volume, info): PlannedShared| {
                state.connect_group(group, volume, info.lun);
                info
            };
            planned.into_iter().map(show).collect()
        })
    }

    /// Disconnects volumes from host groups, as pairs (volume, group).
    ///
    /// # Errors
    /// `no_such_volume`, `no_such_host_group`, `no_such_connection`, `named_twice`, and those of
    /// the store.
    pub fn disconnect_host_groups(&self, pairs: &[(String, String)]) -> Result<(), Error> {
        check_pairs(pairs)?;
        let plan = |state: &State, _, (volume, group): &(String, String)| {
            let volume = state.volume(volume)?;
            let (group_id, group) = state.host_group(group)?;
            let id = volume.record.id;
            let lun = volume.host_groups.get(&group_id).copied();
            let lun = lun.ok_or_else(|| Error::NoSuchConnection {
                volume: volume.record.name.to_string(),
                to: object(group),
            })?;
            let config = vec![(record::shared_connection_key(group_id, id), None)];
            Ok((Change { config, ..Change::default() }, (group_id, id, lun)))
        };
        let show = |state: &mut State, (group, volume, lun)| {
            state.disconnect_group(group, volume, lun);
        };
        self.change_all(pairs, plan, show).map(|_| ())
    }

    /// Returns a host group.
    ///
    /// # Errors
    /// `no_such_host_group`.
    pub fn host_group(&self, name: &str) -> Result<HostGroupInfo, Error> {
        let state = self.read();
        state.host_group(name).map(|(_, entry)| info(&state, entry))
    }

    /// Returns up to `limit` host groups in the order of their names (ignoring case), after
    /// `after`.
    pub fn host_groups(&self, after: Option<&str>, limit: usize) -> Vec<HostGroupInfo> {
        let state = self.read();
        let from = after.map_or(Bound::Unbounded, |n| Bound::Excluded(n.to_ascii_lowercase()));
        let rows = state.host_groups().names.range((from, Bound::Unbounded));
        let entries = rows.filter_map(|(_, id)| state.host_groups().by_id.get(id)).take(limit);
        entries.map(|entry| info(&state, entry)).collect()
    }

    /// Returns the connections of host groups: of one volume, one group, both, or all, in the order
    /// of the groups' names and the LUNs.
    ///
    /// # Errors
    /// `no_such_volume`, `no_such_host_group`, for the names that were given;
    /// `too_many_connections`.
    pub fn shared_connections(
        &self,
        volume: Option<&str>,
        group: Option<&str>,
    ) -> Result<Vec<SharedConnectionInfo>, Error> {
        let state = self.read();
        let volume = volume.map(|name| state.any_volume(name)).transpose()?;
        let group = group.map(|name| state.host_group(name)).transpose()?;
        let is_wanted = |id: &HostGroupId| group.is_none_or(|(wanted, _)| wanted == *id);
        let of = |id: &HostGroupId| state.host_groups().by_id.get(id);
        let mut found = Vec::new();
        match (volume, group) {
            // The volume knows its groups, so there is no need to search the LUNs of all groups.
            (Some(volume), _) => {
                let shared = volume.host_groups.iter().filter(|(id, _)| is_wanted(id));
                let mut shared: Vec<_> =
                    shared.filter_map(|(id, lun)| Some((of(id)?, *lun))).collect();
                shared.sort_by_key(|(group, _)| group.record.name.key());
                found.extend(shared.iter().map(|(group, lun)| shared_info(volume, group, *lun)));
            }
            (None, Some((_, group))) => found.extend(shared_by(&state, group)),
            (None, None) => {
                for group in state.host_groups().names.values().filter_map(of) {
                    check_shown(found.len())?;
                    found.extend(shared_by(&state, group));
                }
            }
        }
        check_shown(found.len())?;
        Ok(found)
    }
}

fn check_free(state: &State, name: &HostGroupName, own: Option<HostGroupId>) -> Result<(), Error> {
    match state.host_group(name.as_str()) {
        Ok((other, _)) if own != Some(other) => Err(Error::HostGroupExists(name.to_string())),
        _ => Ok(()),
    }
}

fn plan_host_group(
    id: HostGroupId,
    group: HostGroup,
) -> Result<(Change, (HostGroupId, HostGroup)), Error> {
    let config = vec![(record::host_group_key(id), Some(record::host_group(&group)?))];
    Ok((Change { config, ..Change::default() }, (id, group)))
}

fn show_host_group(state: &mut State, (id, group): (HostGroupId, HostGroup)) -> HostGroupInfo {
    state.replace_host_group(id, group);
    info(state, &state.host_groups().by_id[&id])
}

fn plan_membership(id: HostId, host: Host) -> Result<(Change, (HostId, Host)), Error> {
    let config = vec![(record::host_key(id), Some(record::host(&host)?))];
    Ok((Change { config, ..Change::default() }, (id, host)))
}

fn show_membership(state: &mut State, (id, host): (HostId, Host)) {
    state.replace_host(id, host);
}

fn info(state: &State, group: &HostGroupEntry) -> HostGroupInfo {
    let hosts = group.hosts.iter().filter_map(|id| state.hosts().get(id));
    HostGroupInfo {
        name: group.record.name.to_string(),
        hosts: hosts.map(|entry| entry.host.name.to_string()).collect(),
        connection_count: group.luns.len(),
        created_ms: group.record.created_ms,
    }
}
