//! Snapshots: by id, by volume, and by the group with which they were made.

use std::collections::BTreeSet;

use block::VolumeId;

use super::State;
use crate::backing::Backing;
use crate::error::Error;
use crate::objects::groups::GroupId;
use crate::objects::snapshots::{SnapshotRecord, group_key};
use crate::tables::moments::Moment;
use crate::tables::volumes::VolumeEntry;
use crate::values::identity::Serial;
use crate::values::name::Suffix;
use crate::values::text::shown;

impl State {
    /// Returns the number of snapshots of a volume that are not destroyed: neither separately, nor
    /// with it, nor with their group.
    pub(crate) fn live_snapshots(&self, volume: &VolumeEntry) -> usize {
        if volume.record.eradicate_ms.is_some() {
            return 0;
        }
        let is_live =
            |id: &GroupId| self.groups.get(id).is_some_and(|group| group.eradicate_ms.is_none());
        let of_groups = volume.group_snapshots.iter().filter(|(id, _)| is_live(id));
        volume.own_snapshots + of_groups.map(|(_, count)| count).sum::<usize>()
    }

    /// Returns the eradication time of a snapshot, if it is destroyed.
    pub(crate) fn doom_of(&self, snapshot: &SnapshotRecord) -> Option<u64> {
        let volume = self.volumes.get(&snapshot.source).and_then(|v| v.record.eradicate_ms);
        let group = snapshot.group.and_then(|id| self.groups.get(&id)?.eradicate_ms);
        [volume, group, snapshot.eradicate_ms].into_iter().flatten().min()
    }

    /// Parses the volume and the key in a snapshot's name, in lower case; `None` if it is not the
    /// name of a snapshot.
    pub(crate) fn parse_snapshot(&self, name: &str) -> Option<(String, String)> {
        let name = name.to_ascii_lowercase();
        let parts: Vec<&str> = name.split('.').collect();
        match parts[..] {
            [volume, suffix] => Some((volume.to_owned(), suffix.to_owned())),
            [group, suffix, volume] => {
                let id = self.group_names.get(group)?;
                Some((volume.to_owned(), group_key(*id, suffix)))
            }
            _ => None,
        }
    }

    /// Returns a snapshot by its name, destroyed or not, with its volume.
    pub(crate) fn any_snapshot(
        &self,
        name: &str,
    ) -> Result<(VolumeId, &SnapshotRecord, &VolumeEntry), Error> {
        let unknown = || Error::NoSuchSnapshot(shown(name));
        let (volume, key) = self.parse_snapshot(name).ok_or_else(unknown)?;
        let volume = self.any_volume(&volume).map_err(|_| unknown())?;
        let id = volume.snapshots.get(&key).copied().ok_or_else(unknown)?;
        let record = self.snapshots.get(&id).ok_or_else(unknown)?;
        Ok((id, record, volume))
    }

    /// Returns a snapshot by its name, unless it is destroyed, separately or with its volume or
    /// group.
    pub(crate) fn snapshot(
        &self,
        name: &str,
    ) -> Result<(VolumeId, &SnapshotRecord, &VolumeEntry), Error> {
        let (id, record, volume) = self.any_snapshot(name)?;
        match self.doom_of(record) {
            None => Ok((id, record, volume)),
            Some(_) => Err(Error::SnapshotDestroyed(self.snapshot_name(record, volume))),
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
        let lost = stored.is_none() && backing.is_lost(id);
        let fits =
            stored.map(|status| (status.size, status.snapshot)) == Some((snapshot.size, true));
        if !fits && !lost {
            return refuse("is not in the store with this size");
        }
        match self.volumes.get(&snapshot.source) {
            None => return refuse("is of a volume that does not exist"),
            Some(volume) if volume.snapshots.contains_key(&snapshot.key()) => {
                return refuse("has the name of another");
            }
            Some(_) => {}
        }
        if snapshot.group.is_some_and(|id| !self.groups.contains_key(&id)) {
            return refuse("is of a group that does not exist");
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
        *volume.count_of(&snapshot) += 1;
        if let (None, Some(number)) = (snapshot.group, snapshot.suffix.number()) {
            volume.next_suffix = volume.next_suffix.max(number.saturating_add(1));
        }
        if let Some(due) = snapshot.eradicate_ms {
            self.doomed.insert((due, id));
        }
        if let Some(group) = snapshot.group {
            let moments = self.moments.entry(group).or_default();
            let (suffix, snapshots) = (snapshot.suffix.clone(), BTreeSet::new());
            let moment = moments.entry(suffix.key()).or_insert(Moment { suffix, snapshots });
            moment.snapshots.insert(id);
            self.agenda.touch(group);
        }
        self.snapshots.insert(id, snapshot);
    }

    pub(crate) fn remove_snapshot(&mut self, id: VolumeId) {
        let Some(snapshot) = self.snapshots.remove(&id) else { return };
        if let Some(volume) = self.volumes.get_mut(&snapshot.source) {
            volume.snapshots.remove(&snapshot.key());
            *volume.count_of(&snapshot) -= 1;
            volume.group_snapshots.retain(|_, count| *count > 0);
        }
        if let Some(due) = snapshot.eradicate_ms {
            self.doomed.remove(&(due, id));
        }
        if let Some(group) = snapshot.group {
            self.remove_from_moment(group, &snapshot.suffix, id);
        }
    }

    fn remove_from_moment(&mut self, group: GroupId, suffix: &Suffix, id: VolumeId) {
        let Some(moments) = self.moments.get_mut(&group) else { return };
        if let Some(moment) = moments.get_mut(&suffix.key()) {
            moment.snapshots.remove(&id);
            if moment.snapshots.is_empty() {
                moments.remove(&suffix.key());
            }
        }
        if moments.is_empty() {
            self.moments.remove(&group);
        }
        self.agenda.touch(group);
    }

    /// Replaces a snapshot's suffix or end.
    pub(crate) fn replace_snapshot(&mut self, id: VolumeId, snapshot: SnapshotRecord) {
        self.remove_snapshot(id);
        self.insert_snapshot(id, snapshot);
    }

    /// Returns the name of a snapshot of a volume.
    pub(crate) fn snapshot_name(&self, snapshot: &SnapshotRecord, volume: &VolumeEntry) -> String {
        let group = snapshot.group.and_then(|id| self.groups.get(&id));
        snapshot.name(&volume.record.name, group.map(|group| &group.name))
    }
}
