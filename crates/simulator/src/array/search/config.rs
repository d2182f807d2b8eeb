//! Explanations of responses, and which of them are worth keeping.

use std::collections::BTreeMap;

use super::Model;

/// The index of an operation among those in flight.
pub(super) type Slot = u8;

/// One explanation of the responses so far.
#[derive(Clone, Debug)]
pub(super) struct Config<M: Model> {
    pub(super) state: M::State,
    /// A bit for each operation in flight that has changed the state.
    pub(super) taken: u128,
    /// A bit for each of the others that could have had its effect at some time.
    pub(super) free: u128,
    /// The outcomes without effect that the others could have had at some time. In ascending order.
    pub(super) seen: Vec<(Slot, M::Outcome)>,
}

/// An operation in flight.
#[derive(Clone, Debug)]
pub(super) struct InFlight<M: Model> {
    pub(super) op: M::Op,
    pub(super) slot: Slot,
    /// Its response will never come.
    pub(super) lost: bool,
}

impl<M: Model> Config<M> {
    pub(super) fn without(mut self, slot: Slot) -> Self {
        self.taken &= !bit(slot);
        self.forget(slot);
        self
    }

    pub(super) fn forget(&mut self, slot: Slot) {
        self.free &= !bit(slot);
        self.seen.retain(|(of, _)| *of != slot);
    }

    pub(super) fn has_seen(&self, slot: Slot, outcome: &M::Outcome) -> bool {
        self.seen.iter().any(|(of, seen)| *of == slot && seen == outcome)
    }

    fn note(&mut self, slot: Slot, outcome: M::Outcome) {
        let entry = (slot, outcome);
        if let Err(at) = self.seen.binary_search(&entry) {
            self.seen.insert(at, entry);
        }
    }

    /// Records that an operation could have its effect here if that changes nothing.
    pub(super) fn look(&mut self, in_flight: &InFlight<M>) {
        for (state, outcome) in M::apply(&self.state, &in_flight.op) {
            if state != self.state {
                continue;
            }
            match M::changes(&in_flight.op, &outcome) {
                true => self.free |= bit(in_flight.slot),
                false => self.note(in_flight.slot, outcome),
            }
        }
    }

    /// Compares two with the same state. What could have had its effect at some time need not have
    /// had it permanently, and what was lost need not have had it at all.
    pub(super) fn allows_as_much_as(&self, other: &Self, lost: u128) -> bool {
        if self.taken & !other.taken != 0 {
            return false;
        }
        let mut own = self.seen.iter();
        other.taken & !self.taken & !lost & !self.free == 0
            && other.free & !self.free == 0
            && other.seen.iter().all(|entry| own.any(|had| had == entry))
    }
}

/// Configurations of which none allows everything that another allows, by their states.
#[derive(Debug)]
pub(super) struct Front<M: Model> {
    pub(super) map: BTreeMap<Option<M::State>, Vec<Config<M>>>,
    pub(super) len: usize,
    /// Whether configurations are compared regardless of their states.
    pub(super) ignores_state: bool,
}

impl<M: Model> Default for Front<M> {
    fn default() -> Self {
        Self { map: BTreeMap::new(), len: 0, ignores_state: false }
    }
}

impl<M: Model> Front<M> {
    pub(super) fn into_configs(self) -> Vec<Config<M>> {
        self.map.into_values().flatten().collect()
    }
}

pub(super) fn bit(slot: Slot) -> u128 {
    1 << slot
}
