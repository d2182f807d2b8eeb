//! Groups of volumes, of which snapshots are made together.

use std::ops::Bound;

use block::VolumeId;
use store::Change;

use crate::name::GroupName;
use crate::state::{State, VolumeEntry, shown};
use crate::{Array, Error, GROUP_MEMBERS_MAX, GROUPS_MAX, record};

/// Names a group; durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GroupId(pub(crate) u64);

/// A group as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: GroupName,
    /// Its volumes, destroyed ones too. Those that were eradicated are not taken out of its record:
    /// their ids never come again, and they are left out when it is loaded.
    pub(crate) members: Vec<VolumeId>,
    /// The number of its next snapshots that get one.
    pub(crate) next_suffix: u64,
    pub(crate) created_ms: u64,
}

/// What to change of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupChange {
    /// Volumes that come to it.
    pub add: Vec<String>,
    /// Volumes that leave it.
    pub remove: Vec<String>,
}

/// A group, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupInfo {
    /// Its id, for ever.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The names of its volumes, without destroyed ones, which are back once they are recovered.
    pub volumes: Vec<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
}

impl State {
    /// A group by its name, whatever its case.
    pub(crate) fn group(&self, name: &str) -> Result<(GroupId, &Group), Error> {
        let id = self.group_names.get(&name.to_ascii_lowercase());
        let entry = id.and_then(|id| Some((*id, self.groups.get(id)?)));
        entry.ok_or_else(|| Error::NoSuchGroup(shown(name)))
    }

    /// The volumes of a group that are not destroyed.
    pub(crate) fn members<'a>(&'a self, group: &Group) -> impl Iterator<Item = &'a VolumeEntry> {
        let entries = group.members.iter().filter_map(|id| self.volumes.get(id));
        let live = entries.filter(|entry| entry.record.eradicate_ms.is_none());
        live.collect::<Vec<_>>().into_iter()
    }

    pub(crate) fn load_group(&mut self, id: GroupId, mut group: Group) -> Result<(), Error> {
        if self.group_names.contains_key(&group.name.key()) {
            return Err(Error::Damaged(format!("two groups are called {}", group.name)));
        }
        group.members.retain(|id| self.volumes.contains_key(id));
        self.replace_group(id, group);
        Ok(())
    }

    pub(crate) fn replace_group(&mut self, id: GroupId, group: Group) {
        self.next_group_id = self.next_group_id.max(id.0.saturating_add(1));
        self.group_names.insert(group.name.key(), id);
        self.groups.insert(id, group);
    }

    fn group_info(&self, id: GroupId, group: &Group) -> GroupInfo {
        GroupInfo {
            id: id.0,
            name: group.name.to_string(),
            volumes: self.members(group).map(|entry| entry.record.name.to_string()).collect(),
            created_ms: group.created_ms,
        }
    }

    fn ids_of(&self, names: &[String]) -> Result<Vec<VolumeId>, Error> {
        names.iter().map(|name| self.volume(name).map(|entry| entry.record.id)).collect()
    }
}

impl Array {
    /// Makes a group of volumes; durable when it returns.
    ///
    /// # Errors
    /// `group_exists`, `no_such_volume`, `volume_destroyed`, `limit_reached`, and those of the
    /// store.
    pub fn create_group(
        &self,
        name: GroupName,
        volumes: &[String],
        created_ms: u64,
    ) -> Result<GroupInfo, Error> {
        self.change(|state| plan_new(state, 0, name, volumes, created_ms), show_group)
    }

    /// Adds volumes to a group, and takes some away. One that is added twice is in it once; one
    /// that is not in it is not missed.
    ///
    /// # Errors
    /// `no_such_group`, and those of [`Array::create_group`].
    pub fn change_group(&self, name: &str, change: &GroupChange) -> Result<GroupInfo, Error> {
        self.change(|state| plan_change(state, name, change), show_group)
    }

    /// Ends a group. Its volumes stay, and so do the snapshots that were made with it.
    ///
    /// # Errors
    /// `no_such_group`, and those of the store.
    pub fn delete_group(&self, name: &str) -> Result<(), Error> {
        self.change(|state| plan_end(state, name), show_end)
    }

    /// A group.
    ///
    /// # Errors
    /// `no_such_group`.
    pub fn group(&self, name: &str) -> Result<GroupInfo, Error> {
        let state = self.state.read();
        state.group(name).map(|(id, group)| state.group_info(id, group))
    }

    /// The name of the group with this id, if there is one.
    pub fn group_name(&self, id: u64) -> Option<String> {
        self.state.read().groups.get(&GroupId(id)).map(|group| group.name.to_string())
    }

    /// Up to `limit` groups in the order of their names (without case), from the first one behind
    /// `after`.
    pub fn groups(&self, after: Option<&str>, limit: usize) -> Vec<GroupInfo> {
        let state = self.state.read();
        let from = after.map_or(Bound::Unbounded, |n| Bound::Excluded(n.to_ascii_lowercase()));
        let rows = state.group_names.range((from, Bound::Unbounded));
        let groups = rows.filter_map(|(_, id)| Some((*id, state.groups.get(id)?))).take(limit);
        groups.map(|(id, group)| state.group_info(id, group)).collect()
    }
}

/// `before`: how many are made in the same commit, before this one.
pub(crate) fn plan_new(
    state: &State,
    before: usize,
    name: GroupName,
    volumes: &[String],
    created_ms: u64,
) -> Result<(Change, (GroupId, Group)), Error> {
    if state.group(name.as_str()).is_ok() {
        return Err(Error::GroupExists(name.to_string()));
    }
    if state.groups.len() + before >= GROUPS_MAX {
        return Err(Error::Limit { what: "groups", limit: GROUPS_MAX });
    }
    let id = GroupId(state.next_group_id + before as u64);
    let members = with(Vec::new(), state.ids_of(volumes)?)?;
    plan_group(id, Group { name, members, next_suffix: 1, created_ms })
}

pub(crate) fn plan_change(
    state: &State,
    name: &str,
    change: &GroupChange,
) -> Result<(Change, (GroupId, Group)), Error> {
    let (id, group) = state.group(name)?;
    let removed = state.ids_of(&change.remove)?;
    let mut members = group.members.clone();
    members.retain(|id| !removed.contains(id));
    let members = with(members, state.ids_of(&change.add)?)?;
    plan_group(id, Group { members, ..group.clone() })
}

pub(crate) fn plan_end(state: &State, name: &str) -> Result<(Change, (GroupId, String)), Error> {
    let (id, group) = state.group(name)?;
    let config = vec![(record::group_key(id), None)];
    Ok((Change { config, ..Change::default() }, (id, group.name.key())))
}

pub(crate) fn show_end(state: &mut State, (id, key): (GroupId, String)) {
    state.groups.remove(&id);
    state.group_names.remove(&key);
}

fn plan_group(id: GroupId, group: Group) -> Result<(Change, (GroupId, Group)), Error> {
    let config = vec![(record::group_key(id), Some(record::group(&group)?))];
    Ok((Change { config, ..Change::default() }, (id, group)))
}

pub(crate) fn show_group(state: &mut State, (id, group): (GroupId, Group)) -> GroupInfo {
    let info = state.group_info(id, &group);
    state.replace_group(id, group);
    info
}

/// Members with some more, each of them once.
fn with(mut members: Vec<VolumeId>, more: Vec<VolumeId>) -> Result<Vec<VolumeId>, Error> {
    for id in more {
        if !members.contains(&id) {
            members.push(id);
        }
    }
    if members.len() > GROUP_MEMBERS_MAX {
        return Err(Error::Limit { what: "volumes of one group", limit: GROUP_MEMBERS_MAX });
    }
    Ok(members)
}
