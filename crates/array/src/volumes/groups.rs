//! Volume groups: a name before the names of volumes, which are renamed and ended together.
//!
//! A volume is in the group that its name says. A destroyed group has only destroyed volumes; those
//! that were destroyed with it have its time of eradication, and are recovered with it.

use block::VolumeId;
use store::Change;

use super::ends::{check_recoverable, plan_doom, plan_volume_end};
use crate::array::Array;
use crate::array::distinct::{CHANGES_MAX, check, check_all};
use crate::error::Error;
use crate::objects::time::BEGUN_MS;
use crate::objects::volume_groups::{VOLUME_GROUPS_MAX, VolumeGroup, VolumeGroupId};
use crate::objects::volumes::VolumeRecord;
use crate::record;
use crate::state::State;
use crate::values::name::VolumeGroupName;

/// A volume group, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeGroupInfo {
    /// Its id, which never changes.
    pub id: u64,
    /// What it is called at the moment.
    pub name: String,
    /// The names of its volumes that are not destroyed.
    pub volumes: Vec<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// If it is destroyed: when it is eradicated, in milliseconds since 1970.
    pub eradicate_ms: Option<u64>,
}

/// A group and volumes of it, as they are to be.
type Planned = (VolumeGroupId, VolumeGroup, Vec<VolumeRecord>);

impl Array {
    /// Makes volume groups without volumes; durable when it returns.
    ///
    /// # Errors
    /// `volume_group_exists`, `volume_group_destroyed`, `limit_reached`, `named_twice`, and those
    /// of the store.
    pub fn create_volume_groups(
        &self,
        names: Vec<VolumeGroupName>,
        created_ms: u64,
    ) -> Result<Vec<VolumeGroupInfo>, Error> {
        check(names.iter().map(VolumeGroupName::as_str))?;
        let plan = |state: &State, before, name: VolumeGroupName| {
            check_free(state, &name)?;
            if state.volume_groups.count() + before >= VOLUME_GROUPS_MAX {
                return Err(Error::Limit { what: "volume groups", limit: VOLUME_GROUPS_MAX });
            }
            let group = VolumeGroup { name, created_ms, eradicate_ms: None };
            plan_group(state.volume_groups.next_id(before), group, Vec::new())
        };
        self.change_all(names, plan, show)
    }

    /// Gives a volume group another name, and with it its volumes. Their connections stay.
    ///
    /// # Errors
    /// `no_such_volume_group`, `volume_group_exists`, `volume_group_destroyed`, and those of the
    /// store.
    pub fn rename_volume_group(
        &self,
        name: &str,
        new_name: VolumeGroupName,
    ) -> Result<VolumeGroupInfo, Error> {
        let plan = |state: &State| {
            let (id, group) = state.volume_groups.live(name)?;
            if new_name.key() != group.name.key() {
                check_free(state, &new_name)?;
            }
            let volumes = state.volumes_of_group(name).map(|volume| {
                let name = volume.name.within(Some(&new_name));
                VolumeRecord { name, ..volume.clone() }
            });
            let volumes = volumes.collect();
            plan_group(id, VolumeGroup { name: new_name, ..group.clone() }, volumes)
        };
        self.change(plan, show)
    }

    /// Destroys volume groups with their volumes. They can be recovered until they are eradicated.
    ///
    /// # Errors
    /// `no_such_volume_group`, `volume_group_destroyed`, `existing_connections`, `named_twice`,
    /// `limit_reached` if they have too many volumes together, and those of the store.
    pub fn destroy_volume_groups(
        &self,
        names: &[String],
        now_ms: u64,
    ) -> Result<Vec<VolumeGroupInfo>, Error> {
        check_all(names)?;
        self.change_volume_groups(names, |state, name| {
            let (id, group) = state.volume_groups.live(name)?;
            let eradicate_ms = state.doom(now_ms);
            let live = state.volumes_of_group(name).filter(|it| it.eradicate_ms.is_none());
            let ended = live.map(|volume| {
                let (_, ended) = plan_volume_end(state, volume.name.as_str(), now_ms)?;
                Ok(VolumeRecord { eradicate_ms, ..ended })
            });
            let ended = ended.collect::<Result<_, Error>>()?;
            Ok((id, VolumeGroup { eradicate_ms, ..group.clone() }, ended))
        })
    }

    /// Brings destroyed volume groups back, with the volumes that were destroyed with them.
    ///
    /// # Errors
    /// `no_such_volume_group`, `not_destroyed`, `eradicated`, `named_twice`, `limit_reached`, and
    /// those of the store.
    pub fn recover_volume_groups(&self, names: &[String]) -> Result<Vec<VolumeGroupInfo>, Error> {
        check_all(names)?;
        self.change_volume_groups(names, |state, name| {
            let (id, group) = state.volume_groups.any(name)?;
            check_recoverable(group.eradicate_ms, || format!("Volume group {}", group.name))?;
            let with_it = state.volumes_of_group(name);
            let with_it = with_it.filter(|volume| volume.eradicate_ms == group.eradicate_ms);
            let back = with_it.map(|volume| VolumeRecord { eradicate_ms: None, ..volume.clone() });
            let back = back.collect();
            Ok((id, VolumeGroup { eradicate_ms: None, ..group.clone() }, back))
        })
    }

    /// Eradicates destroyed volume groups with all of their volumes. From the first commit on none
    /// of them can be recovered; it may need further commits, and continues after a crash.
    ///
    /// # Errors
    /// `no_such_volume_group`, `not_destroyed`, `named_twice`, `limit_reached`, and those of the
    /// store.
    pub fn eradicate_volume_groups(&self, names: &[String]) -> Result<(), Error> {
        check_all(names)?;
        let mut ids = Vec::new();
        let mut volumes: Vec<VolumeId> = Vec::new();
        self.change_volume_groups(names, |state, name| {
            let (id, group) = state.volume_groups.any(name)?;
            if group.eradicate_ms.is_none() {
                return Err(Error::NotDestroyed(format!("Volume group {}", group.name)));
            }
            let eradicate_ms = Some(BEGUN_MS);
            let begun = state.volumes_of_group(name);
            let begun = begun.map(|volume| VolumeRecord { eradicate_ms, ..volume.clone() });
            let begun: Vec<_> = begun.collect();
            ids.push(id);
            volumes.extend(begun.iter().map(|volume| volume.id));
            Ok((id, VolumeGroup { eradicate_ms, ..group.clone() }, begun))
        })?;
        volumes.into_iter().try_for_each(|id| self.finish_eradication(id))?;
        ids.into_iter().try_for_each(|id| self.remove_volume_group(id))
    }

    /// Removes a destroyed group that has no volumes any more; otherwise it waits for them.
    pub(crate) fn remove_volume_group(&self, id: VolumeGroupId) -> Result<(), Error> {
        let plan = |state: &State| {
            let group = state.volume_groups.get(id);
            let group = group.filter(|group| group.eradicate_ms.is_some());
            let group = group.filter(|it| state.volumes_of_group(it.name.as_str()).count() == 0);
            let config = group.map(|_| (record::volume_group_key(id), None));
            let gone = group.map(|_| id);
            Ok((Change { config: config.into_iter().collect(), ..Change::default() }, gone))
        };
        self.change(plan, |state, gone| {
            gone.into_iter().for_each(|id| state.volume_groups.remove(id))
        })
    }

    /// A volume group, destroyed or not.
    ///
    /// # Errors
    /// `no_such_volume_group`.
    pub fn volume_group(&self, name: &str) -> Result<VolumeGroupInfo, Error> {
        let state = self.read();
        state.volume_groups.any(name).map(|(id, group)| info(&state, id, group))
    }

    /// The name of the volume group with this id, if it exists.
    pub fn volume_group_name(&self, id: u64) -> Option<String> {
        self.read().volume_groups.get(VolumeGroupId(id)).map(|group| group.name.to_string())
    }

    /// Up to `limit` volume groups in the order of their names (ignoring case), after `after`: only
    /// destroyed ones, only the others, or (`None`) both.
    pub fn volume_groups(
        &self,
        after: Option<&str>,
        destroyed: Option<bool>,
        limit: usize,
    ) -> Vec<VolumeGroupInfo> {
        let state = self.read();
        let rows = state.volume_groups.after(after);
        rows.filter(|(_, group)| destroyed.is_none_or(|d| group.eradicate_ms.is_some() == d))
            .take(limit)
            .map(|(id, group)| info(&state, id, group))
            .collect()
    }

    /// Changes groups with volumes of theirs in one commit, which takes so many records.
    fn change_volume_groups(
        &self,
        names: &[String],
        mut planned: impl FnMut(&State, &str) -> Result<Planned, Error>,
    ) -> Result<Vec<VolumeGroupInfo>, Error> {
        let plan = |state: &State| {
            let (mut whole, mut all, mut count) = (Change::default(), Vec::new(), 0);
            for name in names {
                let (id, group, volumes) = planned(state, name)?;
                count += volumes.len();
                if count > CHANGES_MAX {
                    let what = "volumes of volume groups are changed";
                    return Err(Error::TooManyAtOnce { what, limit: CHANGES_MAX });
                }
                let (change, one) = plan_group(id, group, volumes)?;
                whole.config.extend(change.config);
                all.push(one);
            }
            Ok((whole, all))
        };
        self.change(plan, |state, all: Vec<Planned>| {
            all.into_iter().map(|one| show(state, one)).collect()
        })
    }
}

/// Checks that no group has this name.
fn check_free(state: &State, name: &VolumeGroupName) -> Result<(), Error> {
    match state.volume_groups.live(name.as_str()) {
        Ok(_) => Err(Error::VolumeGroupExists(name.to_string())),
        Err(destroyed @ Error::VolumeGroupDestroyed(_)) => Err(destroyed),
        Err(_) => Ok(()),
    }
}

fn plan_group(
    id: VolumeGroupId,
    group: VolumeGroup,
    volumes: Vec<VolumeRecord>,
) -> Result<(Change, Planned), Error> {
    let mut config = vec![(record::volume_group_key(id), Some(record::volume_group(&group)?))];
    for volume in &volumes {
        config.extend(plan_doom(volume.clone())?.0.config);
    }
    Ok((Change { config, ..Change::default() }, (id, group, volumes)))
}

fn show(state: &mut State, (id, group, volumes): Planned) -> VolumeGroupInfo {
    state.volume_groups.replace(id, group.clone());
    volumes.into_iter().for_each(|volume| state.replace_volume(volume));
    info(state, id, &group)
}

fn info(state: &State, id: VolumeGroupId, group: &VolumeGroup) -> VolumeGroupInfo {
    let volumes = state.volumes_of_group(group.name.as_str());
    let live = volumes.filter(|volume| volume.eradicate_ms.is_none());
    VolumeGroupInfo {
        id: id.0,
        name: group.name.to_string(),
        volumes: live.map(|volume| volume.name.to_string()).collect(),
        created_ms: group.created_ms,
        eradicate_ms: state.shown_doom(group.eradicate_ms),
    }
}
