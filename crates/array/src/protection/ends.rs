//! The end of groups, and of their snapshots.

use block::VolumeId;
use store::Change;

use super::groups::{GroupInfo, plan_group, show_group};
use crate::array::Array;
use crate::array::distinct::check_all;
use crate::error::Error;
use crate::objects::groups::{Group, GroupId};
use crate::objects::snapshots::SnapshotRecord;
use crate::objects::time::BEGUN_MS;
use crate::record;
use crate::state::State;
use crate::tables::moments::Moment;
use crate::volumes::check_recoverable;

/// The maximum number of snapshots that one commit destroys; those of one moment always fit.
const DESTROYED_MAX: usize = 1_000;

impl Array {
    /// Destroys groups with their snapshots. They can be recovered until they are eradicated. Their
    /// volumes stay.
    ///
    /// # Errors
    /// `no_such_group`, `group_destroyed`, `named_twice`, and those of the store.
    pub fn destroy_groups(&self, names: &[String], now_ms: u64) -> Result<Vec<GroupInfo>, Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| {
            let (id, group) = state.group(name)?;
            plan_group(id, Group { eradicate_ms: state.doom(now_ms), ..group.clone() })
        };
        self.change_all(names, plan, show_group)
    }

    /// Recovers destroyed groups, with the snapshots that were destroyed with them.
    ///
    /// # Errors
    /// `no_such_group`, `not_destroyed`, `eradicated`, `named_twice`, and those of the store.
    pub fn recover_groups(&self, names: &[String]) -> Result<Vec<GroupInfo>, Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| {
            let (id, group) = state.any_group(name)?;
            let object = || format!("Group {}", group.name);
            check_recoverable(group.eradicate_ms, object)?;
            plan_group(id, Group { eradicate_ms: None, ..group.clone() })
        };
        self.change_all(names, plan, show_group)
    }

    /// Eradicates destroyed groups with their snapshots. Data to which only these referred is
    /// freed. After the first commit none of them can be recovered; eradicating their snapshots may
    /// need further commits, and continues after a crash.
    ///
    /// # Errors
    /// `no_such_group`, `not_destroyed`, `named_twice`, and those of the store.
    pub fn eradicate_groups(&self, names: &[String]) -> Result<(), Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| {
            let (id, group) = state.any_group(name)?;
            if group.eradicate_ms.is_none() {
                return Err(Error::NotDestroyed(format!("Group {}", group.name)));
            }
            plan_group(id, Group { eradicate_ms: Some(BEGUN_MS), ..group.clone() })
        };
        let begun = self.change_all(names, plan, |state, (id, group)| {
            state.replace_group(id, group);
            id
        })?;
        begun.into_iter().try_for_each(|id| {
            while self.eradicate_group_step(id)? {}
            Ok(())
        })
    }

    /// Makes one commit of the eradication of a group that has begun; returns whether more are
    /// needed.
    pub(super) fn eradicate_group_step(&self, id: GroupId) -> Result<bool, Error> {
        let of_group = |state: &State| -> Vec<VolumeId> {
            let ids = state.moments_of(id).flat_map(|(_, moment)| moment.snapshots.iter().copied());
            ids.take(DESTROYED_MAX).collect()
        };
        if !of_group(&self.read()).is_empty() {
            self.eradicate(|state| Ok(of_group(state)))?;
            return Ok(true);
        }
        let plan = |_: &State| {
            let config = vec![(record::group_key(id), None)];
            Ok((Change { config, ..Change::default() }, id))
        };
        self.change(plan, State::remove_group)?;
        Ok(false)
    }
}

/// Snapshots whose eradication time is set or cleared.
pub(crate) type PlannedMoments = Vec<(VolumeId, SnapshotRecord)>;

/// Adds the destruction of a moment to a change; returns true, and adds nothing, if there is no
/// room for it.
pub(crate) fn plan_moment_end(
    state: &State,
    moment: &Moment,
    now_ms: u64,
    change: &mut Change,
    planned: &mut PlannedMoments,
) -> Result<bool, Error> {
    let snapshots =
        moment.snapshots.iter().filter_map(|id| Some((*id, state.snapshots().get(id)?)));
    let live: Vec<_> = snapshots.filter(|(_, s)| s.eradicate_ms.is_none()).collect();
    if !planned.is_empty() && planned.len() + live.len() > DESTROYED_MAX {
        return Ok(true);
    }
    for (id, snapshot) in live {
        let ended = SnapshotRecord { eradicate_ms: state.doom(now_ms), ..snapshot.clone() };
        change.config.push((record::snapshot_key(id), Some(record::snapshot(&ended)?)));
        planned.push((id, ended));
    }
    Ok(false)
}

pub(crate) fn show_moments(state: &mut State, planned: PlannedMoments) {
    planned.into_iter().for_each(|(id, record)| state.replace_snapshot(id, record));
}
