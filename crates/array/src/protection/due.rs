//! Eradication of objects whose delay has passed.

use block::VolumeId;
use store::Change;

use super::groups::{plan_group, show_group};
use crate::array::Array;
use crate::error::Error;
use crate::objects::audit::Deed;
use crate::objects::groups::Group;
use crate::objects::time::BEGUN_MS;
use crate::objects::users::Role;
use crate::state::State;
use crate::volumes::ERADICATED_MAX;

impl Array {
    /// Eradicates the objects that are due, in a limited number of commits: by array time, or by
    /// `now_ms` if [`Array::pass_time`] was never called. The audit log gets an entry, except for
    /// snapshots that the retention of a group applies to, which are created and destroyed
    /// continuously.
    ///
    /// # Errors
    /// Those of the store.
    pub fn eradicate_due(&self, now_ms: u64) -> Result<(), Error> {
        let (wall_ms, now_ms) = (now_ms, self.read().time.now(now_ms));
        self.eradicate_due_group(now_ms, wall_ms)?;
        self.eradicate_due_container(now_ms, wall_ms)?;
        let is_due = |(due, _): &&(u64, VolumeId)| *due <= now_ms;
        if !self.read().doomed().first().as_ref().is_some_and(is_due) {
            return Ok(());
        }
        let (due, names) = {
            let state = self.read();
            let due = state.doomed().iter().take_while(is_due).take(ERADICATED_MAX);
            let due: Vec<(u64, VolumeId)> = due.copied().collect();
            let names = state.names_of_due(&due);
            (due, names)
        };
        let deed = (!names.is_empty()).then(|| by_the_clock(wall_ms, names.join(",")));
        self.on_behalf(deed, || {
            self.eradicate(|state| {
                let due = due.iter().filter(|one| state.doomed().contains(one));
                Ok(due.map(|(_, id)| *id).collect())
            })
        })
    }

    /// Removes the first volume group or pod that is due and has no more volumes: these have their
    /// own times.
    fn eradicate_due_container(&self, now_ms: u64, wall_ms: u64) -> Result<(), Error> {
        let found = {
            let state = self.read();
            let mut due = state.containers.due(now_ms);
            let found = due.find(|(id, container)| {
                state.volumes_within(id.kind, container.name.as_str()).next().is_none()
            });
            found.map(|(id, container)| (id, container.name.to_string()))
        };
        let Some((id, name)) = found else { return Ok(()) };
        self.on_behalf(Some(by_the_clock(wall_ms, name)), || self.remove_containers(&[id]))
    }

    /// Continues the eradication of the first group that is due.
    fn eradicate_due_group(&self, now_ms: u64, wall_ms: u64) -> Result<(), Error> {
        let first = self.read().doomed_groups().first().copied();
        let Some((_, id)) = first.filter(|(due, _)| *due <= now_ms) else { return Ok(()) };
        let plan = |state: &State| match state.groups().get(&id) {
            Some(group) if group.eradicate_ms.is_some_and(|due| due <= now_ms) => {
                plan_group(id, Group { eradicate_ms: Some(BEGUN_MS), ..group.clone() })
                    .map(|(change, planned)| (change, Some(planned)))
            }
            // Recovered meanwhile.
            _ => Ok((Change::default(), None)),
        };
        let name = {
            let state = self.read();
            let new = state.groups().get(&id).filter(|group| group.eradicate_ms != Some(BEGUN_MS));
            new.map(|group| group.name.to_string())
        };
        let begun = self.on_behalf(name.map(|name| by_the_clock(wall_ms, name)), || {
            self.change(plan, |state, planned| {
                planned.map(|planned| show_group(state, planned)).is_some()
            })
        })?;
        if begun {
            self.eradicate_group_step(id)?;
        }
        Ok(())
    }
}

/// Returns the deed that the audit log records for objects eradicated after their delay.
fn by_the_clock(time_ms: u64, names: String) -> Deed {
    let [user, origin, method, path] =
        ["array", "clock", "ERADICATE", "(its delay is over)"].map(str::to_owned);
    Deed { time_ms, user, role: Role::ArrayAdmin, origin, method, path, names }
}
