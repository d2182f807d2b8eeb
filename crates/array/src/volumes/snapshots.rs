//! Snapshots of volumes, singly or several at the same time.
//!
//! A snapshot belongs to its volume: its name begins with the volume's, it is destroyed and
//! recovered with it, and it never outlives it.

use std::collections::BTreeSet;

use block::VolumeId;
use store::{Change, VolumeChange};

use super::types::{NewSnapshots, SnapshotInfo, SnapshotSource};
use crate::array::Array;
use crate::error::Error;
use crate::objects::groups::{GROUP_MEMBERS_MAX, Group, GroupId};
use crate::objects::snapshots::{SNAPSHOTS_MAX, SnapshotRecord};
use crate::record;
use crate::state::State;
use crate::tables::volumes::VolumeEntry;
use crate::values::identity::Serial;
use crate::values::name::Suffix;
use crate::values::text::shown;

/// Snapshots to be shown, and their group if its record has changed.
pub(crate) struct PlannedSnapshots {
    made: Vec<(VolumeId, SnapshotRecord)>,
    group: Option<(GroupId, Group)>,
}

impl PlannedSnapshots {
    /// Returns the suffix that all of them share.
    pub(crate) fn suffix(&self) -> String {
        self.made.first().map(|(_, record)| record.suffix.to_string()).unwrap_or_default()
    }

    pub(crate) fn show(self, state: &mut State) -> Vec<VolumeId> {
        if let Some((id, group)) = self.group {
            state.replace_group(id, group);
        }
        let ids = self.made.iter().map(|(id, _)| *id).collect();
        self.made.into_iter().for_each(|(id, record)| state.insert_snapshot(id, record));
        ids
    }
}

impl Array {
    /// Creates consistent snapshots: they contain everything acknowledged before. The time does not
    /// depend on the content of the volumes. Durable when it returns.
    ///
    /// # Errors
    /// `no_such_volume`, `volume_destroyed`, `no_such_group`, `empty_group`, `invalid_volumes`,
    /// `snapshot_exists`, `snapshot_destroyed`, `limit_reached`, and those of the store.
    pub fn create_snapshots(&self, new: &NewSnapshots) -> Result<Vec<SnapshotInfo>, Error> {
        self.change(
            |state| self.plan_snapshots(state, new, None),
            |state, planned| {
                let ids = planned.show(state);
                ids.into_iter().filter_map(|id| self.snapshot_info(state, id)).collect()
            },
        )
    }

    /// Plans snapshots. `next_ms`: when the schedule of the group takes the next snapshots, if it
    /// takes these.
    pub(crate) fn plan_snapshots(
        &self,
        state: &State,
        new: &NewSnapshots,
        next_ms: Option<u64>,
    ) -> Result<(Change, PlannedSnapshots), Error> {
        let (volumes, group) = sources(state, &new.source)?;
        if volumes.len() > GROUP_MEMBERS_MAX {
            return Err(Error::TooManyAtOnce {
                what: "snapshots are created",
                limit: GROUP_MEMBERS_MAX,
            });
        }
        if state.snapshots().len() + volumes.len() > SNAPSHOTS_MAX {
            return Err(Error::Limit { what: "snapshots", limit: SNAPSHOTS_MAX });
        }
        let counted = match group {
            Some((_, group)) => group.next_suffix,
            None => volumes.iter().map(|volume| volume.next_suffix).max().unwrap_or(1),
        };
        let suffix = new.suffix.clone().unwrap_or_else(|| Suffix::counted(counted));
        if let Some((id, group)) = group {
            check_moment(state, id, group, &suffix)?;
        }
        let mut change = Change::default();
        let mut made = Vec::with_capacity(volumes.len());
        for volume in volumes {
            let record = SnapshotRecord {
                source: volume.record.id,
                suffix: suffix.clone(),
                group: group.map(|(id, _)| id),
                retained: new.apply_retention && group.is_some(),
                size: volume.record.size,
                created_ms: new.created_ms,
                eradicate_ms: None,
            };
            check_free(state, &record, volume)?;
            let (source, id) = (volume.record.id, self.backing().allocate_volume_id());
            if Serial::new(state.pool_id(), id).is_none() {
                return Err(Error::Limit { what: "volumes ever created", limit: 1 << 40 });
            }
            change.volumes.push(VolumeChange::Clone { source, id, snapshot: true });
            change.config.push((record::snapshot_key(id), Some(record::snapshot(&record)?)));
            made.push((id, record));
        }
        let counts = group.filter(|_| new.suffix.is_none());
        let group = counts.map(|(id, group)| {
            let (next_suffix, next_ms) = (counted + 1, next_ms.unwrap_or(group.next_ms));
            (id, Group { next_suffix, next_ms, ..group.clone() })
        });
        if let Some((id, group)) = &group {
            change.config.push((record::group_key(*id), Some(record::group(group)?)));
        }
        Ok((change, PlannedSnapshots { made, group }))
    }

    /// Changes the suffix of a snapshot. Snapshots made with a group keep theirs, because it is
    /// common to all of them.
    ///
    /// # Errors
    /// `no_such_snapshot`, `snapshot_destroyed`, `snapshot_exists`, `group_snapshot`, and those of
    /// the store.
    pub fn rename_snapshot(&self, name: &str, suffix: Suffix) -> Result<SnapshotInfo, Error> {
        let plan = |state: &State| {
            let (id, old, volume) = state.snapshot(name)?;
            if old.group.is_some() {
                let text = format!(
                    "Snapshot {} was taken with its group, whose name and suffix it keeps.",
                    state.snapshot_name(old, volume)
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

    /// Returns a snapshot, destroyed or not.
    ///
    /// # Errors
    /// `no_such_snapshot`.
    pub fn snapshot(&self, name: &str) -> Result<SnapshotInfo, Error> {
        let state = self.read();
        let (id, ..) = state.any_snapshot(name)?;
        self.snapshot_info(&state, id).ok_or_else(|| Error::NoSuchSnapshot(shown(name)))
    }

    /// Returns the name of the snapshot with this id, if it exists.
    pub fn snapshot_name(&self, id: VolumeId) -> Option<String> {
        let state = self.read();
        let record = state.snapshots().get(&id)?;
        Some(state.snapshot_name(record, state.volumes().get(&record.source)?))
    }
}

/// Returns the volumes to snapshot, and their group.
#[allow(clippy::type_complexity)]
fn sources<'a>(
    state: &'a State,
    source: &SnapshotSource,
) -> Result<(Vec<&'a VolumeEntry>, Option<(GroupId, &'a Group)>), Error> {
    match source {
        SnapshotSource::Group(name) => {
            let (id, group) = state.group(name)?;
            let volumes = state.members(group);
            if volumes.is_empty() {
                let text = format!("Group {} has no volumes. Add some first.", group.name);
                return Err(Error::invalid("empty_group", text));
            }
            Ok((volumes, Some((id, group))))
        }
        SnapshotSource::Volumes(names) => {
            let volumes = names.iter().map(|name| state.volume(name));
            let volumes: Vec<_> = volumes.collect::<Result<_, _>>()?;
            let distinct: BTreeSet<_> = volumes.iter().map(|entry| entry.record.id).collect();
            if volumes.is_empty() || distinct.len() != volumes.len() {
                let text = "Name the volumes to snapshot, each only once.";
                return Err(Error::invalid("invalid_volumes", text));
            }
            Ok((volumes, None))
        }
    }
}

/// Checks that no moment of the group has this name, so that two can't be mistaken for one.
fn check_moment(state: &State, id: GroupId, group: &Group, suffix: &Suffix) -> Result<(), Error> {
    let moments = state.moments().get(&id);
    let Some(moment) = moments.and_then(|moments| moments.get(&suffix.key())) else {
        return Ok(());
    };
    let name = format!("{}.{}", group.name, moment.suffix);
    let mut records = moment.snapshots.iter().filter_map(|id| state.snapshots().get(id));
    match records.all(|record| record.eradicate_ms.is_some()) {
        true => Err(Error::SnapshotDestroyed(name)),
        false => Err(Error::SnapshotExists(name)),
    }
}

/// Checks that no snapshot of the volume has this name.
fn check_free(state: &State, new: &SnapshotRecord, volume: &VolumeEntry) -> Result<(), Error> {
    let holder = volume.snapshots.get(&new.key()).and_then(|id| state.snapshots().get(id));
    match holder {
        None => Ok(()),
        Some(holder) if holder.eradicate_ms.is_some() => {
            Err(Error::SnapshotDestroyed(state.snapshot_name(holder, volume)))
        }
        Some(holder) => Err(Error::SnapshotExists(state.snapshot_name(holder, volume))),
    }
}
