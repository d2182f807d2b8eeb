//! Volumes, by id and by name.

use block::{LogicalBlockSize, SectorCount, VolumeId};

use super::State;
use crate::error::Error;
use crate::objects::host_groups::HostGroupId;
use crate::objects::hosts::HostId;
use crate::objects::tags::TagMap;
use crate::objects::volumes::VolumeRecord;
use crate::tables::volumes::VolumeEntry;
use crate::values::name::VolumeName;
use crate::values::text::shown;

/// The source of a volume: a volume or a snapshot.
pub(crate) struct Source {
    pub(crate) id: VolumeId,
    pub(crate) name: String,
    pub(crate) size: SectorCount,
    pub(crate) logical_block: LogicalBlockSize,
}

impl State {
    pub(crate) fn insert_volume(&mut self, record: VolumeRecord) {
        let group = self.containers.limits_of(&record.name);
        let attributes = record.attributes(self.settings.offloads, self.write_cache, group);
        self.volume_names.insert(record.name.key(), record.id);
        self.doomed.extend(record.eradicate_ms.map(|due| (due, record.id)));
        self.volumes.insert(record.id, VolumeEntry::new(record, attributes));
    }

    /// Replaces a volume's record; a change to its size, offloads or limits, or to those of its
    /// group, changes the attributes that hosts see.
    pub(crate) fn replace_volume(&mut self, record: VolumeRecord) {
        let (offloads, write_cache) = (self.settings.offloads, self.write_cache);
        let id = record.id;
        let group = self.containers.limits_of(&record.name);
        let Some(entry) = self.volumes.get_mut(&id) else { return };
        self.volume_names.remove(&entry.record.name.key());
        self.volume_names.insert(record.name.key(), record.id);
        let attributes = record.attributes(offloads, write_cache, group);
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

    /// Returns a volume by its name, ignoring case, unless it is destroyed.
    pub(crate) fn volume(&self, name: &str) -> Result<&VolumeEntry, Error> {
        let entry = self.any_volume(name)?;
        match entry.record.eradicate_ms {
            None => Ok(entry),
            Some(_) => Err(Error::VolumeDestroyed(entry.record.name.to_string())),
        }
    }

    /// Returns a volume by its name, destroyed or not.
    pub(crate) fn any_volume(&self, name: &str) -> Result<&VolumeEntry, Error> {
        let id = self.volume_names.get(&name.to_ascii_lowercase());
        id.and_then(|id| self.volumes.get(id)).ok_or_else(|| Error::NoSuchVolume(shown(name)))
    }

    /// Checks that a new volume may have this name: no volume has it, except possibly `own`.
    pub(crate) fn check_free(&self, name: &VolumeName, own: Option<VolumeId>) -> Result<(), Error> {
        match self.volume(name.as_str()) {
            Ok(other) if own != Some(other.record.id) => Err(Error::VolumeExists(name.to_string())),
            Err(destroyed @ Error::VolumeDestroyed(_)) => Err(destroyed),
            _ => Ok(()),
        }
    }

    /// Returns the volumes that are not destroyed.
    pub(crate) fn live_volumes(&self) -> impl Iterator<Item = &VolumeEntry> {
        self.volumes.values().filter(|entry| entry.record.eradicate_ms.is_none())
    }

    /// Returns a volume or a snapshot by its name, unless it is destroyed.
    pub(crate) fn source(&self, name: &str) -> Result<Source, Error> {
        if !name.contains('.') {
            let VolumeRecord { id, name, size, logical_block, .. } = &self.volume(name)?.record;
            let (id, name) = (*id, name.to_string());
            return Ok(Source { id, name, size: *size, logical_block: *logical_block });
        }
        let (id, snapshot, volume) = self.snapshot(name)?;
        let logical_block = volume.record.logical_block;
        Ok(Source {
            id,
            name: self.snapshot_name(snapshot, volume),
            size: snapshot.size,
            logical_block,
        })
    }

    /// Returns the name of a volume or a snapshot.
    pub(crate) fn name_of(&self, id: VolumeId) -> Option<String> {
        if let Some(entry) = self.volumes.get(&id) {
            return Some(entry.record.name.to_string());
        }
        let snapshot = self.snapshots.get(&id)?;
        Some(self.snapshot_name(snapshot, self.volumes.get(&snapshot.source)?))
    }
}
