//! The snapshots of a group that were made at the same time, called a moment, as one object:
//! `GROUP.SUFFIX`.

use std::ops::Bound;

use block::VolumeId;
use store::Change;

use super::ends::{PlannedMoments, plan_moment_end, show_moments};
use crate::array::Array;
use crate::array::distinct::{CHANGES_MAX, check_all};
use crate::error::Error;
use crate::objects::groups::{Group, GroupId};
use crate::objects::snapshots::SnapshotRecord;
use crate::record;
use crate::state::State;
use crate::tables::moments::Moment;

/// The snapshots of one moment, as they are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSnapshotInfo {
    /// `GROUP.SUFFIX`.
    pub name: String,
    /// The name of the group.
    pub group: String,
    /// The id of the group.
    pub group_id: u64,
    /// The part of its name after the group.
    pub suffix: String,
    /// The ids of its snapshots, one for each volume.
    pub snapshots: Vec<VolumeId>,
    /// Whether the retention of the group applies to it.
    pub retained: bool,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// If it is destroyed, or its group is: when it is eradicated, in milliseconds since 1970.
    pub eradicate_ms: Option<u64>,
}

impl Array {
    /// Returns the snapshots of a moment, destroyed or not.
    ///
    /// # Errors
    /// `no_such_group_snapshot`.
    pub fn group_snapshot(&self, name: &str) -> Result<GroupSnapshotInfo, Error> {
        let state = self.read();
        let (id, group, moment) = state.any_moment(name)?;
        Ok(info(&state, id, group, moment))
    }

    /// Returns the stored bytes to which only one of the snapshots of a group refers: see
    /// [`Array::unique_bytes_of`].
    pub fn group_snapshots_bytes(&self, id: u64) -> u64 {
        let state = self.read();
        let moments = state.moments().get(&GroupId(id)).into_iter().flatten();
        self.unique_bytes_of(moments.flat_map(|(_, moment)| &moment.snapshots).copied())
    }

    /// Returns up to `limit` moments of one group or all, in the order of the groups' names and
    /// their suffixes, after the one called `after`: only destroyed ones, only the others, or
    /// (`None`) both.
    ///
    /// # Errors
    /// `no_such_group`.
    pub fn group_snapshots(
        &self,
        group: Option<&str>,
        destroyed: Option<bool>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<GroupSnapshotInfo>, Error> {
        let guard = self.read();
        let state = &*guard;
        let only = group.map(|name| state.any_group(name)).transpose()?.map(|(id, _)| id);
        let after = after.map(|name| name.to_ascii_lowercase());
        let (after_group, after_suffix) = match &after {
            Some(name) => name.split_once('.').unwrap_or((name.as_str(), "")),
            None => ("", ""),
        };
        let groups = state.group_names().range(after_group.to_owned()..);
        let groups = groups.filter(|(_, id)| only.is_none_or(|only| only == **id));
        let mut found = Vec::new();
        for (name, id) in groups {
            let (Some(group), Some(moments)) = (state.groups().get(id), state.moments().get(id))
            else {
                continue;
            };
            let from = match after.is_some() && name == after_group {
                true => Bound::Excluded(after_suffix.to_owned()),
                false => Bound::Unbounded,
            };
            let infos = moments.range((from, Bound::Unbounded));
            let infos = infos.map(|(_, moment)| info(state, *id, group, moment));
            let wanted =
                infos.filter(|info| destroyed.is_none_or(|d| info.eradicate_ms.is_some() == d));
            found.extend(wanted.take(limit - found.len()));
            if found.len() == limit {
                break;
            }
        }
        Ok(found)
    }

    /// Destroys all snapshots of moments. They can be recovered until they are eradicated.
    ///
    /// # Errors
    /// `no_such_group_snapshot`, `group_destroyed`, `snapshot_destroyed`, `named_twice`,
    /// `limit_reached` for more snapshots than fit one commit, and those of the store.
    pub fn destroy_group_snapshots(
        &self,
        names: &[String],
        now_ms: u64,
    ) -> Result<Vec<GroupSnapshotInfo>, Error> {
        self.change_moments(names, |state, name, change, planned| {
            let (_, group, moment) = state.moment_of_live_group(name)?;
            if state.doom_of_moment(moment).is_some() {
                let name = format!("{}.{}", group.name, moment.suffix);
                return Err(Error::SnapshotDestroyed(name));
            }
            plan_moment_end(state, moment, now_ms, change, planned)
        })
    }

    /// Recovers the snapshots of destroyed moments. Those of destroyed volumes are recovered with
    /// the volumes.
    ///
    /// # Errors
    /// `no_such_group_snapshot`, `group_destroyed`, `not_destroyed`, `named_twice`,
    /// `limit_reached`, and those of the store.
    pub fn recover_group_snapshots(
        &self,
        names: &[String],
    ) -> Result<Vec<GroupSnapshotInfo>, Error> {
        self.change_moments(names, |state, name, change, planned| {
            let (_, group, moment) = state.moment_of_live_group(name)?;
            if state.doom_of_moment(moment).is_none() {
                let object = format!("Snapshot {}.{}", group.name, moment.suffix);
                return Err(Error::NotDestroyed(object));
            }
            for (id, snapshot) in state.records_of(moment) {
                let back = SnapshotRecord { eradicate_ms: None, ..snapshot.clone() };
                change.config.push((record::snapshot_key(id), Some(record::snapshot(&back)?)));
                planned.push((id, back));
            }
            Ok(planned.len() > CHANGES_MAX * 2)
        })
    }

    fn change_moments(
        &self,
        names: &[String],
        plan_one: impl Fn(&State, &str, &mut Change, &mut PlannedMoments) -> Result<bool, Error>,
    ) -> Result<Vec<GroupSnapshotInfo>, Error> {
        check_all(names)?;
        let plan = |state: &State| {
            let (mut change, mut planned) = (Change::default(), Vec::new());
            for name in names {
                if plan_one(state, name, &mut change, &mut planned)? {
                    let limit = CHANGES_MAX * 2;
                    return Err(Error::TooManyAtOnce { what: "snapshots are changed", limit });
                }
            }
            Ok((change, planned))
        };
        self.change(plan, |state, planned| {
            show_moments(state, planned);
            let infos = names.iter().filter_map(|name| state.any_moment(name).ok());
            infos.map(|(id, group, moment)| info(state, id, group, moment)).collect()
        })
    }

    /// Eradicates the snapshots of destroyed moments. Data to which only they referred is freed.
    ///
    /// # Errors
    /// `no_such_group_snapshot`, `group_destroyed`, `not_destroyed`, `named_twice`,
    /// `limit_reached`, and those of the store.
    pub fn eradicate_group_snapshots(&self, names: &[String]) -> Result<(), Error> {
        check_all(names)?;
        self.eradicate(|state| {
            let mut ids = Vec::new();
            for name in names {
                let (_, group, moment) = state.moment_of_live_group(name)?;
                if state.doom_of_moment(moment).is_none() {
                    let object = format!("Snapshot {}.{}", group.name, moment.suffix);
                    return Err(Error::NotDestroyed(object));
                }
                ids.extend(moment.snapshots.iter().copied());
            }
            let limit = CHANGES_MAX * 2;
            match ids.len() > limit {
                true => Err(Error::TooManyAtOnce { what: "snapshots are changed", limit }),
                false => Ok(ids),
            }
        })
    }
}

fn info(state: &State, id: GroupId, group: &Group, moment: &Moment) -> GroupSnapshotInfo {
    let ends = [group.eradicate_ms, state.doom_of_moment(moment)];
    let created = state.records_of(moment).map(|(_, snapshot)| snapshot.created_ms);
    GroupSnapshotInfo {
        name: format!("{}.{}", group.name, moment.suffix),
        group: group.name.to_string(),
        group_id: id.0,
        suffix: moment.suffix.to_string(),
        snapshots: moment.snapshots.iter().copied().collect(),
        retained: state.records_of(moment).any(|(_, snapshot)| snapshot.retained),
        created_ms: created.min().unwrap_or(0),
        eradicate_ms: state.shown_doom(ends.into_iter().flatten().min()),
    }
}
