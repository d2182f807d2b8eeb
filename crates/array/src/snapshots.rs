//! Snapshots of volumes, one by one or several at the same moment.
//!
//! A snapshot belongs to its volume: its name is made of the volume's, it goes and comes with it,
//! and it never outlives it. What is stored of it are the parts of its name, so that a volume with
//! ten thousand of them is renamed by one record.

mod types;

use std::collections::BTreeSet;
use std::ops::Bound;

use block::{SECTOR_BYTES, SectorCount, VolumeId};
use store::{Change, VolumeChange};

pub use types::{NewSnapshots, SnapshotFilter, SnapshotInfo, SnapshotSource};

use crate::groups::{Group, GroupId};
use crate::identity::Serial;
use crate::name::{GroupName, Suffix};
use crate::state::{State, VolumeEntry, shown};
use crate::{Array, Backing, Error, GROUP_MEMBERS_MAX, SNAPSHOTS_MAX, record};

/// A snapshot as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotRecord {
    /// The volume.
    pub(crate) source: VolumeId,
    pub(crate) suffix: Suffix,
    /// The group that it was made with, by its name at that time.
    pub(crate) group: Option<GroupName>,
    /// The size of the volume at that moment.
    pub(crate) size: SectorCount,
    pub(crate) created_ms: u64,
    /// If it is destroyed by itself: when it is eradicated, in milliseconds since 1970.
    pub(crate) eradicate_ms: Option<u64>,
}

impl SnapshotRecord {
    /// What tells it from other snapshots of its volume, in lower case.
    fn key(&self) -> String {
        match &self.group {
            None => self.suffix.key(),
            Some(group) => format!("{}.{}", group.key(), self.suffix.key()),
        }
    }

    pub(crate) fn name(&self, volume: &VolumeEntry) -> String {
        let (suffix, volume) = (&self.suffix, &volume.record.name);
        match &self.group {
            None => format!("{volume}.{suffix}"),
            Some(group) => format!("{group}.{suffix}.{volume}"),
        }
    }
}

/// The volume and the key of a snapshot's name, in lower case; `None` where it is no such name.
fn parse(name: &str) -> Option<(String, String)> {
    let name = name.to_ascii_lowercase();
    let parts: Vec<&str> = name.split('.').collect();
    match parts[..] {
        [volume, suffix] => Some((volume.to_owned(), suffix.to_owned())),
        [group, suffix, volume] => Some((volume.to_owned(), format!("{group}.{suffix}"))),
        _ => None,
    }
}

impl VolumeEntry {
    /// How many snapshots it has that are not destroyed.
    pub(crate) fn live_snapshots(&self) -> usize {
        match self.record.eradicate_ms {
            None => self.snapshots.len() - self.destroyed_snapshots,
            Some(_) => 0,
        }
    }

    /// When a snapshot of it is eradicated, if it is destroyed.
    fn doom_of(&self, snapshot: &SnapshotRecord) -> Option<u64> {
        let dooms = [self.record.eradicate_ms, snapshot.eradicate_ms];
        dooms.into_iter().flatten().min()
    }
}

impl State {
    /// The volumes that are not destroyed.
    pub(crate) fn live_volumes(&self) -> impl Iterator<Item = &VolumeEntry> {
        self.volumes.values().filter(|entry| entry.record.eradicate_ms.is_none())
    }

    /// A snapshot by its name, destroyed or not, with its volume.
    pub(crate) fn any_snapshot(
        &self,
        name: &str,
    ) -> Result<(VolumeId, &SnapshotRecord, &VolumeEntry), Error> {
        let unknown = || Error::NoSuchSnapshot(shown(name));
        let (volume, key) = parse(name).ok_or_else(unknown)?;
        let volume = self.any_volume(&volume).map_err(|_| unknown())?;
        let id = volume.snapshots.get(&key).copied().ok_or_else(unknown)?;
        let record = self.snapshots.get(&id).ok_or_else(unknown)?;
        Ok((id, record, volume))
    }

    /// A snapshot by its name that is not destroyed, and whose volume is not either.
    pub(crate) fn snapshot(
        &self,
        name: &str,
    ) -> Result<(VolumeId, &SnapshotRecord, &VolumeEntry), Error> {
        let (id, record, volume) = self.any_snapshot(name)?;
        match volume.doom_of(record) {
            None => Ok((id, record, volume)),
            Some(_) => Err(Error::SnapshotDestroyed(record.name(volume))),
        }
    }

    pub(crate) fn load_snapshot(
        &mut self,
        backing: &dyn Backing,
        id: VolumeId,
        snapshot: SnapshotRecord,
    ) -> Result<(), Error> {
        let refuse = |why: &str| Err(Error::Damaged(format!("snapshot {id} {why}")));
        let stored = backing.volume_status(id);
        if stored.map(|status| (status.size, status.snapshot)) != Some((snapshot.size, true)) {
            return refuse("is not in the store with the size it should have");
        }
        match self.volumes.get(&snapshot.source) {
            None => return refuse("is of a volume that is not there"),
            Some(volume) if volume.snapshots.contains_key(&snapshot.key()) => {
                return refuse("has the name of another");
            }
            Some(_) => {}
        }
        if Serial::new(&self.pool_id, id).is_none() {
            return refuse("has an id that is too big");
        }
        self.insert_snapshot(id, snapshot);
        Ok(())
    }

    pub(crate) fn insert_snapshot(&mut self, id: VolumeId, snapshot: SnapshotRecord) {
        let Some(volume) = self.volumes.get_mut(&snapshot.source) else { return };
        volume.snapshots.insert(snapshot.key(), id);
        if let (None, Some(number)) = (&snapshot.group, snapshot.suffix.number()) {
            volume.next_suffix = volume.next_suffix.max(number.saturating_add(1));
        }
        if let Some(due) = snapshot.eradicate_ms {
            volume.destroyed_snapshots += 1;
            self.doomed.insert((due, id));
        }
        self.snapshots.insert(id, snapshot);
    }

    pub(crate) fn remove_snapshot(&mut self, id: VolumeId) {
        let Some(snapshot) = self.snapshots.remove(&id) else { return };
        if let Some(volume) = self.volumes.get_mut(&snapshot.source) {
            volume.snapshots.remove(&snapshot.key());
            volume.destroyed_snapshots -= usize::from(snapshot.eradicate_ms.is_some());
        }
        if let Some(due) = snapshot.eradicate_ms {
            self.doomed.remove(&(due, id));
        }
    }

    /// Gives a snapshot its new suffix, or its end, or takes that back.
    pub(crate) fn replace_snapshot(&mut self, id: VolumeId, snapshot: SnapshotRecord) {
        self.remove_snapshot(id);
        self.insert_snapshot(id, snapshot);
    }

    /// The volumes of which snapshots are to be made, and their group.
    #[allow(clippy::type_complexity)]
    fn sources(
        &self,
        source: &SnapshotSource,
    ) -> Result<(Vec<&VolumeEntry>, Option<(GroupId, &Group)>), Error> {
        match source {
            SnapshotSource::Group(name) => {
                let (id, group) = self.group(name)?;
                let volumes: Vec<_> = self.members(group).collect();
                if volumes.is_empty() {
                    let text = format!("Group {} has no volumes. Add some first.", group.name);
                    return Err(Error::invalid("empty_group", text));
                }
                Ok((volumes, Some((id, group))))
            }
            SnapshotSource::Volumes(names) => {
                let volumes = names.iter().map(|name| self.volume(name));
                let volumes: Vec<_> = volumes.collect::<Result<_, _>>()?;
                let distinct: BTreeSet<_> = volumes.iter().map(|entry| entry.record.id).collect();
                if volumes.is_empty() || distinct.len() != volumes.len() {
                    let text = "Name the volumes to snapshot, each of them once.";
                    return Err(Error::invalid("invalid_volumes", text));
                }
                Ok((volumes, None))
            }
        }
    }
}

impl Array {
    /// Makes snapshots, all of one moment: what was answered before is in all of them. It takes the
    /// same time whatever the volumes hold. Durable when it returns.
    ///
    /// # Errors
    /// `no_such_volume`, `volume_destroyed`, `no_such_group`, `empty_group`, `invalid_volumes`,
    /// `snapshot_exists`, `snapshot_destroyed`, `limit_reached`, and those of the store.
    pub fn create_snapshots(&self, new: &NewSnapshots) -> Result<Vec<SnapshotInfo>, Error> {
        self.change(
            |state| self.plan_snapshots(state, new),
            |state, (made, group)| {
                if let Some((id, group)) = group {
                    state.replace_group(id, group);
                }
                let ids: Vec<VolumeId> = made.iter().map(|(id, _)| *id).collect();
                made.into_iter().for_each(|(id, record)| state.insert_snapshot(id, record));
                ids.into_iter().filter_map(|id| self.snapshot_info(state, id)).collect()
            },
        )
    }

    #[allow(clippy::type_complexity)]
    fn plan_snapshots(
        &self,
        state: &State,
        new: &NewSnapshots,
    ) -> Result<(Change, (Vec<(VolumeId, SnapshotRecord)>, Option<(GroupId, Group)>)), Error> {
        let (volumes, group) = state.sources(&new.source)?;
        if volumes.len() > GROUP_MEMBERS_MAX {
            return Err(Error::Limit { what: "snapshots at once", limit: GROUP_MEMBERS_MAX });
        }
        if state.snapshots.len() + volumes.len() > SNAPSHOTS_MAX {
            return Err(Error::Limit { what: "snapshots", limit: SNAPSHOTS_MAX });
        }
        let counted = match group {
            Some((_, group)) => group.next_suffix,
            None => volumes.iter().map(|volume| volume.next_suffix).max().unwrap_or(1),
        };
        let suffix = new.suffix.clone().unwrap_or_else(|| Suffix::counted(counted));
        let mut change = Change::default();
        let mut made = Vec::with_capacity(volumes.len());
        for volume in volumes {
            let record = SnapshotRecord {
                source: volume.record.id,
                suffix: suffix.clone(),
                group: group.map(|(_, group)| group.name.clone()),
                size: volume.record.size,
                created_ms: new.created_ms,
                eradicate_ms: None,
            };
            check_free(state, &record, volume)?;
            let (source, id) = (volume.record.id, self.backing.allocate_volume_id());
            if Serial::new(&state.pool_id, id).is_none() {
                return Err(Error::Limit { what: "volumes ever made", limit: 1 << 40 });
            }
            change.volumes.push(VolumeChange::Clone { source, id, snapshot: true });
            change.config.push((record::snapshot_key(id), Some(record::snapshot(&record)?)));
            made.push((id, record));
        }
        let counts = group.filter(|_| new.suffix.is_none());
        let group =
            counts.map(|(id, group)| (id, Group { next_suffix: counted + 1, ..group.clone() }));
        if let Some((id, group)) = &group {
            change.config.push((record::group_key(*id), Some(record::group(group)?)));
        }
        Ok((change, (made, group)))
    }

    /// Gives a snapshot another suffix. Those that were made with a group keep theirs: it is what
    /// they are found together by.
    ///
    /// # Errors
    /// `no_such_snapshot`, `snapshot_destroyed`, `snapshot_exists`, `group_snapshot`, and those of
    /// the store.
    pub fn rename_snapshot(&self, name: &str, suffix: Suffix) -> Result<SnapshotInfo, Error> {
        let plan = |state: &State| {
            let (id, old, volume) = state.snapshot(name)?;
            if old.group.is_some() {
                let text = format!(
                    "Snapshot {} was made with its group, whose name and suffix it keeps.",
                    old.name(volume)
                );
                return Err(Error::invalid("group_snapshot", text));
            }
            let new = SnapshotRecord { suffix, ..old.clone() };
            let mut change = Change::default();
            if new != *old {
                if new.key() != old.key() {
                    check_free(state, &new, volume)?;
                }
                change.config.push((record::snapshot_key(id), Some(record::snapshot(&new)?)));
            }
            Ok((change, (id, new)))
        };
        let renamed = self.change(plan, |state, (id, snapshot)| {
            state.replace_snapshot(id, snapshot);
            self.snapshot_info(state, id)
        })?;
        renamed.ok_or_else(|| Error::NoSuchSnapshot(shown(name)))
    }

    /// A snapshot, destroyed or not.
    ///
    /// # Errors
    /// `no_such_snapshot`.
    pub fn snapshot(&self, name: &str) -> Result<SnapshotInfo, Error> {
        let state = self.state.read();
        let (id, ..) = state.any_snapshot(name)?;
        self.snapshot_info(&state, id).ok_or_else(|| Error::NoSuchSnapshot(shown(name)))
    }

    /// The name of the snapshot with this id, if there is one.
    pub fn snapshot_name(&self, id: VolumeId) -> Option<String> {
        let state = self.state.read();
        let record = state.snapshots.get(&id)?;
        Some(record.name(state.volumes.get(&record.source)?))
    }

    /// Up to `limit` snapshots in the order of their volumes' names, then of what tells them apart,
    /// from the first one behind `after`.
    ///
    /// # Errors
    /// `no_such_volume` for the volume of the filter.
    pub fn snapshots(
        &self,
        filter: &SnapshotFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<SnapshotInfo>, Error> {
        let guard = self.state.read();
        let state = &*guard;
        let only = filter.volume.as_deref().map(|name| state.any_volume(name)).transpose()?;
        let group = filter.group.as_ref().map(|name| name.to_ascii_lowercase());
        let (after_volume, after_key) = after.and_then(parse).unwrap_or_default();
        let volumes: Box<dyn Iterator<Item = &VolumeEntry>> = match only {
            Some(volume) => Box::new(std::iter::once(volume)),
            None => {
                let names = state.volume_names.range(after_volume.clone()..);
                Box::new(names.filter_map(|(_, id)| state.volumes.get(id)))
            }
        };
        let behind = |volume: &VolumeEntry| {
            let is_after = after.is_some() && volume.record.name.key() == after_volume;
            if is_after { Bound::Excluded(after_key.clone()) } else { Bound::Unbounded }
        };
        let found = volumes
            .flat_map(|volume| {
                let ids = volume.snapshots.range((behind(volume), Bound::Unbounded));
                ids.filter_map(move |(_, id)| Some((volume, *id, state.snapshots.get(id)?)))
            })
            .filter(|(volume, _, record)| {
                let is_of_group = record.group.as_ref().map(GroupName::key) == group;
                let is_destroyed = volume.doom_of(record).is_some();
                filter.destroyed.is_none_or(|destroyed| destroyed == is_destroyed)
                    && (group.is_none() || is_of_group)
            })
            .take(limit);
        Ok(found.filter_map(|(_, id, _)| self.snapshot_info(state, id)).collect())
    }

    /// A snapshot, as it is shown.
    pub(crate) fn snapshot_info(&self, state: &State, id: VolumeId) -> Option<SnapshotInfo> {
        let record = state.snapshots.get(&id)?;
        let volume = state.volumes.get(&record.source)?;
        Some(SnapshotInfo {
            id,
            name: record.name(volume),
            volume: volume.record.name.to_string(),
            volume_id: volume.record.id,
            group: record.group.as_ref().map(ToString::to_string),
            suffix: record.suffix.to_string(),
            size_bytes: record.size.0 * SECTOR_BYTES,
            serial: Serial::new(&state.pool_id, id)?.to_string(),
            created_ms: record.created_ms,
            mapped_bytes: self.backing.volume_status(id).map_or(0, |status| status.mapped_bytes),
            space: self.object_space(id),
            eradicate_ms: volume.doom_of(record),
        })
    }
}

/// Checks that no snapshot of the volume has this name.
fn check_free(state: &State, new: &SnapshotRecord, volume: &VolumeEntry) -> Result<(), Error> {
    let holder = volume.snapshots.get(&new.key()).and_then(|id| state.snapshots.get(id));
    match holder {
        None => Ok(()),
        Some(holder) if holder.eradicate_ms.is_some() => {
            Err(Error::SnapshotDestroyed(holder.name(volume)))
        }
        Some(holder) => Err(Error::SnapshotExists(holder.name(volume))),
    }
}
