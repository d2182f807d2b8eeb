//! The unit attentions that hosts must get (SAM-5, 5.14 and 6.3; SPC-4, 5.13): each nexus, for each
//! unit, before anything else.
//!
//! - A new session gets a unit attention for a reset or a lost session (29h) before any of its
//!   commands is executed.
//! - After the response to a reset, all sessions get one before a later command is executed.
//! - After the response to an action on persistent reservations, the affected nexuses get one
//!   (2Ah), including those without a session: in their next one.
//!
//! Uncertain cases are not checked: which nexuses an action affects while another one is in flight,
//! and unit attentions in responses that were never received.

use std::collections::BTreeMap;

use crate::array::reservations::{Action, Kind, Nexus, State};

/// ASC and ASCQ of a unit attention. For all kinds of resets it is 29h, 00h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Code(u8, u8);

/// Something was reset, or a session was lost.
pub(super) const RESET: Code = Code(0x29, 0);
const PREEMPTED: Code = Code(0x2a, 0x03);
const RELEASED: Code = Code(0x2a, 0x04);
const UNREGISTERED: Code = Code(0x2a, 0x05);

impl Code {
    /// Returns the code of some sense data, in either format (SPC-4, 4.5).
    pub(super) fn of(sense: &[u8]) -> Option<Self> {
        let at = match sense.first()? & 0x7f {
            0x70 | 0x71 => 12,
            0x72 | 0x73 => 2,
            _ => return None,
        };
        match (*sense.get(at)?, *sense.get(at + 1)?) {
            (0x29, _) => Some(RESET),
            (asc, ascq) => Some(Self(asc, ascq)),
        }
    }
}

/// A point in time: the number of a command that is sent, or of commands so far.
pub(super) type Moment = u64;

/// The unit attentions that a nexus has received for a unit, and those it must still receive.
#[derive(Clone, Debug, Default)]
struct Told {
    /// How often it has received each, or may have.
    counts: BTreeMap<Code, u64>,
    /// Whether its session has received the unit attention for its start.
    knows: bool,
    /// Those it must get, before a command sent at or after the given moment is executed.
    owed: Vec<(Code, Moment)>,
    /// A command of an earlier session may still get one that is never received.
    is_overheard: bool,
    /// Commands of failed connections of this session that may still get one.
    orphans: u32,
}

impl Told {
    fn count(&self, code: Code) -> u64 {
        self.counts.get(&code).copied().unwrap_or(0)
    }
}

/// The nexuses that must get a unit attention if a request is executed, and how often they had
/// received it before.
#[derive(Clone, Debug, Default)]
pub(super) struct Concerned {
    /// How often the array had started: the next start replaces all pending unit attentions.
    starts: u64,
    told: Vec<(Nexus, Code, u64)>,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Attentions {
    units: usize,
    /// By nexus, and then by unit.
    all: Vec<Told>,
    now: Moment,
    starts: u64,
}

impl Attentions {
    pub(super) fn new(nexuses: usize, units: usize) -> Self {
        Self { units, all: vec![Told::default(); nexuses * units], now: 0, starts: 0 }
    }

    fn at(&mut self, nexus: Nexus, unit: usize) -> &mut Told {
        &mut self.all[nexus.0 as usize * self.units + unit]
    }

    /// Counts a command that is sent.
    pub(super) fn sent(&mut self) -> Moment {
        self.now += 1;
        self.now
    }

    /// Records that a nexus has another session, and that the old one may have got unit attentions
    /// that were never received.
    pub(super) fn session_lost(&mut self, nexus: Nexus, unheard: impl Iterator<Item = usize>) {
        unheard.for_each(|unit| {
            self.unheard(nexus, unit);
            self.at(nexus, unit).is_overheard = true;
        });
        (0..self.units).for_each(|unit| {
            let told = self.at(nexus, unit);
            (told.knows, told.orphans) = (false, 0);
            told.owed.retain(|(code, _)| *code != RESET);
        });
    }

    /// Records that a connection has failed, whose session continues: each of its commands to this
    /// unit may get a unit attention that is never received.
    pub(super) fn connection_lost(&mut self, nexus: Nexus, units: &[usize]) {
        for unit in units {
            self.unheard(nexus, *unit);
            let told = self.at(nexus, *unit);
            (told.is_overheard, told.orphans) = (true, told.orphans + 1);
        }
    }

    /// Records that these commands have ended.
    pub(super) fn connection_is_over(&mut self, nexus: Nexus, units: &[usize]) {
        for unit in units {
            let told = self.at(nexus, *unit);
            told.orphans = told.orphans.saturating_sub(1);
        }
    }

    /// Records the response to a command of a session: all earlier ones have ended.
    pub(super) fn session_is_there(&mut self, nexus: Nexus) {
        for unit in 0..self.units {
            if self.at(nexus, unit).is_overheard && self.at(nexus, unit).orphans == 0 {
                let knows = self.at(nexus, unit).knows;
                self.unheard(nexus, unit);
                let told = self.at(nexus, unit);
                (told.knows, told.is_overheard) = (knows, false);
            }
        }
    }

    /// Records that the array has started again: its unit attention replaces all earlier ones.
    pub(super) fn array_started(&mut self) {
        self.starts += 1;
        for told in &mut self.all {
            told.owed.clear();
            (told.knows, told.is_overheard, told.orphans) = (false, false, 0);
        }
    }

    /// Records that a command may have got a unit attention, and its response does not come.
    pub(super) fn unheard(&mut self, nexus: Nexus, unit: usize) {
        let told = self.at(nexus, unit);
        told.knows = true;
        told.owed.clear();
        told.counts.values_mut().for_each(|count| *count += 1);
        for code in [RESET, PREEMPTED, RELEASED, UNREGISTERED] {
            told.counts.entry(code).or_insert(1);
        }
    }

    /// Records a unit attention for a nexus.
    pub(super) fn told(&mut self, nexus: Nexus, unit: usize, code: Code) {
        let told = self.at(nexus, unit);
        *told.counts.entry(code).or_default() += 1;
        told.knows |= code == RESET;
        told.owed.retain(|(owed, _)| *owed != code);
    }

    /// Checks that no unit attention was pending when a command was executed.
    pub(super) fn done(&mut self, nexus: Nexus, unit: usize, sent: Moment) -> Result<(), String> {
        let told = self.at(nexus, unit);
        if !told.knows {
            return Err(
                "the command was executed without a unit attention for the new session".into()
            );
        }
        match told.owed.iter().find(|(_, since)| *since < sent) {
            Some((code, _)) => {
                Err(format!("the command was executed before {code:02x?} was reported"))
            }
            None => Ok(()),
        }
    }

    /// Prepares for a reset of a unit.
    pub(super) fn resets(&mut self, unit: usize) -> Concerned {
        let nexuses = (0..self.all.len() / self.units).map(|at| Nexus(at as u32));
        let all: Vec<Nexus> = nexuses.collect();
        let knows = all.into_iter().filter(|nexus| self.at(*nexus, unit).knows);
        let told: Vec<(Nexus, Code)> = knows.map(|nexus| (nexus, RESET)).collect();
        self.concerned(unit, told)
    }

    /// Prepares for an action, with nothing else in flight that changes reservations, whose state
    /// is given.
    pub(super) fn acts(
        &mut self,
        unit: usize,
        nexus: Nexus,
        action: Action,
        state: &State,
    ) -> Concerned {
        let told = told_by(state, nexus, action);
        self.concerned(unit, told)
    }

    fn concerned(&mut self, unit: usize, told: Vec<(Nexus, Code)>) -> Concerned {
        let counted = told.into_iter().map(|(nexus, code)| {
            let count = self.at(nexus, unit).count(code);
            (nexus, code, count)
        });
        let told = counted.collect();
        Concerned { starts: self.starts, told }
    }

    /// Records that it was done. The response may have been in flight when the array restarted.
    pub(super) fn happened(&mut self, unit: usize, concerned: Concerned) {
        if concerned.starts != self.starts {
            return;
        }
        let now = self.now;
        for (nexus, code, count) in concerned.told {
            let told = self.at(nexus, unit);
            let is_in_session = code != RESET || told.knows;
            if is_in_session && !told.is_overheard && told.count(code) == count {
                told.owed.push((code, now));
            }
        }
    }
}

/// Returns which nexuses a successful action affects (SPC-4, 5.13.11).
fn told_by(state: &State, nexus: Nexus, action: Action) -> Vec<(Nexus, Code)> {
    let tell = |code, meant: &dyn Fn(Nexus, u64) -> bool| {
        let others = state.keys.iter().filter(|(other, _)| **other != nexus);
        let meant = others.filter(|(other, key)| meant(**other, **key));
        meant.map(|(other, _)| (*other, code)).collect::<Vec<_>>()
    };
    let shared = |kind: Kind| kind as u8 >= 5;
    let is_of_all = |kind: Kind| kind as u8 >= 7;
    match (action, state.held) {
        (Action::Clear { .. }, _) => tell(PREEMPTED, &|_, _| true),
        (Action::Release { kind, .. }, Some((held, holder)))
            if kind == held && shared(kind) && (is_of_all(kind) || holder == nexus) =>
        {
            tell(RELEASED, &|_, _| true)
        }
        // Its own registration ends, and the reservation that it held.
        (Action::Register { new_key: 0, .. }, Some((kind, holder)))
            if shared(kind) && !is_of_all(kind) && holder == nexus =>
        {
            tell(RELEASED, &|_, _| true)
        }
        (Action::Preempt { victim, .. }, held) => {
            let of_all = held.is_some_and(|(kind, _)| is_of_all(kind));
            tell(UNREGISTERED, &|_, key| key == victim || of_all && victim == 0)
        }
        _ => Vec::new(),
    }
}
