//! All objects in memory, indexed for the questions that are asked of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use block::{LogicalBlockSize, LunMap, Offloads, SectorCount, VolumeAttributes, VolumeId};
use parking_lot::Mutex;

use crate::backing::Backing;
use crate::identity::Serial;
use crate::name::{HostName, InitiatorName, VolumeName};
use crate::record::{self, ReservationPart, Stored};
use crate::reservations::Reservations;
use crate::{Chap, CompanyId, Error, LUN_MAX, LUN_MIN, Settings};

/// Names a host; durable, so that a renamed host keeps its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostId(pub(crate) u64);

/// A volume as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeRecord {
    pub(crate) id: VolumeId,
    pub(crate) name: VolumeName,
    pub(crate) size: SectorCount,
    pub(crate) logical_block: LogicalBlockSize,
    pub(crate) company_id: CompanyId,
    pub(crate) serial: Serial,
    pub(crate) created_ms: u64,
    /// Its own setting; the array's holds besides.
    pub(crate) offloads: Offloads,
}

impl VolumeRecord {
    fn attributes(&self, array: Offloads, write_cache: bool) -> Arc<VolumeAttributes> {
        Arc::new(VolumeAttributes {
            id: self.id,
            size: self.size,
            logical_block: self.logical_block,
            naa: self.serial.naa(self.company_id),
            serial: self.serial.to_string(),
            write_cache,
            offloads: self.offloads.and(array),
        })
    }
}

/// A host as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: HostName,
    pub(crate) initiators: Vec<InitiatorName>,
    pub(crate) chap: Option<Chap>,
    pub(crate) created_ms: u64,
}

/// A volume with what is derived from it.
pub(crate) struct VolumeEntry {
    pub(crate) record: VolumeRecord,
    pub(crate) attributes: Arc<VolumeAttributes>,
    pub(crate) hosts: BTreeMap<HostId, u16>,
}

/// A host with what is derived from it.
pub(crate) struct HostEntry {
    pub(crate) host: Host,
    pub(crate) luns: BTreeMap<u16, VolumeId>,
    /// The LUNs that are free below the highest used one.
    gaps: BTreeSet<u16>,
    /// When what it sees changed last.
    pub(crate) generation: u64,
    /// What it sees, built when somebody looks: a row of changes costs one map, not many.
    seen: Mutex<Option<Arc<LunMap>>>,
}

impl HostEntry {
    pub(crate) fn new(host: Host, generation: u64) -> Self {
        let (luns, gaps) = (BTreeMap::new(), BTreeSet::new());
        Self { host, luns, gaps, generation, seen: Mutex::new(None) }
    }

    /// The lowest LUN that no volume has.
    pub(crate) fn free_lun(&self) -> Option<u16> {
        self.gaps.first().copied().or_else(|| {
            let next = self.luns.last_key_value().map_or(LUN_MIN, |(last, _)| last + 1);
            (next <= LUN_MAX).then_some(next)
        })
    }

    fn take_lun(&mut self, lun: u16, volume: VolumeId) {
        let next = self.luns.last_key_value().map_or(LUN_MIN, |(last, _)| last + 1);
        self.gaps.extend(next..lun.max(next));
        self.gaps.remove(&lun);
        self.luns.insert(lun, volume);
    }

    fn free_up_lun(&mut self, lun: u16) {
        self.luns.remove(&lun);
        let next = self.luns.last_key_value().map_or(LUN_MIN, |(last, _)| last + 1);
        if lun < next {
            self.gaps.insert(lun);
        } else {
            self.gaps.split_off(&next);
        }
    }
}

/// All objects.
pub(crate) struct State {
    pub(crate) settings: Settings,
    pub(crate) pool_id: [u8; 16],
    pub(crate) write_cache: bool,
    pub(crate) volumes: HashMap<VolumeId, VolumeEntry>,
    /// By name in lower case.
    pub(crate) volume_names: BTreeMap<String, VolumeId>,
    pub(crate) hosts: BTreeMap<HostId, HostEntry>,
    /// By name in lower case.
    pub(crate) host_names: BTreeMap<String, HostId>,
    pub(crate) initiators: HashMap<InitiatorName, HostId>,
    /// What is kept of reservations, for volumes that are there.
    pub(crate) reservations: HashMap<VolumeId, Reservations>,
    pub(crate) connection_count: usize,
    /// The array's own volume, if the pool has one yet.
    pub(crate) token_volume: Option<VolumeId>,
    pub(crate) next_host_id: u64,
    /// One more with each change that an initiator could notice.
    pub(crate) generation: u64,
    /// When an initiator was taken away last: what initiators without a host see has this.
    pub(crate) removal_generation: u64,
}

impl State {
    fn empty(settings: Settings, pool_id: [u8; 16], write_cache: bool) -> Self {
        Self {
            settings,
            pool_id,
            write_cache,
            volumes: HashMap::new(),
            volume_names: BTreeMap::new(),
            hosts: BTreeMap::new(),
            host_names: BTreeMap::new(),
            initiators: HashMap::new(),
            reservations: HashMap::new(),
            connection_count: 0,
            token_volume: None,
            next_host_id: 1,
            generation: 1,
            removal_generation: 1,
        }
    }

    /// Everything that is stored. Each object is checked against the others, as if it was new.
    pub(crate) fn load(backing: &dyn Backing, write_cache: bool) -> Result<Self, Error> {
        let pool_id = backing.pool_status().pool_id;
        let mut state = Self::empty(Settings::defaults(&pool_id)?, pool_id, write_cache);
        let mut connections = Vec::new();
        let mut reservations: BTreeMap<VolumeId, Vec<ReservationPart>> = BTreeMap::new();
        for (key, value) in backing.config() {
            match record::decode(&key, &value, &pool_id)? {
                Stored::Settings(settings) => state.settings = settings,
                Stored::Volume(volume) => state.load_volume(backing, volume)?,
                Stored::Host(id, host) => state.load_host(id, host)?,
                Stored::Connection(host, volume, lun) => connections.push((host, volume, lun)),
                Stored::TokenVolume(id) => state.load_token_volume(backing, id)?,
                Stored::Reservations(volume, number, part) => {
                    let parts = reservations.entry(volume).or_default();
                    if number != parts.len() as u64 {
                        return Err(no_reservations(volume)); // keys come in their order
                    }
                    parts.push(part);
                }
            }
        }
        for (host, volume, lun) in connections {
            state.load_connection(host, volume, lun)?;
        }
        for (volume, parts) in reservations {
            let kept = Reservations::from_parts(parts).ok_or_else(|| no_reservations(volume))?;
            if !state.volumes.contains_key(&volume) {
                return Err(no_reservations(volume));
            }
            state.reservations.insert(volume, kept);
        }
        Ok(state)
    }

    fn load_volume(&mut self, backing: &dyn Backing, volume: VolumeRecord) -> Result<(), Error> {
        let name = volume.name.to_string();
        let stored = backing.volume_status(volume.id);
        if stored.map(|status| status.size) != Some(volume.size) {
            let what = format!("volume {name} is not in the store with the size it should have");
            return Err(Error::Damaged(what));
        }
        if self.volume_names.contains_key(&volume.name.key()) {
            return Err(Error::Damaged(format!("two volumes are called {name}")));
        }
        self.insert_volume(volume);
        Ok(())
    }

    fn load_token_volume(&mut self, backing: &dyn Backing, id: VolumeId) -> Result<(), Error> {
        if backing.volume_status(id).is_none() {
            return Err(Error::Damaged("the array's own volume is not in the store".into()));
        }
        self.token_volume = Some(id);
        Ok(())
    }

    fn load_host(&mut self, id: HostId, host: Host) -> Result<(), Error> {
        let taken = host.initiators.iter().find(|name| self.initiators.contains_key(name));
        if let Some(taken) = taken {
            return Err(Error::Damaged(format!("two hosts have the initiator {taken}")));
        }
        if self.host_names.contains_key(&host.name.key()) {
            return Err(Error::Damaged(format!("two hosts are called {}", host.name)));
        }
        self.insert_host(id, host);
        Ok(())
    }

    fn load_connection(&mut self, host: HostId, volume: VolumeId, lun: u16) -> Result<(), Error> {
        let known = self.volumes.contains_key(&volume);
        match self.hosts.get(&host) {
            Some(entry) if known && !entry.luns.contains_key(&lun) => {
                self.connect(host, volume, lun);
                Ok(())
            }
            _ => {
                let what = format!("host {}, LUN {lun} and volume {volume} don't fit", host.0);
                Err(Error::Damaged(what))
            }
        }
    }

    pub(crate) fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    pub(crate) fn insert_volume(&mut self, record: VolumeRecord) {
        let attributes = record.attributes(self.settings.offloads, self.write_cache);
        self.volume_names.insert(record.name.key(), record.id);
        let entry = VolumeEntry { attributes, record, hosts: BTreeMap::new() };
        self.volumes.insert(entry.record.id, entry);
    }

    /// Gives a volume its new name, size or offloads; hosts that see it are told of the latter.
    pub(crate) fn replace_volume(&mut self, record: VolumeRecord) {
        let (offloads, write_cache) = (self.settings.offloads, self.write_cache);
        let Some(entry) = self.volumes.get_mut(&record.id) else { return };
        self.volume_names.remove(&entry.record.name.key());
        self.volume_names.insert(record.name.key(), record.id);
        let attributes = record.attributes(offloads, write_cache);
        let is_noticed = attributes != entry.attributes;
        entry.attributes = attributes;
        entry.record = record;
        if is_noticed {
            let hosts: Vec<HostId> = entry.hosts.keys().copied().collect();
            hosts.into_iter().for_each(|host| self.touch(host));
        }
    }

    /// Gives the array its new settings; what they change of volumes is told as theirs.
    pub(crate) fn replace_settings(&mut self, settings: Settings) {
        let are_switched = settings.offloads != self.settings.offloads;
        self.settings = settings;
        if are_switched {
            let records = self.volumes.values().map(|entry| entry.record.clone());
            for record in records.collect::<Vec<_>>() {
                self.replace_volume(record);
            }
        }
    }

    pub(crate) fn remove_volume(&mut self, id: VolumeId) {
        self.reservations.remove(&id);
        if let Some(entry) = self.volumes.remove(&id) {
            self.volume_names.remove(&entry.record.name.key());
        }
    }

    pub(crate) fn insert_host(&mut self, id: HostId, host: Host) {
        let generation = self.next_generation();
        self.next_host_id = self.next_host_id.max(id.0.saturating_add(1));
        self.host_names.insert(host.name.key(), id);
        self.initiators.extend(host.initiators.iter().map(|name| (name.clone(), id)));
        self.hosts.insert(id, HostEntry::new(host, generation));
    }

    /// Gives a host its new name, initiators and secrets.
    pub(crate) fn replace_host(&mut self, id: HostId, host: Host) {
        let Some(entry) = self.hosts.get_mut(&id) else { return };
        self.host_names.remove(&entry.host.name.key());
        self.host_names.insert(host.name.key(), id);
        for name in &entry.host.initiators {
            self.initiators.remove(name);
        }
        self.initiators.extend(host.initiators.iter().map(|name| (name.clone(), id)));
        entry.host = host;
        self.touch(id);
        self.removal_generation = self.generation;
    }

    pub(crate) fn remove_host(&mut self, id: HostId) {
        let Some(entry) = self.hosts.remove(&id) else { return };
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
        let mut seen = host.seen.lock();
        if let Some(map) = seen.as_ref() {
            return map.clone();
        }
        let luns = host
            .luns
            .iter()
            .filter_map(|(lun, volume)| Some((*lun, self.volumes.get(volume)?.attributes.clone())));
        let map = Arc::new(LunMap { generation: host.generation, luns: luns.collect() });
        *seen = Some(map.clone());
        map
    }

    /// A volume by its name, whatever its case.
    pub(crate) fn volume(&self, name: &str) -> Result<&VolumeEntry, Error> {
        let id = self.volume_names.get(&name.to_ascii_lowercase());
        id.and_then(|id| self.volumes.get(id)).ok_or_else(|| Error::NoSuchVolume(shown(name)))
    }

    /// A host by its name, whatever its case.
    pub(crate) fn host(&self, name: &str) -> Result<(HostId, &HostEntry), Error> {
        let id = self.host_names.get(&name.to_ascii_lowercase());
        let entry = id.and_then(|id| Some((*id, self.hosts.get(id)?)));
        entry.ok_or_else(|| Error::NoSuchHost(shown(name)))
    }
}

fn no_reservations(volume: VolumeId) -> Error {
    Error::Damaged(format!("the reservations of volume {volume} don't fit"))
}

/// A name that somebody asked for, fit to be shown on one line.
fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}
