//! Changes of several objects at once: all of them in one commit, or none.
//!
//! Each works as the change of a single object, planned on the state before the commit. So no
//! object may be named twice, and values that only one object can have (a name, an initiator, a
//! LUN) are refused for several.

use std::cell::RefCell;
use std::collections::BTreeSet;

use block::{VolumeId, VolumeLimits};

use crate::clones::plan_overwrite;
use crate::connections::{self, Taken, plan_connection, plan_disconnection};
use crate::eradication::{self, BEGUN_MS, plan_doom};
use crate::groups;
use crate::hosts::{plan_host, plan_host_change, plan_host_end, show_host, show_new_host};
use crate::name::{GroupName, VolumeName};
use crate::state::{State, VolumeRecord};
use crate::{
    Array, ConnectionInfo, Error, GroupChange, GroupInfo, HostChange, HostInfo, NewHost, NewVolume,
    SnapshotInfo, VolumeInfo, VolumeUpdate,
};

/// The most objects that are changed at once: their records must fit one commit of the store.
pub const CHANGES_MAX: usize = 500;

/// The most volumes that are truncated at once: each costs what is at its new end, up to some 60 us
/// within one commit, during which no other is written.
pub const TRUNCATED_MAX: usize = 100;

/// Volumes to make or overwrite from another volume or a snapshot.
#[derive(Clone, Debug)]
pub struct NewCopy {
    /// The volume or snapshot to copy.
    pub source: String,
    /// The names of the volumes.
    pub names: Vec<VolumeName>,
    /// Whether existing ones are overwritten instead of refused.
    pub overwrite: bool,
    /// The limits of each new one.
    pub limits: VolumeLimits,
    /// The time, in milliseconds since 1970.
    pub created_ms: u64,
}

/// Refuses duplicate names, and more than one commit takes.
pub(crate) fn check<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Result<(), Error> {
    if names.len() > CHANGES_MAX {
        return Err(Error::TooManyAtOnce { what: "objects are changed", limit: CHANGES_MAX });
    }
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name.to_ascii_lowercase()) {
            let text = format!("{} is named twice.", crate::state::shown(name));
            return Err(Error::invalid("named_twice", text));
        }
    }
    Ok(())
}

pub(crate) fn check_all(names: &[String]) -> Result<(), Error> {
    check(names.iter().map(String::as_str))
}

/// Refuses to give several objects a value that only one can have.
fn check_single(count: usize, asked: bool, what: &str) -> Result<(), Error> {
    if count < 2 || !asked {
        return Ok(());
    }
    let text = format!("Only one at a time can get {what}.");
    Err(Error::invalid("only_one", text))
}

impl Array {
    /// Makes volumes; durable when it returns.
    ///
    /// # Errors
    /// Those of [`Array::create_volume`], and `named_twice`.
    pub fn create_volumes(&self, new: Vec<NewVolume>) -> Result<Vec<VolumeInfo>, Error> {
        check(new.iter().map(|new| new.name.as_str()))?;
        let plan = |state: &State, before, new| self.plan_volume(state, before, new);
        self.change_all(new, plan, |state, record| self.show_new_volume(state, record))
    }

    /// Makes volumes from the current content of another volume or a snapshot.
    ///
    /// # Errors
    /// Those of [`Array::clone_volume`] and [`Array::overwrite_volume`], and `named_twice`.
    pub fn copy_volumes(&self, new: NewCopy) -> Result<Vec<VolumeInfo>, Error> {
        check(new.names.iter().map(VolumeName::as_str))?;
        let plan = |state: &State, before, name: &VolumeName| {
            if new.overwrite && state.volume(name.as_str()).is_ok() {
                return plan_overwrite(state, name.as_str(), &new.source);
            }
            self.plan_clone(state, before, name.clone(), &new)
        };
        self.change_all(&new.names, plan, |state, record: VolumeRecord| {
            if state.volumes.contains_key(&record.id) {
                return self.show_volume(state, record);
            }
            self.show_new_volume(state, record)
        })
    }

    /// Changes volumes, all in the same way.
    ///
    /// # Errors
    /// Those of [`Array::update_volume`]; `named_twice`; `only_one` for a new name; `limit_reached`
    /// for more than [`TRUNCATED_MAX`] that are truncated.
    pub fn update_volumes(
        &self,
        names: &[String],
        update: &VolumeUpdate,
    ) -> Result<Vec<VolumeInfo>, Error> {
        check_all(names)?;
        check_single(names.len(), update.name.is_some(), "a new name")?;
        if update.truncate && update.size_bytes.is_some() && names.len() > TRUNCATED_MAX {
            return Err(Error::TooManyAtOnce {
                what: "volumes are truncated",
                limit: TRUNCATED_MAX,
            });
        }
        let plan = |state: &State, _, name: &String| self.plan_update(state, name, update);
        self.change_all(names, plan, |state, record| self.show_volume(state, record))
    }

    /// Destroys volumes with their snapshots.
    ///
    /// # Errors
    /// Those of [`Array::destroy_volume`], and `named_twice`.
    pub fn destroy_volumes(&self, names: &[String], now_ms: u64) -> Result<Vec<VolumeInfo>, Error> {
        check_all(names)?;
        let plan =
            |state: &State, _, name: &String| eradication::plan_volume_end(state, name, now_ms);
        self.change_all(names, plan, |state, record| self.show_volume(state, record))
    }

    /// Brings destroyed volumes back.
    ///
    /// # Errors
    /// Those of [`Array::recover_volume`], and `named_twice`.
    pub fn recover_volumes(&self, names: &[String]) -> Result<Vec<VolumeInfo>, Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| eradication::plan_volume_recovery(state, name);
        self.change_all(names, plan, |state, record| self.show_volume(state, record))
    }

    /// Eradicates destroyed volumes. From the first commit on none of them can be recovered;
    /// eradicating their snapshots may need further commits, and continues after a crash.
    ///
    /// # Errors
    /// Those of [`Array::eradicate_volume`], and `named_twice`.
    pub fn eradicate_volumes(&self, names: &[String]) -> Result<(), Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| {
            let record = state.doomed_volume(name)?;
            plan_doom(VolumeRecord { eradicate_ms: Some(BEGUN_MS), ..record.clone() })
        };
        let begun: Vec<VolumeId> = self.change_all(names, plan, |state, record| {
            let id = record.id;
            state.replace_volume(record);
            id
        })?;
        begun.into_iter().try_for_each(|id| self.finish_eradication(id))
    }

    /// Destroys snapshots.
    ///
    /// # Errors
    /// Those of [`Array::destroy_snapshot`], and `named_twice`.
    pub fn destroy_snapshots(
        &self,
        names: &[String],
        now_ms: u64,
    ) -> Result<Vec<SnapshotInfo>, Error> {
        check_all(names)?;
        let plan =
            |state: &State, _, name: &String| eradication::plan_snapshot_end(state, name, now_ms);
        let shown =
            self.change_all(names, plan, |state, planned| self.show_snapshot(state, planned))?;
        Ok(shown.into_iter().flatten().collect())
    }

    /// Brings destroyed snapshots back.
    ///
    /// # Errors
    /// Those of [`Array::recover_snapshot`], and `named_twice`.
    pub fn recover_snapshots(&self, names: &[String]) -> Result<Vec<SnapshotInfo>, Error> {
        check_all(names)?;
        let plan =
            |state: &State, _, name: &String| eradication::plan_snapshot_recovery(state, name);
        let shown =
            self.change_all(names, plan, |state, planned| self.show_snapshot(state, planned))?;
        Ok(shown.into_iter().flatten().collect())
    }

    /// Eradicates destroyed snapshots.
    ///
    /// # Errors
    /// Those of [`Array::eradicate_snapshot`], and `named_twice`.
    pub fn eradicate_snapshots(&self, names: &[String]) -> Result<(), Error> {
        check_all(names)?;
        self.eradicate(|state| names.iter().map(|name| state.doomed_snapshot(name)).collect())
    }

    /// Makes hosts.
    ///
    /// # Errors
    /// Those of [`Array::create_host`]; `named_twice`; `only_one` for initiators.
    pub fn create_hosts(&self, new: Vec<NewHost>) -> Result<Vec<HostInfo>, Error> {
        check(new.iter().map(|new| new.name.as_str()))?;
        let have_initiators = new.iter().any(|new| !new.initiators.is_empty());
        check_single(new.len(), have_initiators, "these initiators")?;
        self.change_all(new, plan_host, show_new_host)
    }

    /// Changes hosts, all in the same way.
    ///
    /// # Errors
    /// Those of [`Array::change_host`]; `named_twice`; `only_one` for a name and initiators.
    pub fn change_hosts(
        &self,
        names: &[String],
        change: &HostChange,
    ) -> Result<Vec<HostInfo>, Error> {
        check_all(names)?;
        check_single(names.len(), change.name.is_some(), "a new name")?;
        let has_initiators = change.initiators.as_ref().is_some_and(|all| !all.is_empty())
            || !change.add_initiators.is_empty();
        check_single(names.len(), has_initiators, "these initiators")?;
        let plan = |state: &State, _, name: &String| plan_host_change(state, name, change.clone());
        self.change_all(names, plan, show_host)
    }

    /// Deletes hosts.
    ///
    /// # Errors
    /// Those of [`Array::delete_host`], and `named_twice`.
    pub fn delete_hosts(&self, names: &[String]) -> Result<(), Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| plan_host_end(state, name);
        self.change_all(names, plan, State::remove_host).map(|_| ())
    }

    /// Connects volumes to hosts, as pairs (volume, host); each under `lun`, or under the lowest
    /// free one.
    ///
    /// # Errors
    /// Those of [`Array::connect`]; `named_twice`; `lun_in_use` if two volumes of one host would
    /// get it.
    pub fn connect_all(
        &self,
        pairs: &[(String, String)],
        lun: Option<u16>,
    ) -> Result<Vec<ConnectionInfo>, Error> {
        check_pairs(pairs)?;
        let taken = RefCell::new(Taken::default());
        let plan = |state: &State, _, (volume, host): &(String, String)| {
            let planned = plan_connection(state, volume, host, lun, &taken.borrow())?;
            let (host_id, _, info) = &planned.1;
            if !taken.borrow_mut().insert((*host_id, info.lun)) {
                let (lun, of) = (info.lun, format!("host {}", info.host));
                return Err(Error::LunInUse { lun, of, volume: info.volume.clone() });
            }
            Ok(planned)
        };
        self.change_all(pairs, plan, connections::connect)
    }

    /// Disconnects volumes from hosts, as pairs (volume, host).
    ///
    /// # Errors
    /// Those of [`Array::disconnect`], and `named_twice`.
    pub fn disconnect_all(&self, pairs: &[(String, String)]) -> Result<(), Error> {
        check_pairs(pairs)?;
        let plan = |state: &State, _, (volume, host): &(String, String)| {
            plan_disconnection(state, volume, host)
        };
        self.change_all(pairs, plan, connections::disconnect).map(|_| ())
    }

    /// Makes groups without volumes.
    ///
    /// # Errors
    /// Those of [`Array::create_group`], and `named_twice`.
    pub fn create_groups(
        &self,
        names: Vec<GroupName>,
        created_ms: u64,
    ) -> Result<Vec<GroupInfo>, Error> {
        check(names.iter().map(GroupName::as_str))?;
        let plan = |state: &State, before, name: GroupName| {
            groups::plan_new(state, before, name, &[], created_ms)
        };
        self.change_all(names, plan, groups::show_group)
    }

    /// Changes groups, all in the same way.
    ///
    /// # Errors
    /// Those of [`Array::change_group`]; `named_twice`; `only_one` for a new name.
    pub fn change_groups(
        &self,
        names: &[String],
        change: &GroupChange,
    ) -> Result<Vec<GroupInfo>, Error> {
        check_all(names)?;
        check_single(names.len(), change.name.is_some(), "a new name")?;
        let plan = |state: &State, _, name: &String| groups::plan_change(state, name, change);
        self.change_all(names, plan, groups::show_group)
    }

    /// Changes groups, each by the change that `change` derives from its state.
    ///
    /// # Errors
    /// Those of [`Array::change_groups`] and of `change`.
    pub fn change_each_group(
        &self,
        names: &[String],
        change: impl Fn(&GroupInfo) -> Result<GroupChange, Error>,
    ) -> Result<Vec<GroupInfo>, Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| {
            let (id, group) = state.group(name)?;
            let change = change(&state.group_info(id, group))?;
            check_single(names.len(), change.name.is_some(), "a new name")?;
            groups::plan_change(state, name, &change)
        };
        self.change_all(names, plan, groups::show_group)
    }
}

pub(crate) fn check_pairs(pairs: &[(String, String)]) -> Result<(), Error> {
    let joined: Vec<String> = pairs.iter().map(|(a, b)| format!("{a} and {b}")).collect();
    check_all(&joined)
}
