//! Groups: by id and by name, with their members and their snapshots.

use std::collections::{BTreeMap, BTreeSet};

use block::VolumeId;

use super::State;
use crate::error::Error;
use crate::objects::groups::{Group, GroupId};
use crate::objects::snapshots::SnapshotRecord;
use crate::tables::moments::Moment;
use crate::tables::volumes::VolumeEntry;
use crate::values::name::GroupName;
use crate::values::text::shown;

/// A moment by its name, with its group.
pub(crate) type Found<'a> = (GroupId, &'a Group, &'a Moment);

impl State {
    /// Returns a group by its name, ignoring case, destroyed or not.
    pub(crate) fn any_group(&self, name: &str) -> Result<(GroupId, &Group), Error> {
        let id = self.group_names.get(&name.to_ascii_lowercase());
        let entry = id.and_then(|id| Some((*id, self.groups.get(id)?)));
        entry.ok_or_else(|| Error::NoSuchGroup(shown(name)))
    }

    /// Returns a group by its name, ignoring case, unless it is destroyed.
    pub(crate) fn group(&self, name: &str) -> Result<(GroupId, &Group), Error> {
        let (id, group) = self.any_group(name)?;
        match group.eradicate_ms {
            None => Ok((id, group)),
            Some(_) => Err(Error::GroupDestroyed(group.name.to_string())),
        }
    }

    /// Returns the volumes of a group that are not destroyed: its own, or those connected to its
    /// hosts or host groups. Each appears once.
    pub(crate) fn members(&self, group: &Group) -> Vec<&VolumeEntry> {
        let members = &group.members;
        let hosts = members.hosts.iter().filter_map(|id| self.hosts.get(id));
        let of_hosts = hosts.flat_map(|host| self.luns_of(host)).map(|(_, volume)| volume);
        let groups = members.host_groups.iter().filter_map(|id| self.host_groups.by_id.get(id));
        let of_groups = groups.flat_map(|group| group.luns.values().copied());
        let mut seen = BTreeSet::new();
        let all = members.volumes.iter().copied().chain(of_hosts).chain(of_groups);
        let all = all.filter(|id| seen.insert(*id)).filter_map(|id| self.volumes.get(&id));
        all.filter(|entry| entry.record.eradicate_ms.is_none()).collect()
    }

    pub(crate) fn load_group(&mut self, id: GroupId, mut group: Group) -> Result<(), Error> {
        if self.group_names.contains_key(&group.name.key()) {
            return Err(Error::Damaged(format!("two groups are named {}", group.name)));
        }
        let members = &mut group.members;
        members.volumes.retain(|id| self.volumes.contains_key(id));
        let has_hosts = members.hosts.iter().all(|id| self.hosts.contains_key(id));
        let mut host_groups = members.host_groups.iter();
        if !has_hosts || !host_groups.all(|id| self.host_groups.by_id.contains_key(id)) {
            let what = format!("a host or a host group of group {} does not exist", group.name);
            return Err(Error::Damaged(what));
        }
        self.replace_group(id, group);
        Ok(())
    }

    /// Assigns a snapshot whose record contains the name of its group to that group. If the group
    /// is gone, which was possible before snapshots ended with their groups, it is created again.
    pub(crate) fn adopt(&mut self, snapshot: &mut SnapshotRecord, name: GroupName) {
        let id = self.group_names.get(&name.key()).copied().unwrap_or_else(|| {
            let id = GroupId(self.next_group_id);
            self.replace_group(id, Group::new(name, snapshot.created_ms));
            id
        });
        snapshot.group = Some(id);
        let next = snapshot.suffix.number().map_or(1, |number| number.saturating_add(1));
        if let Some(group) = self.groups.get_mut(&id) {
            group.next_suffix = group.next_suffix.max(next);
        }
    }

    /// Adds a group, or replaces its name, members, schedule or end.
    pub(crate) fn replace_group(&mut self, id: GroupId, group: Group) {
        self.next_group_id = self.next_group_id.max(id.0.saturating_add(1));
        if let Some(old) = self.groups.get(&id) {
            self.group_names.remove(&old.name.key());
            self.doomed_groups.retain(|(_, of)| *of != id);
        }
        self.doomed_groups.extend(group.eradicate_ms.map(|due| (due, id)));
        self.group_names.insert(group.name.key(), id);
        self.groups.insert(id, group);
        self.agenda.touch(id);
    }

    pub(crate) fn remove_group(&mut self, id: GroupId) {
        if let Some(group) = self.groups.remove(&id) {
            self.group_names.remove(&group.name.key());
            self.doomed_groups.retain(|(_, of)| *of != id);
        }
        self.agenda.set(id, None);
    }

    /// Returns the name of a group for which `has` is true, if any.
    pub(crate) fn group_with(&self, has: impl Fn(&Group) -> bool) -> Option<String> {
        self.groups.values().find(|group| has(group)).map(|group| group.name.to_string())
    }

    /// Returns the moments of a group, by their suffixes in lower case.
    pub(crate) fn moments_of(&self, group: GroupId) -> impl Iterator<Item = (&str, &Moment)> {
        let moments = self.moments.get(&group).into_iter().flat_map(BTreeMap::iter);
        moments.map(|(key, moment)| (key.as_str(), moment))
    }

    /// Returns a moment by its name, destroyed or not.
    pub(crate) fn any_moment(&self, name: &str) -> Result<Found<'_>, Error> {
        let unknown = || Error::NoSuchGroupSnapshot(shown(name));
        let (group, suffix) = name.split_once('.').ok_or_else(unknown)?;
        let (id, group) = self.any_group(group).map_err(|_| unknown())?;
        let moments = self.moments.get(&id).ok_or_else(unknown)?;
        let moment = moments.get(&suffix.to_ascii_lowercase()).ok_or_else(unknown)?;
        Ok((id, group, moment))
    }

    /// Returns a moment by its name whose group is not destroyed.
    pub(crate) fn moment_of_live_group(&self, name: &str) -> Result<Found<'_>, Error> {
        let found = self.any_moment(name)?;
        match found.1.eradicate_ms {
            None => Ok(found),
            Some(_) => Err(Error::GroupDestroyed(found.1.name.to_string())),
        }
    }

    pub(crate) fn records_of<'a>(
        &'a self,
        moment: &'a Moment,
    ) -> impl Iterator<Item = (VolumeId, &'a SnapshotRecord)> {
        moment.snapshots.iter().filter_map(|id| Some((*id, self.snapshots.get(id)?)))
    }

    /// Returns when a moment is eradicated, if all of its snapshots are destroyed.
    pub(crate) fn doom_of_moment(&self, moment: &Moment) -> Option<u64> {
        let ends = self.records_of(moment).map(|(_, snapshot)| snapshot.eradicate_ms);
        ends.collect::<Option<Vec<u64>>>()?.into_iter().max()
    }
}
