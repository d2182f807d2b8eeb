//! Host groups: their hosts, and the volumes that all of their hosts see under the same LUN.

use std::collections::{BTreeMap, BTreeSet};

use block::VolumeId;

use super::State;
use crate::error::Error;
use crate::objects::host_groups::{HostGroup, HostGroupId};
use crate::objects::hosts::HostId;
use crate::tables::host_groups::HostGroupEntry;
use crate::tables::hosts::HostEntry;
use crate::tables::volumes::VolumeEntry;
use crate::values::text::shown;

impl State {
    /// Returns a host group by its name, ignoring case.
    pub(crate) fn host_group(&self, name: &str) -> Result<(HostGroupId, &HostGroupEntry), Error> {
        let id = self.host_groups.names.get(&name.to_ascii_lowercase());
        let entry = id.and_then(|id| Some((*id, self.host_groups.by_id.get(id)?)));
        entry.ok_or_else(|| Error::NoSuchHostGroup(shown(name)))
    }

    /// Returns the group of a host.
    pub(crate) fn group_of(&self, host: &HostEntry) -> Option<&HostGroupEntry> {
        self.host_groups.by_id.get(&host.host.group?)
    }

    /// Returns the LUN under which a host sees a volume, by its own connection or its group's.
    pub(crate) fn lun_of(&self, volume: &VolumeEntry, host: HostId) -> Option<u16> {
        let by_group = || volume.host_groups.get(&self.hosts.get(&host)?.host.group?).copied();
        volume.hosts.get(&host).copied().or_else(by_group)
    }

    /// Returns the hosts that see a volume, by their own connections or their group's.
    pub(crate) fn hosts_of(&self, volume: &VolumeEntry) -> Vec<HostId> {
        let groups = volume.host_groups.keys().filter_map(|id| self.host_groups.by_id.get(id));
        let shared = groups.flat_map(|group| group.hosts.iter().copied());
        volume.hosts.keys().copied().chain(shared).collect()
    }

    /// Returns the number of hosts that see a volume.
    pub(crate) fn host_count_of(&self, volume: &VolumeEntry) -> usize {
        let groups = volume.host_groups.keys().filter_map(|id| self.host_groups.by_id.get(id));
        volume.hosts.len() + groups.map(|group| group.hosts.len()).sum::<usize>()
    }

    /// Returns the volumes that a host sees, by LUN.
    pub(crate) fn luns_of<'a>(
        &'a self,
        host: &'a HostEntry,
    ) -> impl Iterator<Item = (u16, VolumeId)> + 'a {
        let shared = self.group_of(host).into_iter().flat_map(|group| &group.luns);
        host.luns().iter().chain(shared).map(|(lun, volume)| (*lun, *volume))
    }

    pub(super) fn load_host_group(
        &mut self,
        id: HostGroupId,
        group: HostGroup,
    ) -> Result<(), Error> {
        if self.host_groups.names.contains_key(&group.name.key()) {
            return Err(Error::Damaged(format!("two host groups are named {}", group.name)));
        }
        self.replace_host_group(id, group);
        Ok(())
    }

    /// Loads a shared connection. Private connections are loaded first: those of the group's hosts
    /// must not conflict with it.
    pub(super) fn load_shared_connection(
        &mut self,
        id: HostGroupId,
        volume: VolumeId,
        lun: u16,
    ) -> Result<(), Error> {
        let fits = || {
            let (group, entry) = (self.host_groups.by_id.get(&id)?, self.volumes.get(&volume)?);
            let mut hosts = group.hosts.iter().filter_map(|id| self.hosts.get(id));
            let is_free = !group.luns.contains_key(&lun)
                && hosts.all(|host| !host.luns().contains_key(&lun))
                && !group.hosts.iter().any(|host| entry.hosts.contains_key(host));
            (is_free && entry.record.eradicate_ms.is_none()).then_some(())
        };
        if fits().is_none() {
            let what =
                format!("host group {}, LUN {lun} and volume {volume} are inconsistent", id.0);
            return Err(Error::Damaged(what));
        }
        self.connect_group(id, volume, lun);
        Ok(())
    }

    /// Adds a host group, or changes its name.
    pub(crate) fn replace_host_group(&mut self, id: HostGroupId, record: HostGroup) {
        let key = record.name.key();
        self.host_groups.note_id(id);
        match self.host_groups.by_id.get_mut(&id) {
            Some(entry) => {
                self.host_groups.names.remove(&entry.record.name.key());
                entry.record = record;
            }
            None => {
                let (hosts, luns, generation) = (BTreeSet::new(), BTreeMap::new(), 0);
                let entry = HostGroupEntry { record, hosts, luns, generation };
                self.host_groups.by_id.insert(id, entry);
            }
        }
        self.host_groups.names.insert(key, id);
    }

    pub(crate) fn remove_host_group(&mut self, id: HostGroupId) {
        if let Some(entry) = self.host_groups.by_id.remove(&id) {
            self.host_groups.names.remove(&entry.record.name.key());
        }
    }

    pub(crate) fn connect_group(&mut self, id: HostGroupId, volume: VolumeId, lun: u16) {
        let group = self.host_groups.by_id.get_mut(&id);
        if let (Some(group), Some(entry)) = (group, self.volumes.get_mut(&volume)) {
            group.luns.insert(lun, volume);
            entry.host_groups.insert(id, lun);
            self.connection_count += 1;
            self.touch_group(id);
        }
    }

    pub(crate) fn disconnect_group(&mut self, id: HostGroupId, volume: VolumeId, lun: u16) {
        let group = self.host_groups.by_id.get_mut(&id);
        if let (Some(group), Some(entry)) = (group, self.volumes.get_mut(&volume)) {
            group.luns.remove(&lun);
            entry.host_groups.remove(&id);
            self.connection_count -= 1;
            self.touch_group(id);
        }
    }

    /// Records that the volumes that the hosts of a group see have changed: once, regardless of
    /// their number.
    pub(super) fn touch_group(&mut self, id: HostGroupId) {
        let generation = self.next_generation();
        if let Some(group) = self.host_groups.by_id.get_mut(&id) {
            group.generation = generation;
        }
    }

    /// Moves a host from a group, or into one.
    pub(super) fn move_host(
        &mut self,
        host: HostId,
        from: Option<HostGroupId>,
        to: Option<HostGroupId>,
    ) {
        if let Some(group) = from.and_then(|id| self.host_groups.by_id.get_mut(&id)) {
            group.hosts.remove(&host);
        }
        if let Some(group) = to.and_then(|id| self.host_groups.by_id.get_mut(&id)) {
            group.hosts.insert(host);
        }
    }

    /// Returns the hosts of a group, with their ids.
    pub(crate) fn hosts_in<'a>(
        &'a self,
        group: &'a HostGroupEntry,
    ) -> impl Iterator<Item = (HostId, &'a HostEntry)> {
        group.hosts.iter().filter_map(|id| Some((*id, self.hosts.get(id)?)))
    }
}
