//! Lists of snapshots. There may be a hundred thousand, most of which a filter may exclude.

use std::ops::Bound;

use block::{SECTOR_BYTES, VolumeId};

use super::types::{SnapshotFilter, SnapshotInfo};
use crate::array::{Array, LOOKED_AT_ONCE};
use crate::error::Error;
use crate::objects::groups::GroupId;
use crate::objects::snapshots::SnapshotRecord;
use crate::state::State;
use crate::tables::volumes::VolumeEntry;
use crate::values::identity::Serial;

/// A snapshot that a filter may include or exclude. Properties are looked up on demand.
#[derive(Clone, Copy)]
pub struct SnapshotGlance<'a> {
    array: &'a Array,
    id: VolumeId,
    record: &'a SnapshotRecord,
    volume: &'a VolumeEntry,
    state: &'a State,
}

impl SnapshotGlance<'_> {
    /// Returns its name: `VOLUME.SUFFIX`, or `GROUP.SUFFIX.VOLUME` if it was made with a group.
    pub fn name(&self) -> String {
        self.state.snapshot_name(self.record, self.volume)
    }

    /// Returns the size of the volume when it was made, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.record.size.0 * SECTOR_BYTES
    }

    /// Returns when it was made, in milliseconds since 1970.
    pub fn created_ms(&self) -> u64 {
        self.record.created_ms
    }

    /// Returns whether it is destroyed, by itself or with its volume or its group.
    pub fn is_destroyed(&self) -> bool {
        self.state.doom_of(self.record).is_some()
    }

    /// Returns the bytes of it that hosts had written and not unmapped.
    pub fn mapped_bytes(&self) -> u64 {
        self.array.mapped_bytes(self.id)
    }

    /// Returns the stored bytes that eradicating it alone would free; `None` if it was made after
    /// the last pass of accounting.
    pub fn unique_bytes(&self) -> Option<u64> {
        Some(self.array.object_space(self.id)?.space.unique_bytes)
    }
}

/// Part of a list.
#[derive(Clone, Debug)]
pub struct Looked<T> {
    /// The items to show.
    pub items: Vec<T>,
    /// The last examined item, if there may be more after it.
    pub next: Option<String>,
}

impl Array {
    /// Returns up to `limit` snapshots in the order of their volumes' names, then of their
    /// suffixes, after `after`.
    ///
    /// # Errors
    /// `no_such_volume` for the volume of the filter.
    pub fn snapshots(
        &self,
        filter: &SnapshotFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<SnapshotInfo>, Error> {
        let (mut found, mut after) = (Vec::new(), after.map(str::to_owned));
        loop {
            let mut room = limit - found.len();
            let mut has_room = |_: &SnapshotGlance<'_>| {
                let is_room = room > 0;
                room -= usize::from(is_room);
                is_room
            };
            let looked =
                self.look_at_snapshots(filter, after.as_deref(), LOOKED_AT_ONCE, &mut has_room)?;
            found.extend(looked.items);
            match looked.next {
                Some(next) if found.len() < limit => after = Some(next),
                _ => return Ok(found),
            }
        }
    }

    /// Examines `limit` snapshots, in the order of [`Array::snapshots`], and returns those that
    /// match both filters. So the time for which the lock is held does not depend on the filter.
    ///
    /// # Errors
    /// `no_such_volume` for the volume of the filter.
    pub fn look_at_snapshots(
        &self,
        filter: &SnapshotFilter,
        after: Option<&str>,
        limit: usize,
        is_worth: &mut dyn FnMut(&SnapshotGlance<'_>) -> bool,
    ) -> Result<Looked<SnapshotInfo>, Error> {
        let guard = self.read();
        let state = &*guard;
        let wanted = Wanted::of(state, filter)?;
        let (mut items, mut count, mut next) = (Vec::new(), 0, None);
        for glance in self.glances(state, &wanted, after).take(limit) {
            count += 1;
            if count == limit {
                next = Some(glance.name());
            }
            if wanted.fits(&glance) && is_worth(&glance) {
                items.extend(self.snapshot_info(state, glance.id));
            }
        }
        Ok(Looked { items, next })
    }

    /// Returns the shown form of a snapshot.
    pub(crate) fn snapshot_info(&self, state: &State, id: VolumeId) -> Option<SnapshotInfo> {
        let record = state.snapshots().get(&id)?;
        let volume = state.volumes().get(&record.source)?;
        Some(SnapshotInfo {
            id,
            name: state.snapshot_name(record, volume),
            volume: volume.record.name.to_string(),
            volume_id: volume.record.id,
            group: record.group.and_then(|id| Some(state.groups().get(&id)?.name.to_string())),
            suffix: record.suffix.to_string(),
            size_bytes: record.size.0 * SECTOR_BYTES,
            serial: Serial::new(state.pool_id(), id)?.to_string(),
            created_ms: record.created_ms,
            mapped_bytes: self.mapped_bytes(id),
            space: self.object_space(id),
            eradicate_ms: state.shown_doom(state.doom_of(record)),
        })
    }

    fn mapped_bytes(&self, id: VolumeId) -> u64 {
        self.backing().volume_status(id).map_or(0, |status| status.mapped_bytes)
    }

    /// Returns all snapshots after `after`, or those of one volume.
    fn glances<'a>(
        &'a self,
        state: &'a State,
        wanted: &Wanted<'a>,
        after: Option<&str>,
    ) -> impl Iterator<Item = SnapshotGlance<'a>> + use<'a> {
        let array = self;
        let parsed = after.and_then(|name| state.parse_snapshot(name));
        let (after_volume, after_key) = parsed.unwrap_or_default();
        let volumes: Box<dyn Iterator<Item = &VolumeEntry>> = match wanted.volume {
            Some(volume) => Box::new(std::iter::once(volume)),
            None => {
                let names = state.volume_names().range(after_volume.clone()..);
                Box::new(names.filter_map(|(_, id)| state.volumes().get(id)))
            }
        };
        let is_begun = after.is_some();
        volumes.flat_map(move |volume| {
            let from = match is_begun && volume.record.name.key() == after_volume {
                true => Bound::Excluded(after_key.clone()),
                false => Bound::Unbounded,
            };
            let ids = volume.snapshots.range((from, Bound::Unbounded));
            ids.filter_map(move |(_, id)| {
                Some(SnapshotGlance {
                    array,
                    id: *id,
                    record: state.snapshots().get(id)?,
                    volume,
                    state,
                })
            })
        })
    }
}

/// A filter with its names resolved.
struct Wanted<'a> {
    volume: Option<&'a VolumeEntry>,
    /// `Some(None)` if the group does not exist.
    group: Option<Option<GroupId>>,
    destroyed: Option<bool>,
}

impl<'a> Wanted<'a> {
    fn of(state: &'a State, filter: &SnapshotFilter) -> Result<Self, Error> {
        let group = filter.group.as_ref().map(|name| name.to_ascii_lowercase());
        Ok(Self {
            volume: filter.volume.as_deref().map(|name| state.any_volume(name)).transpose()?,
            group: group.map(|name| state.group_names().get(&name).copied()),
            destroyed: filter.destroyed,
        })
    }

    fn fits(&self, glance: &SnapshotGlance<'_>) -> bool {
        let is_of_group = self.group.is_none_or(|id| id.is_some() && id == glance.record.group);
        is_of_group && self.destroyed.is_none_or(|destroyed| destroyed == glance.is_destroyed())
    }
}
