//! A monitor for the reservations of a logical unit: PERSISTENT RESERVE (SPC-4, 5.13) and RESERVE
//! and RELEASE (SPC-2, 7.21), with the exceptions of SPC-4, 5.13.3 (CRH).
//!
//! It is told what was asked and what was answered, and says whether an answer was possible at
//! some moment between both. While nothing else is in flight that is exact; else any order of what
//! is in flight may explain an answer. Where the standard leaves a choice, both are right.
//!
//! # How to use it
//! One monitor for each logical unit. [`Reservations::invoke`] before a command is sent, then one
//! of [`Reservations::answer`]; [`Reservations::refused`] (BUSY, TASK SET FULL, UNIT ATTENTION: it
//! was not looked at); [`Reservations::lost`] and, when the session is gone for certain,
//! [`Reservations::never_again`]. A command that moves data is an [`Op::Command`]; any status but
//! RESERVATION CONFLICT means that it was let in, unless it was refused.
//!
//! A reset of the unit, and the loss of a session, are operations too: [`Op::Reset`] and
//! [`Op::Loss`] are invoked when they may begin and answered [`Outcome::Good`] when they are over.
//! [`Reservations::restarted`] ends all of it.

mod rules;

use std::collections::{BTreeMap, BTreeSet};

pub use super::search::OpId;
use super::search::{Search, Stuck};
use rules::Unit;
pub use rules::{Action, Kind, State};

/// A path from an initiator port to a target port, numbered by whoever drives the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nexus(pub u32);

/// How reservations of others restrain a command (SPC-4, table 67).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only by RESERVE: TEST UNIT READY and its like.
    Status,
    /// By exclusive access reservations, and by RESERVE.
    Read,
    /// By every reservation.
    Write,
}

/// What a host asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A command that minds reservations.
    Command(Nexus, Access),
    /// PERSISTENT RESERVE OUT.
    Out(Nexus, Action),
    /// PERSISTENT RESERVE IN, READ KEYS.
    ReadKeys,
    /// PERSISTENT RESERVE IN, READ RESERVATION.
    ReadReservation,
    /// RESERVE.
    Reserve(Nexus),
    /// RELEASE.
    Release(Nexus),
    /// A reset of the logical unit: it ends what RESERVE has begun.
    Reset,
    /// The loss of a session: likewise, if it was this one's.
    Loss(Nexus),
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// GOOD; for a command that moves data, whatever shows that it was let in.
    Good,
    /// RESERVATION CONFLICT.
    Conflict,
    /// CHECK CONDITION because of what the action asks for.
    Failed,
    /// READ KEYS: the keys in ascending order.
    Keys(Vec<u64>),
    /// READ RESERVATION: the holder's key (0 for all registrants) and the type, if there is one.
    Held(Option<(u64, Kind)>),
}

/// An answer that was not possible, or too much to keep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// It was not possible at any moment.
    #[error("{what} to {id:?} ({op:?}) is not possible: {states:?}")]
    Impossible {
        /// The operation.
        id: OpId,
        /// What was asked.
        op: Op,
        /// What was answered.
        what: String,
        /// How things stood before the answer.
        states: Vec<State>,
    },
    /// More is possible than may be kept.
    #[error("more than {most} configurations of reservations with {in_flight} in flight")]
    TooMany {
        /// How many may be kept.
        most: usize,
        /// The operations in flight.
        in_flight: usize,
    },
}

/// The monitor of a logical unit.
#[derive(Debug)]
pub struct Reservations {
    search: Search<Unit>,
    /// The same without what was observed: an action that was not answered may be undone by a
    /// restart of the array, though others have felt it.
    durable: Search<Unit>,
    ops: BTreeMap<OpId, Op>,
    next: u64,
    most: usize,
}

impl Reservations {
    /// Nobody is registered and nothing is reserved.
    pub fn new(configurations_max: usize) -> Self {
        Self {
            search: Search::new(State::default(), configurations_max),
            durable: Search::new(State::default(), configurations_max),
            ops: BTreeMap::new(),
            next: 0,
            most: configurations_max,
        }
    }

    /// Something is about to be asked.
    pub fn invoke(&mut self, op: Op) -> OpId {
        let id = OpId(self.next);
        self.next += 1;
        self.search.invoke(id, op);
        if !rules::observes(&op) {
            self.durable.invoke(id, op);
        }
        self.ops.insert(id, op);
        id
    }

    /// An answer has come.
    ///
    /// # Errors
    /// It was not possible. The monitor is of no use after that.
    pub fn answer(&mut self, id: OpId, outcome: &Outcome) -> Result<(), Wrong> {
        let what = format!("answer {outcome:?}");
        // What is refused has felt what others did, and that is no promise.
        let is_refused = matches!(outcome, Outcome::Conflict | Outcome::Failed);
        self.conclude(id, what, |search, is_durable| match is_refused && is_durable {
            true => search.refuse(id),
            false => search.answer(id, outcome),
        })
    }

    /// It was refused before anybody looked at reservations.
    ///
    /// # Errors
    /// Its effect was seen.
    pub fn refused(&mut self, id: OpId) -> Result<(), Wrong> {
        self.conclude(id, "refusal".to_owned(), |search, _| search.refuse(id))
    }

    /// The answer will never come; it may take effect at any time until
    /// [`Reservations::never_again`].
    pub fn lost(&mut self, id: OpId) {
        self.search.lose(id);
        self.durable.lose(id);
    }

    /// From here on it has had its effect, or never will.
    ///
    /// # Errors
    /// Too much is possible.
    pub fn never_again(&mut self, id: OpId) -> Result<(), Wrong> {
        self.conclude(id, "the end".to_owned(), |search, _| search.end(id))
    }

    /// The array was started again: all that is in flight is over, and what is not to be kept
    /// through a loss of power (APTPL) is gone.
    ///
    /// # Errors
    /// Too much is possible.
    pub fn restarted(&mut self) -> Result<(), Wrong> {
        let in_flight = self.ops.len();
        for id in std::mem::take(&mut self.ops).into_keys() {
            // What only looks is not there.
            if self.durable.op(id).is_some() {
                let too_many = |_| Wrong::TooMany { most: self.most, in_flight };
                self.durable.end(id).map_err(too_many)?;
            }
        }
        let states: BTreeSet<State> = self.states_of_durable();
        self.search = Search::any_of(states.iter().cloned(), self.most);
        self.durable = Search::any_of(states, self.most);
        Ok(())
    }

    fn states_of_durable(&self) -> BTreeSet<State> {
        self.durable.states().into_iter().map(State::after_power_loss).collect()
    }

    /// How things may stand if nothing in flight takes effect from here on.
    pub fn states(&self) -> BTreeSet<State> {
        self.search.states()
    }

    /// How many operations are not over.
    pub fn in_flight(&self) -> usize {
        self.ops.len()
    }

    fn conclude(
        &mut self,
        id: OpId,
        what: String,
        conclude: impl Fn(&mut Search<Unit>, bool) -> Result<(), Stuck>,
    ) -> Result<(), Wrong> {
        let in_flight = self.ops.len();
        let Some(op) = self.ops.remove(&id) else {
            panic!("{id:?} is over, or was never invoked");
        };
        let states = self.search.states().into_iter().collect();
        let mut result = Ok(());
        // A read that was lost is not in the search any more.
        if self.search.op(id).is_some() {
            result = conclude(&mut self.search, false);
        }
        if self.durable.op(id).is_some() {
            result = result.and(conclude(&mut self.durable, true));
        }
        result.map_err(|stuck| match stuck {
            Stuck::TooMany => Wrong::TooMany { most: self.most, in_flight },
            Stuck::Impossible => Wrong::Impossible { id, op, what, states },
        })
    }
}

#[cfg(test)]
mod tests;
