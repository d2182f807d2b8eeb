//! Hosts, by id, by name and by initiator, and their private connections.

use std::sync::Arc;

use block::{LunMap, VolumeId};

use super::State;
use crate::error::Error;
use crate::objects::hosts::{Host, HostId};
use crate::tables::hosts::HostEntry;
use crate::values::text::shown;

impl State {
    pub(crate) fn insert_host(&mut self, id: HostId, host: Host) {
        let generation = self.next_generation();
        self.next_host_id = self.next_host_id.max(id.0.saturating_add(1));
        self.host_names.insert(host.name.key(), id);
        self.initiators.extend(host.initiators.iter().map(|name| (name.clone(), id)));
        self.move_host(id, None, host.group);
        self.hosts.insert(id, HostEntry::new(host, generation));
    }

    /// Replaces a host's name, initiators and secrets.
    pub(crate) fn replace_host(&mut self, id: HostId, host: Host) {
        let Some(entry) = self.hosts.get_mut(&id) else { return };
        self.host_names.remove(&entry.host.name.key());
        self.host_names.insert(host.name.key(), id);
        for name in &entry.host.initiators {
            self.initiators.remove(name);
        }
        self.initiators.extend(host.initiators.iter().map(|name| (name.clone(), id)));
        let (from, to) = (entry.host.group, host.group);
        entry.host = host;
        self.move_host(id, from, to);
        self.touch(id);
        self.removal_generation = self.generation;
    }

    pub(crate) fn remove_host(&mut self, id: HostId) {
        let Some(entry) = self.hosts.remove(&id) else { return };
        self.move_host(id, entry.host.group, None);
        self.host_names.remove(&entry.host.name.key());
        for name in &entry.host.initiators {
            self.initiators.remove(name);
        }
        self.removal_generation = self.next_generation();
    }

    pub(crate) fn connect(&mut self, host: HostId, volume: VolumeId, lun: u16) {
        if let (Some(h), Some(v)) = (self.hosts.get_mut(&host), self.volumes.get_mut(&volume)) {
            h.take_lun(lun, volume);
            v.hosts.insert(host, lun);
            self.connection_count += 1;
            self.touch(host);
        }
    }

    pub(crate) fn disconnect(&mut self, host: HostId, volume: VolumeId, lun: u16) {
        if let (Some(h), Some(v)) = (self.hosts.get_mut(&host), self.volumes.get_mut(&volume)) {
            h.free_up_lun(lun);
            v.hosts.remove(&host);
            self.connection_count -= 1;
            self.touch(host);
        }
    }

    /// Records that the volumes that a host sees have changed.
    pub(super) fn touch(&mut self, host: HostId) {
        let generation = self.next_generation();
        if let Some(entry) = self.hosts.get_mut(&host) {
            entry.touch(generation);
        }
    }

    /// Returns the volumes that a host sees.
    pub(crate) fn lun_map(&self, host: &HostEntry) -> Arc<LunMap> {
        // The generation of the last change: for the host itself, or for all hosts of its group.
        let shared = self.group_of(host).map_or(0, |group| group.generation);
        let generation = host.generation().max(shared);
        let attributes = |(lun, id)| Some((lun, self.volumes.get(&id)?.attributes.clone()));
        host.lun_map(generation, self.luns_of(host).filter_map(attributes))
    }

    /// Returns a host by its name, ignoring case.
    pub(crate) fn host(&self, name: &str) -> Result<(HostId, &HostEntry), Error> {
        let id = self.host_names.get(&name.to_ascii_lowercase());
        let entry = id.and_then(|id| Some((*id, self.hosts.get(id)?)));
        entry.ok_or_else(|| Error::NoSuchHost(shown(name)))
    }
}
