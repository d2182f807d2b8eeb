//! What groups do automatically: they take snapshots that are due, and destroy those that retention
//! does not keep. Nothing here reads a clock: [`Array::run_due`] is given the time, so the same
//! times give the same snapshots.

use std::collections::BTreeMap;

use block::VolumeId;
use store::Change;

use crate::eradication::{BEGUN_MS, by_the_clock};
use crate::groups::{Group, GroupId, plan_group, show_group};
use crate::retention::LetGo;
use crate::several::check_all;
use crate::snapshots::{Moment, SnapshotRecord};
use crate::state::State;
use crate::{Array, Error, GroupInfo, NewSnapshots, SnapshotSource, record};

/// The most groups handled in one turn.
const GROUPS_A_TURN: usize = 16;
/// The most snapshots that one commit destroys; those of one moment always fit.
const DESTROYED_MAX: usize = 1_000;
/// How long to wait after the store has refused something.
const REST_MS: u64 = 60_000;

/// The result of a turn.
#[derive(Debug, Default)]
pub struct Ran {
    /// The moments that were taken: `GROUP.SUFFIX`.
    pub taken: Vec<String>,
    /// The moments that retention destroyed.
    pub let_go: Vec<String>,
    /// Groups whose due snapshots could not be taken, and why. They are due again at the next slot
    /// of their schedule.
    pub missed: Vec<(String, Error)>,
}

impl Ran {
    /// Whether nothing had to be done.
    pub fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.let_go.is_empty() && self.missed.is_empty()
    }
}

/// The times of turns.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    last_ms: u64,
    /// No turn before this time, after a refusal of the store.
    not_before_ms: u64,
    /// The result of the last due snapshots of each group that had any since the start: the error,
    /// or `None` if they were taken.
    last: BTreeMap<GroupId, Option<String>>,
}

impl Array {
    /// Takes the snapshots that are due, and destroys those that retention does not keep. Call it
    /// often; it costs nothing if nothing is due. Slots missed since the last call are made up for
    /// by one snapshot.
    ///
    /// # Errors
    /// Those of the store: the rest is tried again after a minute.
    pub fn run_due(&self, now_ms: u64) -> Result<Ran, Error> {
        let mut turns = self.turns.lock();
        if now_ms < turns.last_ms {
            // The clock was set back: groups scheduled for later may be due now.
            let mut state = self.state.write();
            let groups: Vec<GroupId> = state.groups.keys().copied().collect();
            groups.into_iter().for_each(|id| state.agenda.touch(id));
            turns.not_before_ms = 0;
        }
        turns.last_ms = now_ms;
        let mut ran = Ran::default();
        if now_ms < turns.not_before_ms {
            return Ok(ran);
        }
        for _ in 0..GROUPS_A_TURN {
            let Some(id) = self.state.read().agenda.due(now_ms) else { break };
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
                let name = self.state.read().groups.get(&id).map(|group| group.name.to_string());
                ran.missed.push((name.unwrap_or_default(), error));
                self.skip_slot(id, now_ms)?;
            }
        }
        self.let_go(id, now_ms, ran)
    }

    /// The result of the last due snapshots of each group that has a schedule: `None` if none were
    /// due since the start.
    pub fn last_snapshots(&self) -> Vec<(String, Option<Result<(), String>>)> {
        let turns = self.turns.lock();
        let state = self.state.read();
        let scheduled = state.groups.iter();
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

    /// Snapshots that can't be taken are not retried all the time.
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

    /// Destroys what the retention of a group does not keep, and schedules the next look at it.
    fn let_go(&self, id: GroupId, now_ms: u64, ran: &mut Ran) -> Result<(), Error> {
        let mut is_more = true;
        if self.state.read().time.is_held() {
            // The clock has jumped ahead: it may be wrong.
            self.state.write().agenda.set(id, Some(now_ms.saturating_add(REST_MS)));
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

    /// Brings destroyed groups back, with the snapshots that were destroyed with them.
    ///
    /// # Errors
    /// `no_such_group`, `not_destroyed`, `eradicated`, `named_twice`, and those of the store.
    pub fn recover_groups(&self, names: &[String]) -> Result<Vec<GroupInfo>, Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| {
            let (id, group) = state.any_group(name)?;
            let object = || format!("Group {}", group.name);
            crate::eradication::check_recoverable(group.eradicate_ms, object)?;
            plan_group(id, Group { eradicate_ms: None, ..group.clone() })
        };
        self.change_all(names, plan, show_group)
    }

    /// Eradicates destroyed groups with their snapshots. Data that only these held is freed. From
    /// the first commit on none of them can be recovered; eradicating their snapshots may need
    /// further commits, and continues after a crash.
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

    /// Continues the eradication of the first group that is due.
    pub(crate) fn eradicate_due_group(&self, now_ms: u64, wall_ms: u64) -> Result<(), Error> {
        let first = self.state.read().doomed_groups.first().copied();
        let Some((_, id)) = first.filter(|(due, _)| *due <= now_ms) else { return Ok(()) };
        let plan = |state: &State| match state.groups.get(&id) {
            Some(group) if group.eradicate_ms.is_some_and(|due| due <= now_ms) => {
                plan_group(id, Group { eradicate_ms: Some(BEGUN_MS), ..group.clone() })
                    .map(|(change, planned)| (change, Some(planned)))
            }
            // Recovered meanwhile.
            _ => Ok((Change::default(), None)),
        };
        let name = {
            let state = self.state.read();
            let new = state.groups.get(&id).filter(|group| group.eradicate_ms != Some(BEGUN_MS));
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

    /// One commit in the eradication of a group that has begun; returns whether more are needed.
    fn eradicate_group_step(&self, id: GroupId) -> Result<bool, Error> {
        let of_group = |state: &State| -> Vec<VolumeId> {
            let ids = state.moments_of(id).flat_map(|(_, moment)| moment.snapshots.iter().copied());
            ids.take(DESTROYED_MAX).collect()
        };
        if !of_group(&self.state.read()).is_empty() {
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

/// The group if its snapshots are due, and when they are due next.
fn due(state: &State, id: GroupId, now_ms: u64) -> Option<(&Group, u64)> {
    let group = state.groups.get(&id)?;
    if !group.schedule.enabled || group.eradicate_ms.is_some() {
        return None;
    }
    Some((group, group.schedule.due(group.next_ms, now_ms)?))
}

/// The snapshots that a group's retention does not keep, and when to look at it again.
fn gone(state: &State, id: GroupId, now_ms: u64) -> (Vec<(String, &Moment)>, Option<u64>) {
    let Some(group) = state.groups.get(&id).filter(|group| group.eradicate_ms.is_none()) else {
        return (Vec::new(), None);
    };
    let made = |moment: &Moment| {
        let snapshots = moment.snapshots.iter().filter_map(|id| state.snapshots.get(id));
        let live = snapshots.filter(|s| s.retained && s.eradicate_ms.is_none());
        live.map(|snapshot| snapshot.created_ms).min()
    };
    let moments = state.moments_of(id).map(|(_, moment)| moment);
    let mut moments: Vec<_> = moments.filter_map(|moment| Some((made(moment)?, moment))).collect();
    // Ids go up, so snapshots of the same millisecond have an order as well.
    moments.sort_by_key(|(made_ms, moment)| (*made_ms, moment.snapshots.first().copied()));
    let times: Vec<u64> = moments.iter().map(|(made_ms, _)| *made_ms).collect();
    let LetGo { places, next_ms } = group.retention.let_go(&times, now_ms);
    let name = |moment: &Moment| format!("{}.{}", group.name, moment.suffix);
    let gone = places.into_iter().map(|place| (name(moments[place].1), moments[place].1)).collect();
    let due_ms = group.schedule.enabled.then_some(group.next_ms);
    (gone, [next_ms, due_ms].into_iter().flatten().min())
}

/// Snapshots whose end is set or cleared.
pub(crate) type PlannedMoments = Vec<(VolumeId, SnapshotRecord)>;

/// Adds the end of a moment to a change; returns true, and adds nothing, if there is no room for
/// it.
pub(crate) fn plan_moment_end(
    state: &State,
    moment: &Moment,
    now_ms: u64,
    change: &mut Change,
    planned: &mut PlannedMoments,
) -> Result<bool, Error> {
    let snapshots = moment.snapshots.iter().filter_map(|id| Some((*id, state.snapshots.get(id)?)));
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
