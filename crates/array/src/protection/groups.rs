//! Groups: volumes that are snapshotted together, also called protection groups.
//!
//! A group protects volumes, or all volumes of hosts, or all volumes of host groups; only one of
//! these kinds. Its snapshots are made on demand or by its schedule; its retention destroys the
//! latter ([`super::turns`]). They belong to the group: they have its name, are destroyed and
//! recovered with it, and never outlive it.

use std::ops::Bound;

use block::VolumeId;
use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::objects::groups::{GROUP_MEMBERS_MAX, GROUPS_MAX, Group, GroupId, Members};
use crate::objects::host_groups::HostGroupId;
use crate::objects::hosts::HostId;
use crate::record;
use crate::state::State;
use crate::values::name::GroupName;
use crate::values::retention::Retention;
use crate::values::schedule::SnapshotSchedule;

/// A change to a group. Adding a member twice adds it once; removing one that is not a member does
/// nothing.
#[derive(Clone, Debug, Default)]
pub struct GroupChange {
    /// A new name.
    pub name: Option<GroupName>,
    /// Volumes to add.
    pub add: Vec<String>,
    /// Volumes to remove.
    pub remove: Vec<String>,
    /// Hosts to add.
    pub add_hosts: Vec<String>,
    /// Hosts to remove.
    pub remove_hosts: Vec<String>,
    /// Host groups to add.
    pub add_host_groups: Vec<String>,
    /// Host groups to remove.
    pub remove_host_groups: Vec<String>,
    /// The new schedule.
    pub schedule: Option<SnapshotSchedule>,
    /// The new retention.
    pub retention: Option<Retention>,
    /// The current time, in milliseconds since 1970, from which a schedule starts.
    pub now_ms: u64,
}

/// A group, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupInfo {
    /// Its id, which never changes.
    pub id: u64,
    /// Its current name.
    pub name: String,
    /// The names of its volumes. Destroyed ones are left out until they are recovered.
    pub volumes: Vec<String>,
    /// The names of its hosts.
    pub hosts: Vec<String>,
    /// The names of its host groups.
    pub host_groups: Vec<String>,
    /// The number of snapshots of the group, including destroyed ones.
    pub snapshot_count: usize,
    /// When snapshots are taken.
    pub schedule: SnapshotSchedule,
    /// When the next snapshots are due, in milliseconds since 1970, if the schedule is on.
    pub next_ms: Option<u64>,
    /// How long snapshots are kept.
    pub retention: Retention,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// If it is destroyed: when it is eradicated, in milliseconds since 1970.
    pub eradicate_ms: Option<u64>,
}

impl Array {
    /// Creates a group of volumes; durable when it returns.
    ///
    /// # Errors
    /// `group_exists`, `group_destroyed`, `no_such_volume`, `volume_destroyed`, `limit_reached`,
    /// and those of the store.
    pub fn create_group(
        &self,
        name: GroupName,
        volumes: &[String],
        created_ms: u64,
    ) -> Result<GroupInfo, Error> {
        self.change(|state| plan_new(state, 0, name, volumes, created_ms), show_group)
    }

    /// Changes a group.
    ///
    /// # Errors
    /// `no_such_group`, `group_destroyed`, `group_exists`, `no_such_host`, `no_such_host_group`,
    /// `mixed_members`, `invalid_schedule`, `invalid_retention`, and those of
    /// [`Array::create_group`].
    pub fn change_group(&self, name: &str, change: &GroupChange) -> Result<GroupInfo, Error> {
        self.change(|state| plan_change(state, name, change), show_group)
    }

    /// Returns a group, destroyed or not.
    ///
    /// # Errors
    /// `no_such_group`.
    pub fn group(&self, name: &str) -> Result<GroupInfo, Error> {
        let state = self.read();
        state.any_group(name).map(|(id, group)| info(&state, id, group))
    }

    /// Returns the name of the group with this id, if it exists.
    pub fn group_name(&self, id: u64) -> Option<String> {
        self.read().groups().get(&GroupId(id)).map(|group| group.name.to_string())
    }

    /// Returns up to `limit` groups in the order of their names (ignoring case), after `after`:
    /// only destroyed ones, only the others, or (`None`) both.
    pub fn groups(
        &self,
        after: Option<&str>,
        destroyed: impl Into<Option<bool>>,
        limit: usize,
    ) -> Vec<GroupInfo> {
        let destroyed: Option<bool> = destroyed.into();
        let state = self.read();
        let from = after.map_or(Bound::Unbounded, |n| Bound::Excluded(n.to_ascii_lowercase()));
        let rows = state.group_names().range((from, Bound::Unbounded));
        rows.filter_map(|(_, id)| Some((*id, state.groups().get(id)?)))
            .filter(|(_, group)| destroyed.is_none_or(|d| group.eradicate_ms.is_some() == d))
            .take(limit)
            .map(|(id, group)| info(&state, id, group))
            .collect()
    }
}

/// Plans a new group. `before`: the number of groups that the same commit creates before this one.
pub(crate) fn plan_new(
    state: &State,
    before: usize,
    name: GroupName,
    volumes: &[String],
    created_ms: u64,
) -> Result<(Change, (GroupId, Group)), Error> {
    check_free(state, &name, None)?;
    if state.groups().len() + before >= GROUPS_MAX {
        return Err(Error::Limit { what: "groups", limit: GROUPS_MAX });
    }
    let id = GroupId(state.next_group_id() + before as u64);
    let mut group = Group::new(name, created_ms);
    group.members.volumes = changed(&[], &volume_ids(state, volumes)?, &[])?;
    plan_group(id, group)
}

fn check_free(state: &State, name: &GroupName, own: Option<GroupId>) -> Result<(), Error> {
    match state.group(name.as_str()) {
        Ok((other, _)) if own != Some(other) => Err(Error::GroupExists(name.to_string())),
        Err(destroyed @ Error::GroupDestroyed(_)) => Err(destroyed),
        _ => Ok(()),
    }
}

fn volume_ids(state: &State, names: &[String]) -> Result<Vec<VolumeId>, Error> {
    names.iter().map(|name| state.volume(name).map(|entry| entry.record.id)).collect()
}

fn host_ids(state: &State, names: &[String]) -> Result<Vec<HostId>, Error> {
    names.iter().map(|name| state.host(name).map(|(id, _)| id)).collect()
}

fn host_group_ids(state: &State, names: &[String]) -> Result<Vec<HostGroupId>, Error> {
    names.iter().map(|name| state.host_group(name).map(|(id, _)| id)).collect()
}

pub(crate) fn plan_change(
    state: &State,
    name: &str,
    change: &GroupChange,
) -> Result<(Change, (GroupId, Group)), Error> {
    let (id, old) = state.group(name)?;
    let mut group = old.clone();
    if let Some(name) = &change.name {
        check_free(state, name, Some(id))?;
        group.name = name.clone();
    }
    group.members = Members {
        volumes: changed(
            &old.members.volumes,
            &volume_ids(state, &change.add)?,
            &volume_ids(state, &change.remove)?,
        )?,
        hosts: changed(
            &old.members.hosts,
            &host_ids(state, &change.add_hosts)?,
            &host_ids(state, &change.remove_hosts)?,
        )?,
        host_groups: changed(
            &old.members.host_groups,
            &host_group_ids(state, &change.add_host_groups)?,
            &host_group_ids(state, &change.remove_host_groups)?,
        )?,
    };
    check_kind(state, &group)?;
    if let Some(schedule) = change.schedule {
        schedule.check()?;
        // An unchanged schedule does not restart.
        if schedule != old.schedule {
            (group.schedule, group.next_ms) = (schedule, schedule.first(change.now_ms));
        }
    }
    group.retention = change.retention.unwrap_or(old.retention);
    group.retention.check()?;
    plan_group(id, group)
}

/// Refuses members of several kinds: the protection of such a group would be unclear.
fn check_kind(state: &State, group: &Group) -> Result<(), Error> {
    let Members { volumes, hosts, host_groups } = &group.members;
    let has_volumes = volumes.iter().any(|id| state.volumes().contains_key(id));
    let kinds = [has_volumes, !hosts.is_empty(), !host_groups.is_empty()];
    if kinds.into_iter().filter(|is_there| *is_there).count() < 2 {
        return Ok(());
    }
    let text = format!(
        "Group {} can have volumes, hosts or host groups: one kind of these. Remove the others \
         first.",
        group.name
    );
    Err(Error::invalid("mixed_members", text))
}

pub(crate) fn plan_group(id: GroupId, group: Group) -> Result<(Change, (GroupId, Group)), Error> {
    let config = vec![(record::group_key(id), Some(record::group(&group)?))];
    Ok((Change { config, ..Change::default() }, (id, group)))
}

pub(crate) fn show_group(state: &mut State, (id, group): (GroupId, Group)) -> GroupInfo {
    state.replace_group(id, group);
    info(state, id, &state.groups()[&id])
}

pub(super) fn info(state: &State, id: GroupId, group: &Group) -> GroupInfo {
    let hosts = group.members.hosts.iter().filter_map(|id| state.hosts().get(id));
    let of_groups = group.members.host_groups.iter();
    let host_groups = of_groups.filter_map(|id| state.host_groups().by_id.get(id));
    let own = group.members.volumes.iter().filter_map(|id| state.volumes().get(id));
    let own = own.filter(|entry| entry.record.eradicate_ms.is_none());
    GroupInfo {
        id: id.0,
        name: group.name.to_string(),
        volumes: own.map(|entry| entry.record.name.to_string()).collect(),
        hosts: hosts.map(|entry| entry.host.name.to_string()).collect(),
        host_groups: host_groups.map(|entry| entry.record.name.to_string()).collect(),
        snapshot_count: state.moments_of(id).count(),
        schedule: group.schedule,
        next_ms: group.schedule.enabled.then_some(group.next_ms),
        retention: group.retention,
        created_ms: group.created_ms,
        eradicate_ms: state.shown_doom(group.eradicate_ms),
    }
}

/// Removes some members and adds others, without duplicates.
fn changed<T: Copy + PartialEq>(old: &[T], add: &[T], remove: &[T]) -> Result<Vec<T>, Error> {
    let mut members: Vec<T> = old.iter().copied().filter(|id| !remove.contains(id)).collect();
    for id in add {
        if !members.contains(id) {
            members.push(*id);
        }
    }
    if members.len() > GROUP_MEMBERS_MAX {
        return Err(Error::Limit { what: "members of one group", limit: GROUP_MEMBERS_MAX });
    }
    Ok(members)
}
