//! All objects in memory, indexed for the look-ups that protocols and management need.

mod entries;
mod host_groups;
mod load;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use block::{LunMap, VolumeId};

pub(crate) use entries::{Host, HostEntry, HostId, SourceRecord, VolumeEntry, VolumeRecord};
pub(crate) use host_groups::{HostGroup, HostGroupEntry, HostGroupId, HostGroups};

use crate::alerts::Alerts;
use crate::audit::AuditLog;
use crate::groups::{Agenda, Group, GroupId};
use crate::host_state::HostStates;
use crate::lab_reports::LabReports;
use crate::name::{InitiatorName, VolumeName};
use crate::ports::Ports;
use crate::snapshots::{Moment, SnapshotRecord};
use crate::tags::{TagMap, Tags};
use crate::time::ArrayTime;
use crate::token_rows::TokenRows;
use crate::users::Users;
use crate::{Error, Settings};

/// All objects.
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) pool_id: [u8; 16],
    pub(crate) write_cache: bool,
    pub(crate) volumes: HashMap<VolumeId, VolumeEntry>,
    /// By name in lower case; including destroyed ones.
    pub(crate) volume_names: BTreeMap<String, VolumeId>,
    pub(crate) snapshots: HashMap<VolumeId, SnapshotRecord>,
    /// Destroyed objects, by when they are eradicated.
    pub(crate) doomed: BTreeSet<(u64, VolumeId)>,
    pub(crate) groups: BTreeMap<GroupId, Group>,
    /// Their snapshots, by the suffixes in lower case.
    pub(crate) moments: BTreeMap<GroupId, BTreeMap<String, Moment>>,
    /// Snapshots whose records named their groups by name.
    pub(crate) adopted: Vec<VolumeId>,
    /// Groups that are destroyed, by when they are eradicated.
    pub(crate) doomed_groups: BTreeSet<(u64, GroupId)>,
    pub(crate) agenda: Agenda,
    /// By name in lower case.
    pub(crate) group_names: BTreeMap<String, GroupId>,
    pub(crate) next_group_id: u64,
    pub(crate) hosts: BTreeMap<HostId, HostEntry>,
    /// By name in lower case.
    pub(crate) host_names: BTreeMap<String, HostId>,
    pub(crate) initiators: HashMap<InitiatorName, HostId>,
    pub(crate) host_groups: HostGroups,
    pub(crate) host_states: HostStates,
    pub(crate) users: Users,
    pub(crate) audit: AuditLog,
    pub(crate) alerts: Alerts,
    /// Of hosts and of host groups.
    pub(crate) connection_count: usize,
    pub(crate) tags: Tags,
    pub(crate) lab_reports: LabReports,
    pub(crate) ports: Ports,
    pub(crate) time: ArrayTime,
    /// The array's own volume, unless the pool has none yet.
    pub(crate) token_volume: Option<VolumeId>,
    pub(crate) token_rows: TokenRows,
    pub(crate) next_host_id: u64,
    /// Incremented with each change that an initiator could notice.
    pub(crate) generation: u64,
    /// The generation in which an initiator was last removed: that of what unknown initiators see.
    pub(crate) removal_generation: u64,
}

impl State {
    fn empty(pool_id: [u8; 16], write_cache: bool) -> Result<Self, Error> {
        Ok(Self {
            settings: Settings::defaults(&pool_id)?,
            pool_id,
            write_cache,
            volumes: HashMap::new(),
            volume_names: BTreeMap::new(),
            snapshots: HashMap::new(),
            doomed: BTreeSet::new(),
            groups: BTreeMap::new(),
            moments: BTreeMap::new(),
            adopted: Vec::new(),
            doomed_groups: BTreeSet::new(),
            agenda: Agenda::default(),
            group_names: BTreeMap::new(),
            next_group_id: 1,
            hosts: BTreeMap::new(),
            host_names: BTreeMap::new(),
            initiators: HashMap::new(),
            host_groups: HostGroups::default(),
            host_states: HostStates::default(),
            users: Users::built_in()?,
            audit: AuditLog::default(),
            alerts: Alerts::default(),
            connection_count: 0,
            tags: Tags::default(),
            lab_reports: LabReports::new(),
            ports: Ports::new(),
            time: ArrayTime::default(),
            token_volume: None,
            token_rows: TokenRows::default(),
            next_host_id: 1,
            generation: 1,
            removal_generation: 1,
        })
    }

    pub(crate) fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    pub(crate) fn insert_volume(&mut self, record: VolumeRecord) {
        let attributes = record.attributes(self.settings.offloads, self.write_cache);
        self.volume_names.insert(record.name.key(), record.id);
        self.doomed.extend(record.eradicate_ms.map(|due| (due, record.id)));
        let entry = VolumeEntry {
            attributes,
            record,
            hosts: BTreeMap::new(),
            host_groups: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            destroyed_snapshots: 0,
            own_snapshots: 0,
            group_snapshots: BTreeMap::new(),
            next_suffix: 1,
        };
        self.volumes.insert(entry.record.id, entry);
    }

    /// Replaces a volume's record; a change to its size, offloads or limits changes what hosts see.
    pub(crate) fn replace_volume(&mut self, record: VolumeRecord) {
        let (offloads, write_cache) = (self.settings.offloads, self.write_cache);
        let id = record.id;
        let Some(entry) = self.volumes.get_mut(&id) else { return };
        self.volume_names.remove(&entry.record.name.key());
        self.volume_names.insert(record.name.key(), record.id);
        let attributes = record.attributes(offloads, write_cache);
        if let Some(due) = entry.record.eradicate_ms {
            self.doomed.remove(&(due, record.id));
        }
        self.doomed.extend(record.eradicate_ms.map(|due| (due, record.id)));
        let is_noticed = attributes != entry.attributes;
        entry.attributes = attributes;
        entry.record = record;
        if is_noticed {
            let hosts: Vec<HostId> = entry.hosts.keys().copied().collect();
            let groups: Vec<HostGroupId> = entry.host_groups.keys().copied().collect();
            hosts.into_iter().for_each(|host| self.touch(host));
            groups.into_iter().for_each(|group| self.touch_group(group));
        }
    }

    /// Replaces the array's settings; hosts see the effect on volumes as changes of these. Each
    /// volume, host and group is looked at once, however they are connected.
    pub(crate) fn replace_settings(&mut self, settings: Settings) {
        let are_switched = settings.offloads != self.settings.offloads;
        self.settings = settings;
        if !are_switched {
            return;
        }
        let (offloads, write_cache) = (self.settings.offloads, self.write_cache);
        for entry in self.volumes.values_mut() {
            entry.attributes = entry.record.attributes(offloads, write_cache);
        }
        let hosts = self.hosts.iter().filter(|(_, entry)| !entry.luns.is_empty());
        for host in hosts.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.touch(host);
        }
        let groups = self.host_groups.by_id.iter().filter(|(_, entry)| !entry.luns.is_empty());
        for group in groups.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.touch_group(group);
        }
    }

    pub(crate) fn remove_volume(&mut self, id: VolumeId) {
        self.host_states.remove(id);
        self.tags.replace(id, TagMap::new());
        if let Some(entry) = self.volumes.remove(&id) {
            self.volume_names.remove(&entry.record.name.key());
            if let Some(due) = entry.record.eradicate_ms {
                self.doomed.remove(&(due, id));
            }
            self.groups.values_mut().for_each(|group| group.forget(id));
        }
    }

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

    /// What a host sees has changed.
    fn touch(&mut self, host: HostId) {
        let generation = self.next_generation();
        if let Some(entry) = self.hosts.get_mut(&host) {
            entry.generation = generation;
            *entry.seen.get_mut() = None;
        }
    }

    /// What a host sees.
    pub(crate) fn lun_map(&self, host: &HostEntry) -> Arc<LunMap> {
        // When it changed last: for the host itself, or for all hosts of its group.
        let shared = self.group_of(host).map_or(0, |group| group.generation);
        let generation = host.generation.max(shared);
        let mut seen = host.seen.lock();
        if let Some(map) = seen.as_ref().filter(|map| map.generation == generation) {
            return map.clone();
        }
        let luns = self
            .luns_of(host)
            .filter_map(|(lun, id)| Some((lun, self.volumes.get(&id)?.attributes.clone())));
        let map = Arc::new(LunMap { generation, luns: luns.collect() });
        *seen = Some(map.clone());
        map
    }

    /// A volume by its name, ignoring case, unless it is destroyed.
    pub(crate) fn volume(&self, name: &str) -> Result<&VolumeEntry, Error> {
        let entry = self.any_volume(name)?;
        match entry.record.eradicate_ms {
            None => Ok(entry),
            Some(_) => Err(Error::VolumeDestroyed(entry.record.name.to_string())),
        }
    }

    /// Checks that a new volume may have this name: nobody has it, except possibly `own`.
    pub(crate) fn check_free(&self, name: &VolumeName, own: Option<VolumeId>) -> Result<(), Error> {
        match self.volume(name.as_str()) {
            Ok(other) if own != Some(other.record.id) => Err(Error::VolumeExists(name.to_string())),
            Err(destroyed @ Error::VolumeDestroyed(_)) => Err(destroyed),
            _ => Ok(()),
        }
    }

    /// A volume by its name, destroyed or not.
    pub(crate) fn any_volume(&self, name: &str) -> Result<&VolumeEntry, Error> {
        let id = self.volume_names.get(&name.to_ascii_lowercase());
        id.and_then(|id| self.volumes.get(id)).ok_or_else(|| Error::NoSuchVolume(shown(name)))
    }

    /// A host by its name, ignoring case.
    pub(crate) fn host(&self, name: &str) -> Result<(HostId, &HostEntry), Error> {
        let id = self.host_names.get(&name.to_ascii_lowercase());
        let entry = id.and_then(|id| Some((*id, self.hosts.get(id)?)));
        entry.ok_or_else(|| Error::NoSuchHost(shown(name)))
    }
}

/// A name from a request, fit to be shown on one line.
pub fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}
