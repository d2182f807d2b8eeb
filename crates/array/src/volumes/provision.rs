//! Volumes: create, show, resize, rename.

use std::ops::Bound;

use block::request::limits::VOLUME_BYTES_MAX;
use block::{BLOCK_BYTES, Offloads, SECTOR_BYTES, SectorCount, VolumeId, VolumeLimits};
use store::{Change, VolumeChange};

use super::types::{NewVolume, SourceInfo, VolumeInfo, VolumeUpdate};
use crate::access::{ConnectTo, FirstLuns};
use crate::array::{Array, LOOKED_AT_ONCE};
use crate::container_kind::ContainerKind;
use crate::error::Error;
use crate::objects::containers::ContainerId;
use crate::objects::settings::switched;
use crate::objects::volumes::{VOLUMES_MAX, VolumeRecord};
use crate::record;
use crate::state::State;
use crate::tables::volumes::VolumeEntry;
use crate::values::identity::{Serial, naa_text};
use crate::values::limits;
use crate::values::name::VolumeName;
use crate::values::reduction::Reduction;

/// Checks a size, and converts it to sectors.
fn sectors(size_bytes: u64) -> Result<SectorCount, Error> {
    let refuse = |text: String| Err(Error::invalid("invalid_size", text));
    if size_bytes == 0 || size_bytes > VOLUME_BYTES_MAX {
        return refuse(format!(
            "A volume has from {BLOCK_BYTES} bytes to 64 TiB; {size_bytes} bytes were requested."
        ));
    }
    if !size_bytes.is_multiple_of(BLOCK_BYTES) {
        let next = size_bytes.next_multiple_of(BLOCK_BYTES);
        return refuse(format!(
            "A volume's size is a multiple of {BLOCK_BYTES} bytes; not {size_bytes}: try {next}."
        ));
    }
    Ok(SectorCount(size_bytes / SECTOR_BYTES))
}

impl Array {
    /// Creates a volume; durable when it returns.
    ///
    /// # Errors
    /// `volume_exists`, `invalid_size`, `limit_reached`, and those of the store.
    pub fn create_volume(&self, new: NewVolume) -> Result<VolumeInfo, Error> {
        let plan = |state: &State| self.plan_volume(state, 0, new);
        self.change(plan, |state, record| self.show_new_volume(state, record))
    }

    /// Creates a volume with its first connections in one commit.
    ///
    /// # Errors
    /// Those of [`Array::create_volume`]; `no_such_host`, `no_such_host_group`; `named_twice`, also
    /// for a host of a group that is named; `limit_reached`.
    pub fn create_connected_volume(
        &self,
        new: NewVolume,
        to: &ConnectTo,
    ) -> Result<VolumeInfo, Error> {
        let plan = |state: &State| {
            let luns = FirstLuns::plan(state, to)?;
            let (mut change, record) = self.plan_volume(state, 0, new)?;
            luns.add(record.id, &mut change)?;
            Ok((change, (record, luns)))
        };
        self.change(plan, |state, (record, luns)| {
            let id = record.id;
            self.show_new_volume(state, record);
            luns.show(id, state);
            self.volume_info(state, &state.volumes()[&id])
        })
    }

    /// Plans a new volume. `before`: the number of volumes that the same commit creates before this
    /// one.
    pub(crate) fn plan_volume(
        &self,
        state: &State,
        before: usize,
        new: NewVolume,
    ) -> Result<(Change, VolumeRecord), Error> {
        let size = sectors(new.size_bytes)?;
        limits::check(new.limits)?;
        state.check_free(&new.name, None)?;
        let name = state.placed(&new.name, Some(before))?;
        let (id, serial) = self.allocate_volume(state, before)?;
        let record = VolumeRecord {
            id,
            name,
            size,
            logical_block: new.logical_block,
            company_id: state.settings().company_id,
            serial,
            created_ms: new.created_ms,
            offloads: Offloads::ALL,
            limits: new.limits,
            source: None,
            eradicate_ms: None,
        };
        let mut volumes = vec![VolumeChange::Create { id, size }];
        if new.reduction != Reduction::default() {
            volumes.push(VolumeChange::Handling { id, handling: new.reduction.into() });
        }
        let change = Change {
            volumes,
            config: vec![(record::volume_key(id), Some(record::volume(&record)?))],
            ..Change::default()
        };
        Ok((change, record))
    }

    /// Allocates the id and the serial of one more volume, if the limit allows it.
    pub(crate) fn allocate_volume(
        &self,
        state: &State,
        before: usize,
    ) -> Result<(VolumeId, Serial), Error> {
        if state.volumes().len() + before >= VOLUMES_MAX {
            return Err(Error::Limit { what: "volumes", limit: VOLUMES_MAX });
        }
        let id = self.backing().allocate_volume_id();
        let serial = Serial::new(state.pool_id(), id)
            .ok_or(Error::Limit { what: "volumes ever created", limit: 1 << 40 })?;
        Ok((id, serial))
    }

    pub(crate) fn show_new_volume(&self, state: &mut State, record: VolumeRecord) -> VolumeInfo {
        let id = record.id;
        let tags = record.source.as_ref().map(|source| state.tags.copied(source.id));
        state.tags.replace(id, tags.unwrap_or_default());
        state.insert_volume(record);
        self.volume_info(state, &state.volumes()[&id])
    }

    pub(crate) fn show_volume(&self, state: &mut State, record: VolumeRecord) -> VolumeInfo {
        let id = record.id;
        state.replace_volume(record);
        self.volume_info(state, &state.volumes()[&id])
    }

    /// Resizes a volume. A smaller size discards data, and requires `truncate`.
    ///
    /// # Errors
    /// `no_such_volume`, `invalid_size`, `would_truncate`, and those of the store.
    pub fn resize_volume(
        &self,
        name: &str,
        size_bytes: u64,
        truncate: bool,
    ) -> Result<VolumeInfo, Error> {
        let size_bytes = Some(size_bytes);
        self.update_volume(name, VolumeUpdate { size_bytes, truncate, ..Default::default() })
    }

    /// Renames a volume. Its connections, serial and data do not change.
    ///
    /// # Errors
    /// `no_such_volume`, `volume_exists`, and those of the store.
    pub fn rename_volume(&self, name: &str, new_name: VolumeName) -> Result<VolumeInfo, Error> {
        self.update_volume(name, VolumeUpdate { name: Some(new_name), ..Default::default() })
    }

    /// Changes a volume's name, size, offloads, reduction, or several of them at once.
    ///
    /// # Errors
    /// Those of [`Array::resize_volume`] and [`Array::rename_volume`].
    pub fn update_volume(&self, name: &str, update: VolumeUpdate) -> Result<VolumeInfo, Error> {
        let plan = |state: &State| self.plan_update(state, 0, name, &update);
        self.change(plan, |state, record| self.show_volume(state, record))
    }

    /// Plans a change of a volume. `before`: the number of volumes that the same commit changes
    /// before this one.
    pub(crate) fn plan_update(
        &self,
        state: &State,
        before: usize,
        name: &str,
        update: &VolumeUpdate,
    ) -> Result<(Change, VolumeRecord), Error> {
        let size = update.size_bytes.map(sectors).transpose()?;
        let old = &state.volume(name)?.record;
        let mut record = old.clone();
        let moved = update.placed.as_ref().map(|placed| placed.name_of(&old.name));
        if let Some(new_name) = moved.or_else(|| update.name.clone()) {
            state.check_free(&new_name, Some(old.id))?;
            let both = new_name.container().zip(old.name.container());
            let stays = both
                .is_some_and(|((is, new), (was, old))| is == was && new.eq_ignore_ascii_case(old));
            record.name = state.placed(&new_name, (!stays).then_some(before))?;
        }
        record.offloads = switched(old.offloads, &update.offloads);
        record.limits = update.limits.of(old.limits);
        limits::check(record.limits)?;
        record.size = size.unwrap_or(old.size);
        if record.size < old.size && !update.truncate {
            let size_bytes = old.size.0 * SECTOR_BYTES;
            return Err(Error::WouldTruncate { volume: old.name.to_string(), size_bytes });
        }
        let (id, size) = (record.id, record.size);
        let reduction = Reduction::of(self.backing().volume_status(id));
        let wanted = update.reduction.of(reduction);
        let mut change = Change::default();
        if wanted != reduction {
            change.volumes.push(VolumeChange::Handling { id, handling: wanted.into() });
        }
        if record.size != old.size {
            change.volumes.push(VolumeChange::Resize { id, size });
        }
        if record != *old {
            let row = record::volume(&record)?;
            change.config.push((record::volume_key(id), Some(row)));
        }
        Ok((change, record))
    }

    /// Returns a volume, destroyed or not.
    ///
    /// # Errors
    /// `no_such_volume`.
    pub fn volume(&self, name: &str) -> Result<VolumeInfo, Error> {
        let state = self.read();
        state.any_volume(name).map(|entry| self.volume_info(&state, entry))
    }

    /// Returns the id of the volume with this name, destroyed or not, if it exists.
    pub fn volume_id(&self, name: &str) -> Option<VolumeId> {
        self.read().any_volume(name).ok().map(|entry| entry.record.id)
    }

    /// Returns the name of the volume with this id, if it exists.
    pub fn volume_name(&self, id: VolumeId) -> Option<String> {
        self.read().volumes().get(&id).map(|entry| entry.record.name.to_string())
    }

    /// Returns up to `limit` volumes in the order of their names (ignoring case), after `after`:
    /// only destroyed ones, only the others, or (`None`) both.
    pub fn volumes(
        &self,
        after: Option<&str>,
        destroyed: impl Into<Option<bool>>,
        limit: usize,
    ) -> Vec<VolumeInfo> {
        let destroyed: Option<bool> = destroyed.into();
        let (mut found, mut last) = (Vec::new(), after.map(str::to_ascii_lowercase));
        loop {
            let state = self.read();
            let from = last.take().map_or(Bound::Unbounded, Bound::Excluded);
            let mut rows = state.volume_names().range((from, Bound::Unbounded));
            for (name, id) in rows.by_ref().take(LOOKED_AT_ONCE) {
                last = Some(name.clone());
                let Some(entry) = state.volumes().get(id) else { continue };
                if destroyed.is_none_or(|d| entry.record.eradicate_ms.is_some() == d) {
                    if found.len() == limit {
                        return found;
                    }
                    found.push(self.volume_info(&state, entry));
                }
            }
            if last.is_none() || found.len() == limit {
                return found;
            }
        }
    }

    pub(crate) fn volume_info(&self, state: &State, entry: &VolumeEntry) -> VolumeInfo {
        let record = &entry.record;
        let status = self.backing().volume_status(record.id);
        VolumeInfo {
            id: record.id,
            name: record.name.to_string(),
            size_bytes: record.size.0 * SECTOR_BYTES,
            logical_block: record.logical_block,
            serial: record.serial.to_string(),
            naa: naa_text(&entry.attributes.naa),
            created_ms: record.created_ms,
            mapped_bytes: status.map_or(0, |status| status.mapped_bytes),
            data_bytes: status.map_or(0, |status| status.data_bytes),
            space: self.object_space(record.id),
            snapshots_bytes: self.unique_bytes_of(entry.snapshots.values().copied()),
            offloads: record.offloads,
            offloads_in_effect: entry.attributes.offloads,
            reduction: Reduction::of(status),
            limits: record.limits,
            source: record.source.as_ref().map(|source| SourceInfo {
                id: source.id,
                name: state.name_of(source.id).unwrap_or_else(|| source.name.clone()),
            }),
            connection_count: state.host_count_of(entry),
            snapshot_count: state.live_snapshots(entry),
            eradicate_ms: state.shown_doom(record.eradicate_ms),
        }
    }

    /// Returns the limits of a volume group, by its number; no limits if it does not exist. Never
    /// waits for a commit.
    pub fn volume_group_limits(&self, number: u64) -> VolumeLimits {
        let id = ContainerId { kind: ContainerKind::VolumeGroup, number };
        self.read().containers.get(id).map_or(VolumeLimits::NONE, |group| group.limits)
    }

    /// Returns the volume groups that have limits, with their limits.
    pub fn volume_group_limits_by_name(&self) -> Vec<(String, VolumeLimits)> {
        let state = self.read();
        let groups = state.containers.after(ContainerKind::VolumeGroup, None);
        let limited = groups.filter(|(_, group)| !group.limits.is_none());
        limited.map(|(_, group)| (group.name.to_string(), group.limits)).collect()
    }

    /// Returns the limits of a volume; no limits if it does not exist. Never waits for a commit.
    pub fn volume_limits(&self, id: VolumeId) -> VolumeLimits {
        self.read().volumes().get(&id).map_or(VolumeLimits::NONE, |entry| entry.record.limits)
    }
}
