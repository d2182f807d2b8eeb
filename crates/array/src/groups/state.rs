//! Groups in memory: their members, and when each needs attention.

use std::collections::{BTreeMap, BTreeSet};

use block::VolumeId;
use store::Change;

use super::{Group, GroupId, GroupInfo};
use crate::name::GroupName;
use crate::snapshots::SnapshotRecord;
use crate::state::{State, VolumeEntry, shown};
use crate::{Backing, Error, Retention, SnapshotSchedule, record};

/// About how many bytes of rows go into one commit, which holds up to 256 KiB in total.
const ROWS_BYTES: usize = 100 << 10;

/// When each group is looked at next: for its schedule, or for its retention.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    when: BTreeMap<GroupId, u64>,
    order: BTreeSet<(u64, GroupId)>,
}

impl Agenda {
    /// Sets when the group is looked at again; `None`: only when it changes.
    pub(crate) fn set(&mut self, group: GroupId, when_ms: Option<u64>) {
        if let Some(old) = self.when.remove(&group) {
            self.order.remove(&(old, group));
        }
        if let Some(when) = when_ms {
            self.when.insert(group, when);
            self.order.insert((when, group));
        }
    }

    /// Something of the group has changed, so it is looked at again soon.
    pub(crate) fn touch(&mut self, group: GroupId) {
        self.set(group, Some(0));
    }

    /// The group that is due, if any.
    pub(crate) fn due(&self, now_ms: u64) -> Option<GroupId> {
        self.order.first().filter(|(when, _)| *when <= now_ms).map(|(_, group)| *group)
    }
}

impl State {
    /// A group by its name, ignoring case, destroyed or not.
    pub(crate) fn any_group(&self, name: &str) -> Result<(GroupId, &Group), Error> {
        let id = self.group_names.get(&name.to_ascii_lowercase());
        let entry = id.and_then(|id| Some((*id, self.groups.get(id)?)));
        entry.ok_or_else(|| Error::NoSuchGroup(shown(name)))
    }

    /// A group by its name, ignoring case, unless it is destroyed.
    pub(crate) fn group(&self, name: &str) -> Result<(GroupId, &Group), Error> {
        let (id, group) = self.any_group(name)?;
        match group.eradicate_ms {
            None => Ok((id, group)),
            Some(_) => Err(Error::GroupDestroyed(group.name.to_string())),
        }
    }

    /// The volumes of a group that are not destroyed: its own, or those connected to its hosts or
    /// host groups. Each appears once.
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
            return Err(Error::Damaged(format!("two groups are called {}", group.name)));
        }
        let members = &mut group.members;
        members.volumes.retain(|id| self.volumes.contains_key(id));
        let has_hosts = members.hosts.iter().all(|id| self.hosts.contains_key(id));
        let mut host_groups = members.host_groups.iter();
        if !has_hosts || !host_groups.all(|id| self.host_groups.by_id.contains_key(id)) {
            let what = format!("a host or a host group of group {} is not there", group.name);
            return Err(Error::Damaged(what));
        }
        self.replace_group(id, group);
        Ok(())
    }

    /// Assigns a snapshot whose record holds the name of its group to that group. If the group is
    /// gone, which was possible before snapshots ended with their groups, it is created again.
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

    /// Makes adopted snapshots durable: the groups first, so that after a crash no snapshot refers
    /// to a missing group.
    pub(crate) fn keep_adopted(&self, backing: &dyn Backing) -> Result<(), Error> {
        let ids = self.adopted.iter();
        let snapshots: Vec<_> = ids.filter_map(|id| Some((*id, self.snapshots.get(id)?))).collect();
        let groups: BTreeSet<_> = snapshots.iter().filter_map(|(_, s)| s.group).collect();
        let groups = groups.iter().filter_map(|id| Some((*id, self.groups.get(id)?)));
        let mut rows = Vec::new();
        for (id, group) in groups {
            rows.push((record::group_key(id), Some(record::group(group)?)));
        }
        for (id, snapshot) in snapshots {
            rows.push((record::snapshot_key(id), Some(record::snapshot(snapshot)?)));
        }
        let (mut config, mut bytes) = (Vec::new(), 0);
        for row in rows {
            bytes += row.1.as_ref().map_or(0, Vec::len);
            config.push(row);
            if bytes > ROWS_BYTES {
                bytes = 0;
                let config = std::mem::take(&mut config);
                backing.change(Change { config, ..Change::default() })?;
            }
        }
        if !config.is_empty() {
            backing.change(Change { config, ..Change::default() })?;
        }
        Ok(())
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

    pub(crate) fn group_info(&self, id: GroupId, group: &Group) -> GroupInfo {
        let hosts = group.members.hosts.iter().filter_map(|id| self.hosts.get(id));
        let of_groups = group.members.host_groups.iter();
        let host_groups = of_groups.filter_map(|id| self.host_groups.by_id.get(id));
        let own = group.members.volumes.iter().filter_map(|id| self.volumes.get(id));
        let own = own.filter(|entry| entry.record.eradicate_ms.is_none());
        GroupInfo {
            id: id.0,
            name: group.name.to_string(),
            volumes: own.map(|entry| entry.record.name.to_string()).collect(),
            hosts: hosts.map(|entry| entry.host.name.to_string()).collect(),
            host_groups: host_groups.map(|entry| entry.record.name.to_string()).collect(),
            snapshot_count: self.moments_of(id).count(),
            schedule: group.schedule,
            next_ms: group.schedule.enabled.then_some(group.next_ms),
            retention: group.retention,
            created_ms: group.created_ms,
            eradicate_ms: self.shown_doom(group.eradicate_ms),
        }
    }

    /// The name of the group with such a member, if any.
    pub(crate) fn group_with(&self, has: impl Fn(&Group) -> bool) -> Option<String> {
        self.groups.values().find(|group| has(group)).map(|group| group.name.to_string())
    }
}

impl Group {
    /// A group without members and schedule.
    pub(crate) fn new(name: GroupName, created_ms: u64) -> Self {
        Self {
            name,
            members: super::Members::default(),
            next_suffix: 1,
            created_ms,
            schedule: SnapshotSchedule::default(),
            next_ms: 0,
            retention: Retention::default(),
            eradicate_ms: None,
        }
    }

    /// Removes a volume from its own members.
    pub(crate) fn forget(&mut self, volume: VolumeId) {
        self.members.volumes.retain(|id| *id != volume);
    }
}
