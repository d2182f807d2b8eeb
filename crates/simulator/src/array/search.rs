//! Which orders of operations explain the answers so far: the search that the monitors share.
//!
//! An object has a state; an operation takes effect at one moment between its invocation and its
//! answer. What is not known is kept as a set of configurations: a state that the object may have,
//! and which operations in flight have had their effect in it. The set is never empty unless no
//! order explains the answers.
//!
//! Configurations grow only as far as an answer needs it (G. Lowe, "Testing for linearizability",
//! just-in-time linearization): an answer to an operation that has not had its effect tries all
//! sequences of other operations in flight that lead up to it. An outcome that needs no change of
//! the state (a read, a miscompare) is no part of that: each configuration keeps for each
//! operation in flight the outcomes that it could have had in passing (`seen`).
//!
//! A configuration is dropped where another one allows all that it allows: the same state and the
//! same effects, and at least as much seen. Operations whose answers never come are better off
//! without their effect, as they may have it later.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// An operation. A monitor never uses one again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// An object with operations.
pub(super) trait Model: Clone + Debug {
    type State: Clone + Ord + Debug;
    type Op: Clone + Debug;
    type Outcome: Clone + Ord + Debug;

    /// All that an operation may do in a state: the state after it, and the outcome.
    fn apply(state: &Self::State, op: &Self::Op) -> Vec<(Self::State, Self::Outcome)>;

    /// Whether it never changes the state, whatever its outcome.
    fn observes(op: &Self::Op) -> bool;

    /// Whether it may change the state if it has this outcome.
    fn changes(op: &Self::Op, outcome: &Self::Outcome) -> bool;
}

/// Why a history can't go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stuck {
    /// No order of the operations explains this answer.
    Impossible,
    /// There are more configurations than may be kept.
    TooMany,
}

/// One explanation of the answers so far.
#[derive(Clone, Debug)]
struct Config<M: Model> {
    state: M::State,
    /// The operations in flight that have changed the state, with their outcomes.
    taken: BTreeMap<OpId, M::Outcome>,
    /// What the others could have had as outcome without a change of the state.
    seen: BTreeMap<OpId, BTreeSet<M::Outcome>>,
}

/// An operation in flight.
#[derive(Clone, Debug)]
struct InFlight<M: Model> {
    op: M::Op,
    /// Its answer will never come.
    lost: bool,
}

/// The explanations of the answers to the operations on one object.
#[derive(Debug)]
pub(super) struct Search<M: Model> {
    ops: BTreeMap<OpId, InFlight<M>>,
    configs: Vec<Config<M>>,
    /// How many configurations may be kept at a time.
    most: usize,
}

impl<M: Model> Search<M> {
    pub(super) fn new(state: M::State, most: usize) -> Self {
        let config = Config { state, taken: BTreeMap::new(), seen: BTreeMap::new() };
        Self { ops: BTreeMap::new(), configs: vec![config], most }
    }

    /// The states that it may have if no operation in flight takes effect from here on.
    pub(super) fn states(&self) -> BTreeSet<M::State> {
        self.configs.iter().map(|config| config.state.clone()).collect()
    }

    /// The operations in flight, those included whose answers never come.
    pub(super) fn ops(&self) -> impl Iterator<Item = &M::Op> {
        self.ops.values().map(|in_flight| &in_flight.op)
    }

    pub(super) fn op(&self, id: OpId) -> Option<&M::Op> {
        self.ops.get(&id).map(|in_flight| &in_flight.op)
    }

    pub(super) fn invoke(&mut self, id: OpId, op: M::Op) {
        self.ops.insert(id, InFlight { op, lost: false });
        self.look(id);
    }

    /// Changes an operation in flight, to one that may do more.
    pub(super) fn widen(&mut self, id: OpId, change: impl FnOnce(&mut M::Op)) {
        if let Some(in_flight) = self.ops.get_mut(&id) {
            change(&mut in_flight.op);
            self.look(id);
        }
    }

    /// Notes what an operation could have as outcome where things stand.
    fn look(&mut self, id: OpId) {
        let Some(in_flight) = self.ops.get(&id).filter(|in_flight| !in_flight.lost) else { return };
        for config in &mut self.configs {
            if !config.taken.contains_key(&id) {
                config.look(id, &in_flight.op);
            }
        }
    }

    /// An answer has come.
    pub(super) fn answer(&mut self, id: OpId, outcome: &M::Outcome) -> Result<(), Stuck> {
        let op =
            self.ops.get(&id).map(|in_flight| in_flight.op.clone()).ok_or(Stuck::Impossible)?;
        let mut after = Front::default();
        let mut from = Vec::new();
        for config in std::mem::take(&mut self.configs) {
            match config.taken.get(&id) {
                Some(had) if had == outcome => {
                    self.keep(&mut after, config.without(id));
                }
                Some(_) => {}
                None => {
                    let had = config.seen.get(&id).is_some_and(|seen| seen.contains(outcome));
                    if had {
                        self.keep(&mut after, config.clone().without(id));
                    }
                    if !had || M::changes(&op, outcome) {
                        from.push(config);
                    }
                }
            }
        }
        self.reach(from, id, &op, |had| had == outcome, &mut after)?;
        self.settle(id, after)
    }

    /// The answer never comes; it may take effect at any time.
    pub(super) fn lose(&mut self, id: OpId) {
        let Some(in_flight) = self.ops.get_mut(&id) else { return };
        if M::observes(&in_flight.op) {
            self.ops.remove(&id);
        } else {
            in_flight.lost = true;
        }
        self.rebuild(|config| {
            config.seen.remove(&id);
            true
        });
    }

    /// From here on it has had its effect, or never will.
    pub(super) fn end(&mut self, id: OpId) -> Result<(), Stuck> {
        let Some(in_flight) = self.ops.get(&id) else { return Ok(()) };
        let op = in_flight.op.clone();
        let mut after = Front::default();
        let configs = std::mem::take(&mut self.configs);
        for config in &configs {
            self.keep(&mut after, config.clone().without(id));
        }
        if !M::observes(&op) {
            let from = configs.into_iter().filter(|config| !config.taken.contains_key(&id));
            let changes = |outcome: &M::Outcome| M::changes(&op, outcome);
            self.reach(from.collect(), id, &op, changes, &mut after)?;
        }
        self.settle(id, after)
    }

    /// It has had no effect, and never will.
    pub(super) fn refuse(&mut self, id: OpId) -> Result<(), Stuck> {
        self.ops.remove(&id);
        self.rebuild(|config| {
            config.seen.remove(&id);
            !config.taken.contains_key(&id)
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

    /// Adds to `after` what `last` may lead to as the last of a sequence of operations in flight.
    fn reach(
        &self,
        from: Vec<Config<M>>,
        last: OpId,
        op: &M::Op,
        wanted: impl Fn(&M::Outcome) -> bool,
        after: &mut Front<M>,
    ) -> Result<(), Stuck> {
        let mut visited = Front::default();
        let mut left = Vec::new();
        for config in from {
            if self.keep(&mut visited, config.clone()) {
                left.push(config);
            }
        }
        while let Some(config) = left.pop() {
            let mut is_enough = false;
            for (state, outcome) in M::apply(&config.state, op) {
                if wanted(&outcome) {
                    is_enough |= !M::changes(op, &outcome);
                    let next = self.step(&config, last, state, outcome).without(last);
                    self.keep(after, next);
                }
            }
            // After an outcome that changes nothing, all else may follow when it is needed.
            if !is_enough {
                self.expand(&config, last, &mut visited, &mut left);
            }
            if visited.len.max(after.len) > self.most {
                return Err(Stuck::TooMany);
            }
        }
        Ok(())
    }

    /// One operation more has its effect, but for `last`.
    fn expand(
        &self,
        config: &Config<M>,
        last: OpId,
        visited: &mut Front<M>,
        left: &mut Vec<Config<M>>,
    ) {
        for (id, in_flight) in &self.ops {
            let op = &in_flight.op;
            if *id == last || config.taken.contains_key(id) || M::observes(op) {
                continue;
            }
            for (state, outcome) in M::apply(&config.state, op) {
                // What changes nothing is in `seen`.
                if state == config.state {
                    continue;
                }
                let next = self.step(config, *id, state, outcome);
                if self.keep(visited, next.clone()) {
                    left.push(next);
                }
            }
        }
    }

    /// An operation has its effect.
    fn step(
        &self,
        config: &Config<M>,
        id: OpId,
        state: M::State,
        outcome: M::Outcome,
    ) -> Config<M> {
        let mut next = config.clone();
        next.seen.remove(&id);
        next.taken.insert(id, outcome);
        if next.state != state {
            next.state = state;
            for (other, in_flight) in &self.ops {
                if !in_flight.lost && !next.taken.contains_key(other) {
                    next.look(*other, &in_flight.op);
                }
            }
        }
        next
    }

    /// Adds a configuration unless another allows as much. Returns whether it was added.
    fn keep(&self, front: &mut Front<M>, config: Config<M>) -> bool {
        let is_lost = |id: &OpId| self.ops.get(id).is_some_and(|in_flight| in_flight.lost);
        let mut key = config.taken.clone();
        key.retain(|id, _| !is_lost(id));
        let peers = front.map.entry((config.state.clone(), key)).or_default();
        if peers.iter().any(|peer| peer.allows_as_much_as(&config)) {
            return false;
        }
        let before = peers.len();
        peers.retain(|peer| !config.allows_as_much_as(peer));
        front.len = front.len + 1 + peers.len() - before;
        peers.push(config);
        true
    }
}

impl<M: Model> Config<M> {
    fn without(mut self, id: OpId) -> Self {
        self.taken.remove(&id);
        self.seen.remove(&id);
        self
    }

    fn look(&mut self, id: OpId, op: &M::Op) {
        for (state, outcome) in M::apply(&self.state, op) {
            if state == self.state {
                self.seen.entry(id).or_default().insert(outcome);
            }
        }
    }

    /// Of two with the same state and the same effects, but for those that were lost.
    fn allows_as_much_as(&self, other: &Self) -> bool {
        self.taken.keys().all(|id| other.taken.contains_key(id))
            && other.seen.iter().all(|(id, outcomes)| {
                self.seen.get(id).is_some_and(|seen| outcomes.is_subset(seen))
            })
    }
}

/// Configurations of which none allows all that another allows, by state and effects.
#[derive(Debug)]
struct Front<M: Model> {
    map: BTreeMap<Key<M>, Vec<Config<M>>>,
    len: usize,
}

type Key<M> = (<M as Model>::State, BTreeMap<OpId, <M as Model>::Outcome>);

impl<M: Model> Default for Front<M> {
    fn default() -> Self {
        Self { map: BTreeMap::new(), len: 0 }
    }
}

impl<M: Model> Front<M> {
    fn into_configs(self) -> Vec<Config<M>> {
        self.map.into_values().flatten().collect()
    }
}
