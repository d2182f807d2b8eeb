//! A monitor for the reservations of a logical unit: PERSISTENT RESERVE (SPC-4, 5.13) and RESERVE
//! and RELEASE (SPC-2, 7.21), with the exceptions of SPC-4, 5.13.3 (CRH).
//!
//! It gets the requests and the responses, and checks whether a response was possible at some time
//! between both. While nothing else is in flight that is exact; otherwise any order of what is in
//! flight may explain a response. If the standard leaves a choice, both are right.
//!
//! # How to use it
//! One monitor for each logical unit. [`Reservations::invoke`] before a command is sent, then one
//! of [`Reservations::answer`]; [`Reservations::refused`] (BUSY, TASK SET FULL, UNIT ATTENTION: it
//! was not executed); [`Reservations::lost`] and, when the session certainly has ended,
//! [`Reservations::never_again`]. A command that moves data is an [`Op::Command`]; any status
//! except RESERVATION CONFLICT means that it was allowed, unless it was refused.
//!
//! A reset of the unit, and the loss of a session, are operations, too: [`Op::Reset`] and
//! [`Op::Loss`] are invoked when they may begin, and end with [`Outcome::Good`].
//! [`Reservations::restarted`] ends all of it.

mod rules;

use std::collections::{BTreeMap, BTreeSet};

pub use super::search::OpId;
use super::search::{Search, Stuck};
use rules::Unit;
pub use rules::{Action, Kind, State};

/// A path from an initiator port to a target port, numbered by the driver of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nexus(pub u32);

/// How reservations of others restrict a command (SPC-4, table 67).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only RESERVE: TEST UNIT READY and similar commands.
    Status,
    /// Exclusive access reservations, and RESERVE.
    Read,
    /// Every reservation.
    Write,
}

/// A request of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A command that reservations may restrict.
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
    /// A reset of the logical unit: it ends a RESERVE.
    Reset,
    /// The loss of a session: it ends a RESERVE of this session.
    Loss(Nexus),
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// GOOD; for a command that moves data, any response that shows that it was allowed.
    Good,
    /// RESERVATION CONFLICT.
    Conflict,
    /// CHECK CONDITION because of what the action requests.
    Failed,
    /// READ KEYS: the keys in ascending order.
    Keys(Vec<u64>),
    /// READ RESERVATION: the holder's key (0 for all registrants) and the type, if there is one.
    Held(Option<(u64, Kind)>),
}

/// An impossible response, or too much to keep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// It was not possible at any time.
    #[error("{what} to {id:?} ({op:?}) is not possible: {states:?}")]
    Impossible {
        /// The operation.
        id: OpId,
        /// The request.
        op: Op,
        /// The response.
        what: String,
        /// The possible states before the response.
        states: Vec<State>,
    },
    /// More states are possible than may be kept.
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
    /// The same without what was observed: a restart of the array may undo an action without a
    /// response, even if others have observed it.
    durable: Search<Unit>,
    ops: BTreeMap<OpId, Op>,
    next: u64,
    most: usize,
}

impl Reservations {
    /// Creates a monitor without registrations and reservations.
    pub fn new(configurations_max: usize) -> Self {
        Self {
            search: Search::new(State::default(), configurations_max),
            durable: Search::new(State::default(), configurations_max),
            ops: BTreeMap::new(),
            next: 0,
            most: configurations_max,
        }
    }

    /// Begins an operation that is about to be sent.
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

    /// Processes a response.
    ///
    /// # Errors
    /// It was not possible. The monitor can't be used after that.
    pub fn answer(&mut self, id: OpId, outcome: &Outcome) -> Result<(), Wrong> {
        let what = format!("answer {outcome:?}");
        // A refused command has observed what others did, and that is no promise.
        let is_refused = matches!(outcome, Outcome::Conflict | Outcome::Failed);
        self.conclude(id, what, |search, is_durable| match is_refused && is_durable {
            true => search.refuse(id),
            false => search.answer(id, outcome),
        })
    }

    /// Ends an operation that was refused before reservations were checked.
    ///
    /// # Errors
    /// Its effect was observed.
    pub fn refused(&mut self, id: OpId) -> Result<(), Wrong> {
        self.conclude(id, "refusal".to_owned(), |search, _| search.refuse(id))
    }

    /// Records that the response will never come; the operation may take effect at any time until
    /// [`Reservations::never_again`].
    pub fn lost(&mut self, id: OpId) {
        self.search.lose(id);
        self.durable.lose(id);
    }

    /// Records that it has had its effect, or never will.
    ///
    /// # Errors
    /// Too much is possible.
    pub fn never_again(&mut self, id: OpId) -> Result<(), Wrong> {
        self.conclude(id, "the end".to_owned(), |search, _| search.end(id))
    }

    /// Records that the array was started again: everything in flight is over, and what is not to
    /// be kept through a power loss (APTPL) is gone.
    ///
    /// # Errors
    /// Too much is possible.
    pub fn restarted(&mut self) -> Result<(), Wrong> {
        let in_flight = self.ops.len();
        for id in std::mem::take(&mut self.ops).into_keys() {
            // Operations that only read are not there.
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

    /// Returns the possible states if nothing in flight takes effect from here on.
    pub fn states(&self) -> BTreeSet<State> {
        self.search.states()
    }

    /// Returns how many operations are not over.
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
            panic!("{id:?} has ended or was never invoked");
        };
        let states = self.search.states().into_iter().collect();
        let mut result = Ok(());
        // A lost read is no longer in the search.
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
