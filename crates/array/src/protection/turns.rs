//! Automatic actions of groups: taking snapshots that are due, and destroying those that retention
//! does not keep. Nothing here reads a clock: the time is an argument of [`Array::run_due`], so the
//! same times yield the same snapshots.

use std::collections::BTreeMap;

use store::Change;

use super::ends::{plan_moment_end, show_moments};
use super::groups::{plan_group, show_group};
use crate::array::Array;
use crate::error::Error;
use crate::objects::groups::{Group, GroupId};
use crate::state::State;
use crate::tables::moments::Moment;
use crate::values::retention::LetGo;
use crate::volumes::{NewSnapshots, SnapshotSource};

/// The maximum number of groups handled in one turn.
const GROUPS_A_TURN: usize = 16;

/// The pause after a refusal of the store.
const REST_MS: u64 = 60_000;

/// The result of a turn.
#[derive(Debug, Default)]
pub struct Ran {
    /// The moments that were taken: `GROUP.SUFFIX`.
    pub taken: Vec<String>,
    /// The moments that retention destroyed.
    pub let_go: Vec<String>,
    /// Groups whose due snapshots could not be taken, with the errors. They are due again at the
    /// next slot of their schedule.
    pub missed: Vec<(String, Error)>,
}

impl Ran {
    /// Returns whether nothing had to be done.
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.let_go.is_empty() && self.missed.is_empty()
    }
}

impl Array {
    /// Takes the snapshots that are due, and destroys those that retention does not keep. Call it
    /// often; it is cheap if nothing is due. One snapshot replaces all slots that were missed since
    /// the last call.
    ///
    /// # Errors
    /// Those of the store: the rest is retried after a minute.
    pub fn run_due(&self, now_ms: u64) -> Result<Ran, Error> {
        let mut turns = self.turns();
        if now_ms < turns.last_ms {
            // The clock was set back: groups scheduled for later may be due now.
            let mut state = self.write();
            let groups: Vec<GroupId> = state.groups().keys().copied().collect();
            groups.into_iter().for_each(|id| state.agenda.touch(id));
            turns.not_before_ms = 0;
        }
        turns.last_ms = now_ms;
        let mut ran = Ran::default();
        if now_ms < turns.not_before_ms {
            return Ok(ran);
        }
        for _ in 0..GROUPS_A_TURN {
            let Some(id) = self.read().agenda.due(now_ms) else { break };
            if let Err(error) = self.run_group(id, now_ms, &mut ran, &mut turns.last) {
                turns.not_before_ms = now_ms.saturating_add(REST_MS);
                return Err(error);
            }
        }
        Ok(ran)
    }

    fn run_group(
        &self,
        id: GroupId,
        now_ms: u64,
        ran: &mut Ran,
        last: &mut BTreeMap<GroupId, Option<String>>,
    ) -> Result<(), Error> {
        match self.take_due(id, now_ms) {
            Ok(None) => {}
            Ok(Some(taken)) => {
                last.insert(id, None);
                ran.taken.push(taken);
            }
            Err(error @ (Error::Store(_) | Error::PoolFull)) => {
                last.insert(id, Some(error.to_string()));
                return Err(error);
            }
            Err(error) => {
                last.insert(id, Some(error.to_string()));
                let name = self.read().groups().get(&id).map(|group| group.name.to_string());
                ran.missed.push((name.unwrap_or_default(), error));
                self.skip_slot(id, now_ms)?;
            }
        }
        self.let_go(id, now_ms, ran)
    }

    /// Returns the result of the last due snapshots of each group that has a schedule: `None` if
    /// none were due since the start.
    pub fn last_snapshots(&self) -> Vec<(String, Option<Result<(), String>>)> {
        let turns = self.turns();
        let state = self.read();
        let scheduled = state.groups().iter();
        let scheduled = scheduled.filter(|(_, g)| g.schedule.enabled && g.eradicate_ms.is_none());
        let outcome = |why: &Option<String>| why.clone().map_or(Ok(()), Err);
        scheduled
            .map(|(id, group)| (group.name.to_string(), turns.last.get(id).map(outcome)))
            .collect()
    }

    /// Takes the snapshots of a group if they are due; the same commit records when the next are
    /// due.
    fn take_due(&self, id: GroupId, now_ms: u64) -> Result<Option<String>, Error> {
        let plan = |state: &State| {
            let Some((group, next_ms)) = due(state, id, now_ms) else {
                return Ok((Change::default(), None));
            };
            let source = SnapshotSource::Group(group.name.to_string());
            let new =
                NewSnapshots { source, suffix: None, apply_retention: true, created_ms: now_ms };
            let (change, planned) = self.plan_snapshots(state, &new, Some(next_ms))?;
            let moment = format!("{}.{}", group.name, planned.suffix());
            Ok((change, Some((planned, moment))))
        };
        self.change(plan, |state, planned| {
            planned.map(|(planned, moment)| {
                planned.show(state);
                moment
            })
        })
    }

    /// Skips the current slot of a group, so that snapshots that can't be taken are not retried
    /// continuously.
    fn skip_slot(&self, id: GroupId, now_ms: u64) -> Result<(), Error> {
        let plan = |state: &State| match due(state, id, now_ms) {
            None => Ok((Change::default(), None)),
            Some((group, next_ms)) => {
                let (change, planned) = plan_group(id, Group { next_ms, ..group.clone() })?;
                Ok((change, Some(planned)))
            }
        };
        self.change(plan, |state, planned| {
            planned.map(|planned| show_group(state, planned));
        })
    }

    /// Destroys the snapshots that the retention of a group does not keep, and schedules its next
    /// check.
    fn let_go(&self, id: GroupId, now_ms: u64, ran: &mut Ran) -> Result<(), Error> {
        let mut is_more = true;
        if self.read().time.is_held() {
            // The clock has jumped ahead: it may be wrong.
            self.write().agenda.set(id, Some(now_ms.saturating_add(REST_MS)));
            return Ok(());
        }
        while is_more {
            let plan = |state: &State| {
                let (gone, next_ms) = gone(state, id, now_ms);
                let (mut change, mut planned, mut names) = Default::default();
                let mut is_more = false;
                for (name, moment) in gone {
                    if plan_moment_end(state, moment, now_ms, &mut change, &mut planned)? {
                        is_more = true;
                        break;
                    }
                    Vec::push(&mut names, name);
                }
                Ok((change, (planned, names, next_ms, is_more)))
            };
            let (names, more) =
                self.change(plan, |state, (planned, names, next_ms, is_more)| {
                    show_moments(state, planned);
                    // If there are more, the group stays due.
                    if !is_more {
                        state.agenda.set(id, next_ms);
                    }
                    (names, is_more)
                })?;
            ran.let_go.extend(names);
            is_more = more;
        }
        Ok(())
    }
}

/// Returns the group if its snapshots are due, and when they are due next.
fn due(state: &State, id: GroupId, now_ms: u64) -> Option<(&Group, u64)> {
    let group = state.groups().get(&id)?;
    if !group.schedule.enabled || group.eradicate_ms.is_some() {
        return None;
    }
    Some((group, group.schedule.due(group.next_ms, now_ms)?))
}

/// Returns the snapshots that a group's retention does not keep, and the time of its next check.
fn gone(state: &State, id: GroupId, now_ms: u64) -> (Vec<(String, &Moment)>, Option<u64>) {
    let Some(group) = state.groups().get(&id).filter(|group| group.eradicate_ms.is_none()) else {
        return (Vec::new(), None);
    };
    let made = |moment: &Moment| {
        let snapshots = moment.snapshots.iter().filter_map(|id| state.snapshots().get(id));
        let live = snapshots.filter(|s| s.retained && s.eradicate_ms.is_none());
        live.map(|snapshot| snapshot.created_ms).min()
    };
    let moments = state.moments_of(id).map(|(_, moment)| moment);
    let mut moments: Vec<_> = moments.filter_map(|moment| Some((made(moment)?, moment))).collect();
    // Ids increase, so snapshots of the same millisecond are ordered as well.
    moments.sort_by_key(|(made_ms, moment)| (*made_ms, moment.snapshots.first().copied()));
    let times: Vec<u64> = moments.iter().map(|(made_ms, _)| *made_ms).collect();
    let LetGo { places, next_ms } = group.retention.let_go(&times, now_ms);
    let name = |moment: &Moment| format!("{}.{}", group.name, moment.suffix);
    let gone = places.into_iter().map(|place| (name(moments[place].1), moments[place].1)).collect();
    let due_ms = group.schedule.enabled.then_some(group.next_ms);
    (gone, [next_ms, due_ms].into_iter().flatten().min())
}
