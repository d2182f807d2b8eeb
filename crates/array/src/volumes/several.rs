//! Changes of several volumes or snapshots at once: see [`crate::array::distinct`].

use block::VolumeId;

use super::clones::plan_overwrite;
use super::ends::{
    plan_doom, plan_snapshot_end, plan_snapshot_recovery, plan_volume_end, plan_volume_recovery,
};
use super::types::{NewCopy, NewVolume, SnapshotInfo, VolumeInfo, VolumeUpdate};
use crate::array::Array;
use crate::array::distinct::{check, check_all, check_single};
use crate::error::Error;
use crate::objects::time::BEGUN_MS;
use crate::objects::volumes::VolumeRecord;
use crate::state::State;
use crate::values::name::VolumeName;

/// The maximum number of volumes that are truncated at once: each costs up to about 60 us within
/// one commit, depending on the data at its new end, during which no other commit is written.
pub(crate) const TRUNCATED_MAX: usize = 100;

impl Array {
    /// Creates volumes; durable when it returns.
    ///
    /// # Errors
    /// Those of [`Array::create_volume`], and `named_twice`.
    pub fn create_volumes(&self, new: Vec<NewVolume>) -> Result<Vec<VolumeInfo>, Error> {
        check(new.iter().map(|new| new.name.as_str()))?;
        let plan = |state: &State, before, new| self.plan_volume(state, before, new);
        self.change_all(new, plan, |state, record| self.show_new_volume(state, record))
    }

    /// Creates volumes from the current content of another volume or a snapshot.
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
            if state.volumes().contains_key(&record.id) {
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
        if update.placed.is_some() {
            // No two volumes of one container can have the same name.
            check(names.iter().map(|name| VolumeName::own_of(name)))?;
        }
        if update.truncate && update.size_bytes.is_some() && names.len() > TRUNCATED_MAX {
            return Err(Error::TooManyAtOnce {
                what: "volumes are truncated",
                limit: TRUNCATED_MAX,
            });
        }
        let plan =
            |state: &State, before, name: &String| self.plan_update(state, before, name, update);
        self.change_all(names, plan, |state, record| self.show_volume(state, record))
    }

    /// Destroys volumes with their snapshots.
    ///
    /// # Errors
    /// Those of [`Array::destroy_volume`], and `named_twice`.
    pub fn destroy_volumes(&self, names: &[String], now_ms: u64) -> Result<Vec<VolumeInfo>, Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| plan_volume_end(state, name, now_ms);
        self.change_all(names, plan, |state, record| self.show_volume(state, record))
    }

    /// Recovers destroyed volumes.
    ///
    /// # Errors
    /// Those of [`Array::recover_volume`], and `named_twice`.
    pub fn recover_volumes(&self, names: &[String]) -> Result<Vec<VolumeInfo>, Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| plan_volume_recovery(state, name);
        self.change_all(names, plan, |state, record| self.show_volume(state, record))
    }

    /// Eradicates destroyed volumes. After the first commit none of them can be recovered;
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
        self.finish_eradications(&begun)
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
        let plan = |state: &State, _, name: &String| plan_snapshot_end(state, name, now_ms);
        let shown =
            self.change_all(names, plan, |state, planned| self.show_snapshot(state, planned))?;
        Ok(shown.into_iter().flatten().collect())
    }

    /// Recovers destroyed snapshots.
    ///
    /// # Errors
    /// Those of [`Array::recover_snapshot`], and `named_twice`.
    pub fn recover_snapshots(&self, names: &[String]) -> Result<Vec<SnapshotInfo>, Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| plan_snapshot_recovery(state, name);
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
}
