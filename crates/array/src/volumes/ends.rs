//! The end of volumes and snapshots, in two steps.
//!
//! A *destroyed* object is out of use but complete, keeps its name, and can be recovered for a
//! configured time. After that, or on request, it is *eradicated*: its space is freed.
//!
//! Destroying a volume destroys its snapshots without changing them: a snapshot counts as destroyed
//! while its volume is, or if it was destroyed separately. So recovering a volume recovers exactly
//! the snapshots that were destroyed with it, and the cost does not depend on their number.

use std::collections::BTreeSet;

use block::VolumeId;
use store::{Change, VolumeChange};

use super::types::{SnapshotInfo, VolumeInfo};
use crate::array::Array;
use crate::error::Error;
use crate::objects::snapshots::SnapshotRecord;
use crate::objects::tags::TagMap;
use crate::objects::time::BEGUN_MS;
use crate::objects::volumes::VolumeRecord;
use crate::record;
use crate::state::State;

/// The maximum number of volumes and snapshots that one commit eradicates.
pub(crate) const ERADICATED_MAX: usize = 1_000;

/// The objects that one commit eradicates.
#[derive(Default)]
struct Gone {
    volumes: Vec<VolumeId>,
    snapshots: BTreeSet<VolumeId>,
    /// A volume with more snapshots than one commit eradicates: it follows later.
    begun: Option<VolumeRecord>,
}

impl Array {
    /// Destroys a volume with its snapshots. It can be recovered until it is eradicated.
    ///
    /// # Errors
    /// `no_such_volume`, `volume_destroyed`, `existing_connections`, and those of the store.
    pub fn destroy_volume(&self, name: &str, now_ms: u64) -> Result<VolumeInfo, Error> {
        let plan = |state: &State| plan_volume_end(state, name, now_ms);
        self.change(plan, |state, record| self.show_volume(state, record))
    }

    /// Recovers a destroyed volume, with the snapshots that were destroyed with it. It is
    /// unchanged, including its reservations, but has no connections.
    ///
    /// # Errors
    /// `no_such_volume`, `not_destroyed`, `eradicated`, and those of the store.
    pub fn recover_volume(&self, name: &str) -> Result<VolumeInfo, Error> {
        let plan = |state: &State| plan_volume_recovery(state, name);
        self.change(plan, |state, record| self.show_volume(state, record))
    }

    /// Eradicates a destroyed volume with all of its snapshots. Data to which only they referred is
    /// freed.
    ///
    /// # Errors
    /// `no_such_volume`, `not_destroyed`, and those of the store.
    pub fn eradicate_volume(&self, name: &str) -> Result<(), Error> {
        let id = self.read().doomed_volume(name)?.id;
        self.finish_eradications(&[id])
    }

    /// Eradicates destroyed volumes, in as many commits as they and their snapshots need.
    pub(crate) fn finish_eradications(&self, ids: &[VolumeId]) -> Result<(), Error> {
        let is_left = |state: &State| ids.iter().any(|id| state.volumes().contains_key(id));
        while is_left(&self.read()) {
            self.eradicate(|state| {
                let left = ids.iter().filter_map(|id| Some((id, state.volumes().get(id)?)));
                let checked = left.map(|(id, entry)| match entry.record.eradicate_ms {
                    None => Err(Error::NotDestroyed(format!("Volume {}", entry.record.name))),
                    Some(_) => Ok(*id),
                });
                checked.collect()
            })?;
        }
        Ok(())
    }

    /// Destroys a snapshot. It can be recovered until it is eradicated.
    ///
    /// # Errors
    /// `no_such_snapshot`, `snapshot_destroyed`, and those of the store.
    pub fn destroy_snapshot(&self, name: &str, now_ms: u64) -> Result<SnapshotInfo, Error> {
        let plan = |state: &State| plan_snapshot_end(state, name, now_ms);
        let shown = self.change(plan, |state, planned| self.show_snapshot(state, planned))?;
        shown.ok_or_else(|| Error::NoSuchSnapshot(name.to_owned()))
    }

    /// Recovers a destroyed snapshot. One that was destroyed with its volume is recovered with it.
    ///
    /// # Errors
    /// `no_such_snapshot`, `volume_destroyed`, `not_destroyed`, `eradicated`, and those of the
    /// store.
    pub fn recover_snapshot(&self, name: &str) -> Result<SnapshotInfo, Error> {
        let plan = |state: &State| plan_snapshot_recovery(state, name);
        let shown = self.change(plan, |state, planned| self.show_snapshot(state, planned))?;
        shown.ok_or_else(|| Error::NoSuchSnapshot(name.to_owned()))
    }

    pub(crate) fn show_snapshot(
        &self,
        state: &mut State,
        (id, record): (VolumeId, SnapshotRecord),
    ) -> Option<SnapshotInfo> {
        state.replace_snapshot(id, record);
        self.snapshot_info(state, id)
    }

    /// Eradicates a destroyed snapshot. Data to which only it referred is freed.
    ///
    /// # Errors
    /// `no_such_snapshot`, `not_destroyed`, and those of the store.
    pub fn eradicate_snapshot(&self, name: &str) -> Result<(), Error> {
        self.eradicate(|state| Ok(vec![state.doomed_snapshot(name)?]))
    }

    pub(crate) fn eradicate(
        &self,
        doomed: impl FnOnce(&State) -> Result<Vec<VolumeId>, Error>,
    ) -> Result<(), Error> {
        let plan = |state: &State| plan_eradication(state, doomed(state)?.into_iter());
        self.change(plan, |state, gone| {
            for id in &gone.snapshots {
                state.remove_snapshot(*id);
                state.tags.replace(*id, TagMap::new());
            }
            gone.volumes.iter().for_each(|id| state.remove_volume(*id));
            if let Some(begun) = gone.begun {
                state.replace_volume(begun);
            }
            self.add_gone(gone.volumes);
        })
    }
}

/// Plans the eradication of destroyed volumes and snapshots, up to the size of one commit.
fn plan_eradication(
    state: &State,
    doomed: impl Iterator<Item = VolumeId>,
) -> Result<(Change, Gone), Error> {
    let (mut change, mut gone) = (Change::default(), Gone::default());
    for id in doomed {
        let room = ERADICATED_MAX - gone.snapshots.len() - gone.volumes.len();
        let Some(volume) = state.volumes().get(&id) else {
            if room == 0 {
                break;
            }
            gone.snapshots.insert(id);
            continue;
        };
        // A separately destroyed snapshot may be among them already.
        let own = || volume.snapshots.values().copied();
        let more: Vec<_> = own().filter(|id| !gone.snapshots.contains(id)).take(room).collect();
        let has_room = more.len() < room;
        gone.snapshots.extend(more);
        if !has_room || own().any(|id| !gone.snapshots.contains(&id)) {
            gone.begun =
                Some(VolumeRecord { eradicate_ms: Some(BEGUN_MS), ..volume.record.clone() });
            break;
        }
        gone.volumes.push(id);
    }
    for id in &gone.snapshots {
        change.config.push((record::snapshot_key(*id), None));
    }
    for id in &gone.volumes {
        change.config.extend(state.host_states.removal(*id));
        change.config.push((record::volume_key(*id), None));
    }
    if let Some(begun) = &gone.begun {
        change.config.push((record::volume_key(begun.id), Some(record::volume(begun)?)));
    }
    let all = || gone.snapshots.iter().chain(&gone.volumes);
    for id in all().filter(|id| state.tags.of(**id).is_some()) {
        change.config.push(record::tags_row(*id, &TagMap::new())?);
    }
    change.volumes = all().map(|id| VolumeChange::Destroy { id: *id }).collect();
    Ok((change, gone))
}

pub(crate) fn check_recoverable(
    eradicate_ms: Option<u64>,
    object: impl Fn() -> String,
) -> Result<(), Error> {
    match eradicate_ms {
        None => Err(Error::NotDestroyed(object())),
        Some(BEGUN_MS) => Err(Error::Eradicated(object())),
        Some(_) => Ok(()),
    }
}

pub(crate) fn plan_volume_end(
    state: &State,
    name: &str,
    now_ms: u64,
) -> Result<(Change, VolumeRecord), Error> {
    let entry = state.volume(name)?;
    let count = entry.hosts.len() + entry.host_groups.len();
    if count > 0 {
        let object = format!("Volume {}", entry.record.name);
        return Err(Error::ExistingConnections { object, count });
    }
    plan_doom(VolumeRecord { eradicate_ms: state.doom(now_ms), ..entry.record.clone() })
}

pub(crate) fn plan_volume_recovery(
    state: &State,
    name: &str,
) -> Result<(Change, VolumeRecord), Error> {
    let record = &state.any_volume(name)?.record;
    check_recoverable(record.eradicate_ms, || format!("Volume {}", record.name))?;
    if let Some((kind, container)) = record.name.container() {
        state.containers.live(kind, container)?;
    }
    plan_doom(VolumeRecord { eradicate_ms: None, ..record.clone() })
}

pub(crate) fn plan_doom(record: VolumeRecord) -> Result<(Change, VolumeRecord), Error> {
    let config = vec![(record::volume_key(record.id), Some(record::volume(&record)?))];
    Ok((Change { config, ..Change::default() }, record))
}

/// A snapshot whose eradication time is set or cleared.
type Doomed = (Change, (VolumeId, SnapshotRecord));

pub(crate) fn plan_snapshot_end(state: &State, name: &str, now_ms: u64) -> Result<Doomed, Error> {
    let (id, record, _) = state.snapshot(name)?;
    plan_snapshot_doom(id, SnapshotRecord { eradicate_ms: state.doom(now_ms), ..record.clone() })
}

pub(crate) fn plan_snapshot_recovery(state: &State, name: &str) -> Result<Doomed, Error> {
    let (id, record, volume) = state.any_snapshot(name)?;
    if volume.record.eradicate_ms.is_some() {
        return Err(Error::VolumeDestroyed(volume.record.name.to_string()));
    }
    let group = record.group.and_then(|id| state.groups().get(&id));
    if let Some(group) = group.filter(|group| group.eradicate_ms.is_some()) {
        return Err(Error::GroupDestroyed(group.name.to_string()));
    }
    check_recoverable(record.eradicate_ms, || format!("Snapshot {name}"))?;
    plan_snapshot_doom(id, SnapshotRecord { eradicate_ms: None, ..record.clone() })
}

fn plan_snapshot_doom(id: VolumeId, record: SnapshotRecord) -> Result<Doomed, Error> {
    let config = vec![(record::snapshot_key(id), Some(record::snapshot(&record)?))];
    Ok((Change { config, ..Change::default() }, (id, record)))
}
