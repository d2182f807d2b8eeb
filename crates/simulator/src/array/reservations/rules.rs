//! The effect of each operation on reservations, and which commands they exclude (SPC-4, 5.13 and
//! 6.16; SPC-2, 5.5.1 and 7.21). Derived from the standards, not from the array's own crate.

use std::collections::BTreeMap;

use super::{Access, Nexus, Op, Outcome};
use crate::array::search::{self, Model};

/// The types of a persistent reservation (SPC-4, 6.15.3.4), by their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Only the holder writes.
    WriteExclusive = 1,
    /// Only the holder reads and writes.
    ExclusiveAccess = 3,
    /// Only registered nexuses write.
    WriteExclusiveRegistrantsOnly = 5,
    /// Only registered nexuses read and write.
    ExclusiveAccessRegistrantsOnly = 6,
    /// As [`Kind::WriteExclusiveRegistrantsOnly`], and all of them hold it.
    WriteExclusiveAllRegistrants = 7,
    /// As [`Kind::ExclusiveAccessRegistrantsOnly`], and all of them hold it.
    ExclusiveAccessAllRegistrants = 8,
}

impl Kind {
    /// All types.
    pub const ALL: [Self; 6] = [
        Self::WriteExclusive,
        Self::ExclusiveAccess,
        Self::WriteExclusiveRegistrantsOnly,
        Self::ExclusiveAccessRegistrantsOnly,
        Self::WriteExclusiveAllRegistrants,
        Self::ExclusiveAccessAllRegistrants,
    ];

    fn bars_reads(self) -> bool {
        matches!(self as u8, 3 | 6 | 8)
    }

    fn admits_registrants(self) -> bool {
        self as u8 >= 5
    }

    fn is_held_by_all(self) -> bool {
        self as u8 >= 7
    }
}

/// PERSISTENT RESERVE OUT (SPC-4, 6.16.2). `key` is the RESERVATION KEY of the parameter list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// REGISTER, and REGISTER AND IGNORE EXISTING KEY if `ignores_key`.
    Register {
        /// The registered key; 0 for none.
        key: u64,
        /// The new key; 0 ends the registration.
        new_key: u64,
        /// Whether `key` is ignored.
        ignores_key: bool,
        /// APTPL.
        is_kept: bool,
    },
    /// RESERVE.
    Reserve {
        /// The registered key.
        key: u64,
        /// The type.
        kind: Kind,
    },
    /// RELEASE.
    Release {
        /// The registered key.
        key: u64,
        /// The type.
        kind: Kind,
    },
    /// CLEAR.
    Clear {
        /// The registered key.
        key: u64,
    },
    /// PREEMPT, and PREEMPT AND ABORT.
    Preempt {
        /// The registered key.
        key: u64,
        /// The key of the nexuses to preempt.
        victim: u64,
        /// The type of the reservation that is taken over.
        kind: Kind,
    },
    /// REGISTER AND MOVE.
    Move {
        /// The registered key.
        key: u64,
        /// The key for the other nexus.
        new_key: u64,
        /// The other nexus.
        to: Nexus,
        /// Whether the sender's registration ends (UNREG).
        unregisters: bool,
        /// APTPL.
        is_kept: bool,
    },
}

/// The state of the reservations of a logical unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    /// The registered nexuses with their keys.
    pub keys: BTreeMap<Nexus, u64>,
    /// The persistent reservation and its holder, which is meaningless if all registrants hold it.
    pub held: Option<(Kind, Nexus)>,
    /// Whether both are kept through a power loss.
    pub is_kept: bool,
    /// The nexus that holds the unit by RESERVE.
    pub exclusive: Option<Nexus>,
}

impl State {
    pub(super) fn after_power_loss(self) -> Self {
        match self.is_kept {
            true => Self { exclusive: None, ..self },
            false => Self::default(),
        }
    }

    fn is_holder(&self, nexus: Nexus) -> bool {
        self.held.is_some_and(|(kind, holder)| match kind.is_held_by_all() {
            true => self.keys.contains_key(&nexus),
            false => holder == nexus,
        })
    }

    /// Returns whether the persistent reservation does not exclude a nexus; `false` if there is
    /// none.
    fn is_admitted(&self, nexus: Nexus) -> bool {
        let as_registrant = self.held.is_some_and(|(kind, _)| kind.admits_registrants())
            && self.keys.contains_key(&nexus);
        as_registrant || self.is_holder(nexus)
    }

    fn bars(&self, nexus: Nexus, access: Access) -> bool {
        if let Some(holder) = self.exclusive {
            return holder != nexus;
        }
        let Some((kind, _)) = self.held else { return false };
        let minds = match access {
            Access::Status => false,
            Access::Read => kind.bars_reads(),
            Access::Write => true,
        };
        minds && !self.is_admitted(nexus)
    }

    /// Removes registrations. A reservation ends with its holder's registration, or with the last
    /// one if all hold it (SPC-4, 5.13.11.2.3).
    fn unregister(&mut self, goes: impl Fn(Nexus, u64) -> bool) {
        self.keys.retain(|nexus, key| !goes(*nexus, *key));
        let is_over = self.held.is_some_and(|(kind, holder)| match kind.is_held_by_all() {
            true => self.keys.is_empty(),
            false => !self.keys.contains_key(&holder),
        });
        if is_over {
            self.held = None;
        }
    }
}

/// The reservations of a logical unit as an object with operations.
#[derive(Clone, Debug)]
pub(super) struct Unit;

impl Model for Unit {
    type State = State;
    type Op = Op;
    type Outcome = Outcome;

    fn apply(state: &State, op: &Op) -> Vec<(State, Outcome)> {
        let mut next = state.clone();
        let outcome = match *op {
            Op::Command(nexus, access) => match state.bars(nexus, access) {
                true => Outcome::Conflict,
                false => Outcome::Good,
            },
            // PERSISTENT RESERVE IN and OUT conflict with RESERVE, even of the same sender.
            Op::ReadKeys | Op::ReadReservation | Op::Out(..) if state.exclusive.is_some() => {
                Outcome::Conflict
            }
            Op::ReadKeys => {
                let mut keys: Vec<u64> = state.keys.values().copied().collect();
                keys.sort_unstable();
                Outcome::Keys(keys)
            }
            Op::ReadReservation => Outcome::Held(state.held.map(|(kind, holder)| {
                let key = state.keys.get(&holder).copied().unwrap_or(0);
                (if kind.is_held_by_all() { 0 } else { key }, kind)
            })),
            Op::Out(nexus, action) => return act(state, nexus, action),
            Op::Reserve(nexus) => reserve(&mut next, nexus),
            Op::Release(nexus) => release(&mut next, nexus),
            Op::Reset => {
                next.exclusive = None;
                Outcome::Good
            }
            Op::Loss(nexus) => {
                next.exclusive = next.exclusive.filter(|holder| *holder != nexus);
                Outcome::Good
            }
        };
        vec![(next, outcome)]
    }

    fn kind(op: &Op) -> search::Kind {
        if observes(op) { search::Kind::Observes } else { search::Kind::Depends }
    }

    fn changes(op: &Op, outcome: &Outcome) -> bool {
        !observes(op) && *outcome == Outcome::Good
    }
}

pub(super) fn observes(op: &Op) -> bool {
    matches!(op, Op::Command(..) | Op::ReadKeys | Op::ReadReservation)
}

/// RESERVE (SPC-2, 7.21): it conflicts while any nexus is registered (SPC-2, 5.5.1), except for
/// nexuses that the persistent reservation admits, for which it does nothing (SPC-4, 5.13.3).
fn reserve(state: &mut State, nexus: Nexus) -> Outcome {
    if state.exclusive.is_some_and(|holder| holder != nexus) {
        return Outcome::Conflict;
    }
    if state.is_admitted(nexus) {
        return Outcome::Good;
    }
    if !state.keys.is_empty() {
        return Outcome::Conflict;
    }
    state.exclusive = Some(nexus);
    Outcome::Good
}

/// RELEASE (SPC-2, 7.17): it does nothing for others than the holder, and conflicts with
/// registrations like RESERVE.
fn release(state: &mut State, nexus: Nexus) -> Outcome {
    if state.exclusive.is_none() && !state.keys.is_empty() && !state.is_admitted(nexus) {
        return Outcome::Conflict;
    }
    state.exclusive = state.exclusive.filter(|holder| *holder != nexus);
    Outcome::Good
}

fn act(state: &State, nexus: Nexus, action: Action) -> Vec<(State, Outcome)> {
    let mut next = state.clone();
    let own = state.keys.get(&nexus).copied();
    let outcome = match action {
        Action::Register { key, new_key, ignores_key, is_kept } => {
            if !ignores_key && own.unwrap_or(0) != key {
                return vec![(next, Outcome::Conflict)];
            }
            if own.is_none() && new_key == 0 {
                // Nothing is registered; whether APTPL holds from here on is left open.
                let kept = State { is_kept, ..next.clone() };
                return vec![(next, Outcome::Good), (kept, Outcome::Good)];
            }
            next.is_kept = is_kept;
            match new_key {
                0 => next.unregister(|other, _| other == nexus),
                new_key => drop(next.keys.insert(nexus, new_key)),
            }
            Outcome::Good
        }
        // All others are for registered nexuses, with their key (SPC-4, 6.16.3).
        Action::Reserve { key, .. }
        | Action::Release { key, .. }
        | Action::Clear { key }
        | Action::Preempt { key, .. }
        | Action::Move { key, .. }
            if own != Some(key) =>
        {
            Outcome::Conflict
        }
        Action::Reserve { kind, .. } => match state.held {
            None => {
                next.held = Some((kind, nexus));
                Outcome::Good
            }
            Some((held, _)) if held == kind && state.is_holder(nexus) => Outcome::Good,
            Some(_) => Outcome::Conflict,
        },
        Action::Release { kind, .. } => match state.held {
            Some((held, _)) if state.is_holder(nexus) && held != kind => Outcome::Failed,
            _ => {
                next.held = next.held.filter(|_| !state.is_holder(nexus));
                Outcome::Good
            }
        },
        Action::Clear { .. } => {
            (next.keys, next.held) = (BTreeMap::new(), None);
            Outcome::Good
        }
        Action::Preempt { victim, kind, .. } => return preempt(state, nexus, victim, kind),
        Action::Move { new_key, to, unregisters, is_kept, .. } => match state.held {
            None => Outcome::Failed,
            Some((kind, holder)) if kind.is_held_by_all() || holder != nexus => Outcome::Conflict,
            Some(_) if new_key == 0 => Outcome::Failed,
            Some((kind, _)) => {
                next.is_kept = is_kept;
                next.keys.insert(to, new_key);
                next.held = Some((kind, to));
                if unregisters {
                    next.unregister(|other, _| other == nexus);
                }
                Outcome::Good
            }
        },
    };
    vec![(next, outcome)]
}

/// PREEMPT (SPC-4, 5.13.11.2.4 to 5.13.11.2.6, table 72).
fn preempt(state: &State, nexus: Nexus, victim: u64, kind: Kind) -> Vec<(State, Outcome)> {
    let mut next = state.clone();
    let takes_over = state.held.is_some_and(|(held, holder)| match held.is_held_by_all() {
        true => victim == 0,
        false => state.keys.get(&holder) == Some(&victim),
    });
    if takes_over {
        // The sender stays registered, and all nexuses with this key are removed: all, if all hold
        // it.
        next.keys.retain(|other, key| *other == nexus || victim != 0 && *key != victim);
        next.held = Some((kind, nexus));
        return vec![(next, Outcome::Good)];
    }
    if victim == 0 {
        return vec![(next, Outcome::Failed)];
    }
    if !state.keys.values().any(|key| *key == victim) {
        return vec![(next, Outcome::Conflict)];
    }
    // Whether a nexus that names its own key stays registered is left open.
    let mut without = state.clone();
    without.unregister(|_, key| key == victim);
    next.unregister(|other, key| key == victim && other != nexus);
    match without == next {
        true => vec![(next, Outcome::Good)],
        false => vec![(without, Outcome::Good), (next, Outcome::Good)],
    }
}
