//! The search that the monitors share: which orders of operations explain the responses so far.
//!
//! An object has a state; an operation takes effect at one time between its invocation and its
//! response. Uncertainty is represented by a set of configurations: a state that the object may
//! have, and which operations in flight have had their effect in it. The set is empty only if no
//! order explains the responses.
//!
//! Configurations are extended only as far as a response needs it (G. Lowe, "Testing for
//! linearizability", just-in-time linearization): a response to an operation that has not had its
//! effect tries all sequences of other operations in flight that lead up to it. Three things keep
//! that small:
//! - What needs no change of the state (a read, a miscompare) is not part of a sequence: each
//!   configuration keeps the outcomes that each operation in flight could have had at some time
//!   (`seen`).
//! - An operation that overwrites any state may have overwritten any others in flight at once,
//!   unobserved: they too could have had their effect before it. So long sequences are tried only
//!   if an operation in flight may have observed what is in between.
//! - A configuration is dropped if another one allows everything that it allows. Operations whose
//!   responses never come are better without their effect, because they may have it later.

mod config;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use config::{Config, Front, InFlight, Slot, bit};

/// An operation. A monitor never reuses the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// An object with operations.
pub(super) trait Model: Clone + Debug {
    type State: Clone + Ord + Debug;
    type Op: Clone + Debug;
    type Outcome: Clone + Ord + Debug;

    /// Returns everything that an operation may do in a state: the state after it, and the outcome.
    fn apply(state: &Self::State, op: &Self::Op) -> Vec<(Self::State, Self::Outcome)>;

    /// Returns the kind of an operation.
    fn kind(op: &Self::Op) -> Kind;

    /// Returns whether it may change the state if it has this outcome. At most one outcome does.
    fn changes(op: &Self::Op, outcome: &Self::Outcome) -> bool;
}

/// How an operation depends on the state, and changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It never changes it.
    Observes,
    /// It always produces the same state, independent of the previous one.
    Overwrites,
    /// Its effect depends on the state.
    Depends,
}

/// Why a history can't continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stuck {
    /// No order of the operations explains this response.
    Impossible,
    /// There are more configurations than may be kept, or more than 128 operations in flight.
    TooMany,
}

/// The explanations of the responses to the operations on one object.
#[derive(Clone, Debug)]
pub(super) struct Search<M: Model> {
    ops: BTreeMap<OpId, InFlight<M>>,
    configs: Vec<Config<M>>,
    /// The maximum number of configurations.
    most: usize,
    /// There were too many operations in flight.
    overflown: bool,
}

impl<M: Model> Search<M> {
    pub(super) fn new(state: M::State, most: usize) -> Self {
        Self::any_of([state], most)
    }

    /// Creates a search in which the object has one of these states.
    pub(super) fn any_of(states: impl IntoIterator<Item = M::State>, most: usize) -> Self {
        let config = |state| Config { state, taken: 0, free: 0, seen: Vec::new() };
        let configs = states.into_iter().map(config).collect();
        Self { ops: BTreeMap::new(), configs, most, overflown: false }
    }

    /// Returns the possible states if no operation in flight takes effect from here on.
    pub(super) fn states(&self) -> BTreeSet<M::State> {
        self.configs.iter().map(|config| config.state.clone()).collect()
    }

    /// Returns the operations in flight, including those whose responses never come.
    pub(super) fn ops(&self) -> impl Iterator<Item = &M::Op> {
        self.ops.values().map(|in_flight| &in_flight.op)
    }

    pub(super) fn op(&self, id: OpId) -> Option<&M::Op> {
        self.ops.get(&id).map(|in_flight| &in_flight.op)
    }

    pub(super) fn invoke(&mut self, id: OpId, op: M::Op) {
        let used = self.ops.values().fold(0, |used, in_flight| used | bit(in_flight.slot));
        let slot = u128::trailing_ones(used) as Slot;
        if slot == 128 {
            self.overflown = true;
            return;
        }
        self.ops.insert(id, InFlight { op, slot, lost: false });
        self.look(id);
    }

    /// Changes an operation in flight to one that may do more.
    pub(super) fn widen(&mut self, id: OpId, change: impl FnOnce(&mut M::Op)) {
        if let Some(in_flight) = self.ops.get_mut(&id) {
            change(&mut in_flight.op);
            self.look(id);
        }
    }

    /// Records the outcomes that an operation could have in the current states.
    fn look(&mut self, id: OpId) {
        let Some(in_flight) = self.ops.get(&id).filter(|in_flight| !in_flight.lost) else { return };
        for config in &mut self.configs {
            if config.taken & bit(in_flight.slot) == 0 {
                config.look(in_flight);
            }
        }
    }

    /// Processes a response.
    pub(super) fn answer(&mut self, id: OpId, outcome: &M::Outcome) -> Result<(), Stuck> {
        let last = self.in_flight(id)?;
        let changes = M::changes(&last.op, outcome);
        let mut after = Front::default();
        let mut from = Vec::new();
        for config in std::mem::take(&mut self.configs) {
            if config.taken & bit(last.slot) != 0 {
                if changes {
                    self.keep(&mut after, config.without(last.slot));
                }
                continue;
            }
            let had = match changes {
                true => config.free & bit(last.slot) != 0,
                false => config.has_seen(last.slot, outcome),
            };
            if had {
                self.keep(&mut after, config.clone().without(last.slot));
            }
            if !had || changes {
                from.push(config);
            }
        }
        self.reach(from, &last, |had| had == outcome, &mut after)?;
        self.settle(id, after)
    }

    /// The same for a response that stands for one of several outcomes.
    pub(super) fn answer_any(&mut self, id: OpId, outcomes: &[M::Outcome]) -> Result<(), Stuck> {
        if let [outcome] = outcomes {
            return self.answer(id, outcome);
        }
        let mut all = Vec::new();
        for outcome in outcomes {
            let mut search = self.clone();
            match search.answer(id, outcome) {
                Ok(()) => all.append(&mut search.configs),
                Err(Stuck::Impossible) => {}
                Err(stuck) => return Err(stuck),
            }
        }
        let mut after = Front::default();
        self.ops.remove(&id);
        for config in all {
            self.keep(&mut after, config);
        }
        self.settle(id, after)
    }

    fn in_flight(&self, id: OpId) -> Result<InFlight<M>, Stuck> {
        match self.ops.get(&id) {
            Some(in_flight) if !self.overflown => Ok(in_flight.clone()),
            _ => Err(Stuck::TooMany),
        }
    }

    /// Records that the response never comes; the operation may take effect at any time.
    pub(super) fn lose(&mut self, id: OpId) {
        let Some(in_flight) = self.ops.get_mut(&id) else { return };
        let slot = in_flight.slot;
        if M::kind(&in_flight.op) == Kind::Observes {
            self.ops.remove(&id);
        } else {
            in_flight.lost = true;
        }
        self.rebuild(|config| {
            config.forget(slot);
            true
        });
    }

    /// Records that it has had its effect, or never will.
    pub(super) fn end(&mut self, id: OpId) -> Result<(), Stuck> {
        let last = self.in_flight(id)?;
        let mut after = Front::default();
        let configs = std::mem::take(&mut self.configs);
        for config in &configs {
            self.keep(&mut after, config.clone().without(last.slot));
        }
        if M::kind(&last.op) != Kind::Observes {
            let from = configs.into_iter().filter(|config| config.taken & bit(last.slot) == 0);
            let changes = |outcome: &M::Outcome| M::changes(&last.op, outcome);
            self.reach(from.collect(), &last, changes, &mut after)?;
        }
        self.settle(id, after)
    }

    /// Records that it has had no effect, and never will.
    pub(super) fn refuse(&mut self, id: OpId) -> Result<(), Stuck> {
        let slot = self.in_flight(id)?.slot;
        self.ops.remove(&id);
        self.rebuild(|config| {
            config.forget(slot);
            config.taken & bit(slot) == 0
        });
        if self.configs.is_empty() { Err(Stuck::Impossible) } else { Ok(()) }
    }

    fn settle(&mut self, id: OpId, after: Front<M>) -> Result<(), Stuck> {
        self.ops.remove(&id);
        self.configs = after.into_configs();
        if self.configs.is_empty() { Err(Stuck::Impossible) } else { Ok(()) }
    }

    fn rebuild(&mut self, mut keeps: impl FnMut(&mut Config<M>) -> bool) {
        let mut after = Front::default();
        for mut config in std::mem::take(&mut self.configs) {
            if keeps(&mut config) {
                self.keep(&mut after, config);
            }
        }
        self.configs = after.into_configs();
    }

    /// Adds to `after` what `last` may lead to, with a wanted outcome, as the last of a sequence of
    /// operations in flight.
    fn reach(
        &self,
        from: Vec<Config<M>>,
        last: &InFlight<M>,
        wanted: impl Fn(&M::Outcome) -> bool,
        after: &mut Front<M>,
    ) -> Result<(), Stuck> {
        let others = || self.ops.values().filter(|other| other.slot != last.slot);
        let is_any = |kind| others().any(|other| M::kind(&other.op) == kind);
        // If nothing observes the states in between, the last one of a sequence hides all before
        // it.
        let is_long = is_any(Kind::Observes) || is_any(Kind::Depends);
        let is_short = !is_long && M::kind(&last.op) == Kind::Overwrites;
        // And if nothing depends on the state, only what was observed of it counts.
        let mut visited = Front { ignores_state: !is_any(Kind::Depends), ..Front::default() };
        let mut left = Vec::new();
        for config in from {
            let is_enough = self.finish(&config, last, &wanted, after);
            if !is_enough && !is_short && (!is_long || self.keep(&mut visited, config.clone())) {
                left.push(config);
            }
        }
        let mut next = Vec::new();
        while let Some(config) = left.pop() {
            self.expand(&config, last.slot, &mut next);
            for config in next.drain(..) {
                let is_new = is_long && self.keep(&mut visited, config.clone());
                if is_new || !is_long || visited.ignores_state {
                    let is_enough = self.finish(&config, last, &wanted, after);
                    if is_new && !is_enough {
                        left.push(config);
                    }
                }
            }
            if visited.len.max(after.len) > self.most {
                return Err(Stuck::TooMany);
            }
        }
        Ok(())
    }

    /// Gives `last` its effect. Returns whether nothing else need come before it: after an outcome
    /// that changes nothing, everything else may follow when it is needed.
    fn finish(
        &self,
        config: &Config<M>,
        last: &InFlight<M>,
        wanted: impl Fn(&M::Outcome) -> bool,
        after: &mut Front<M>,
    ) -> bool {
        let mut is_enough = false;
        for (state, outcome) in M::apply(&config.state, &last.op) {
            if wanted(&outcome) {
                is_enough |= !M::changes(&last.op, &outcome);
                self.keep(after, self.step(config, last, state).without(last.slot));
            }
        }
        is_enough
    }

    /// Gives one more operation its effect, except that in `last`.
    fn expand(&self, config: &Config<M>, last: Slot, next: &mut Vec<Config<M>>) {
        for in_flight in self.ops.values() {
            let is_out = in_flight.slot == last || config.taken & bit(in_flight.slot) != 0;
            if is_out || M::kind(&in_flight.op) == Kind::Observes {
                continue;
            }
            let hides = M::kind(&in_flight.op) == Kind::Overwrites;
            for (state, _) in M::apply(&config.state, &in_flight.op) {
                // What changes nothing and hides nothing was recorded already.
                if hides || state != config.state {
                    next.push(self.step(config, in_flight, state));
                }
            }
        }
    }

    /// Gives an operation its effect.
    fn step(&self, config: &Config<M>, which: &InFlight<M>, state: M::State) -> Config<M> {
        let mut next = config.clone();
        next.forget(which.slot);
        next.taken |= bit(which.slot);
        let has_changed = next.state != state;
        next.state = state;
        let overwrites = M::kind(&which.op) == Kind::Overwrites;
        for other in self.ops.values() {
            if other.lost || next.taken & bit(other.slot) != 0 {
                continue;
            }
            if overwrites && M::kind(&other.op) == Kind::Overwrites {
                // It could have had its effect just before.
                next.free |= bit(other.slot);
            }
            if has_changed {
                next.look(other);
            }
        }
        next
    }

    /// Adds a configuration unless another one allows as much. Returns whether it was added.
    fn keep(&self, front: &mut Front<M>, config: Config<M>) -> bool {
        let lost = self.ops.values().filter(|in_flight| in_flight.lost);
        let lost = lost.fold(0, |lost, in_flight| lost | bit(in_flight.slot));
        let key = (!front.ignores_state).then(|| config.state.clone());
        let peers = front.map.entry(key).or_default();
        if peers.iter().any(|peer| peer.allows_as_much_as(&config, lost)) {
            return false;
        }
        let before = peers.len();
        peers.retain(|peer| !config.allows_as_much_as(peer, lost));
        front.len = front.len + 1 + peers.len() - before;
        peers.push(config);
        true
    }
}
