//! In-memory devices with reservations as in SPC-4, and processes that run one step at a time in a
//! given order: each call of a device is a step.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use sys::{Registered, Reservable, ReservationError};

/// What happens to a call, besides its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// It is executed, and its response is lost.
    AnswerLost,
    Refused,
    /// The process that makes it is killed before.
    Killed,
}

/// The scheduling of the processes.
#[derive(Debug)]
struct Turns {
    turn: usize,
    /// Who is next each time, and what happens to its call; then round-robin.
    order: Vec<(usize, Fate)>,
    at: usize,
    fate: Fate,
    runs: [bool; 2],
    was_killed: [bool; 2],
}

/// The order in which two processes run.
#[derive(Debug)]
pub(super) struct World {
    turns: Mutex<Turns>,
    changed: Condvar,
}

impl World {
    pub(super) fn new(order: Vec<(usize, Fate)>) -> Arc<Self> {
        let turns = Turns {
            turn: 0,
            order,
            at: 0,
            fate: Fate::Done,
            runs: [true; 2],
            was_killed: [false; 2],
        };
        Arc::new(Self { turns: Mutex::new(turns), changed: Condvar::new() })
    }

    /// Returns a world in which each call is executed immediately.
    pub(super) fn free() -> Arc<Self> {
        let world = Self::new(Vec::new());
        world.turns.lock().runs = [false; 2];
        world
    }

    /// Begins or ends a process's turn: waits until it is its turn.
    pub(super) fn step(&self, process: usize) -> Fate {
        let mut turns = self.turns.lock();
        if !turns.runs[process] {
            return Fate::Done;
        }
        turns.pass_on(process);
        self.changed.notify_all();
        self.changed.wait_while(&mut turns, |turns| turns.turn != process);
        if turns.fate == Fate::Killed {
            turns.was_killed[process] = true;
        }
        turns.fate
    }

    /// Makes a process wait for its first turn.
    pub(super) fn enter(&self, process: usize) {
        let mut turns = self.turns.lock();
        self.changed.wait_while(&mut turns, |turns| turns.turn != process);
    }

    /// Removes a process, which makes no more steps.
    pub(super) fn leave(&self, process: usize) {
        let mut turns = self.turns.lock();
        turns.runs[process] = false;
        turns.turn = 1 - process;
        turns.fate = Fate::Done;
        self.changed.notify_all();
    }

    /// Returns whether it was killed since the last call.
    pub(super) fn was_killed(&self, process: usize) -> bool {
        std::mem::take(&mut self.turns.lock().was_killed[process])
    }

    pub(super) fn is_over(&self) -> bool {
        let turns = self.turns.lock();
        turns.at >= turns.order.len()
    }
}

impl Turns {
    fn pass_on(&mut self, process: usize) {
        let next = self.order.get(self.at).copied();
        let (next, fate) = next.unwrap_or((1 - process, Fate::Done));
        self.at += 1;
        (self.turn, self.fate) = match self.runs[next] {
            true => (next, fate),
            false => (process, Fate::Done),
        };
    }
}

/// The state of a device: keys by I_T nexus, and the holder of the reservation.
#[derive(Debug, Default)]
struct Inside {
    keys: BTreeMap<usize, u64>,
    holder: Option<usize>,
}

/// A device.
#[derive(Debug)]
pub(super) struct Model {
    world: Arc<World>,
    inside: Mutex<Inside>,
}

/// A device as reached from one of two machines.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub model: Arc<Model>,
    pub nexus: usize,
}

type Outcome<T> = Result<T, ReservationError>;

impl Model {
    pub(super) fn new(world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self { world: world.clone(), inside: Mutex::default() })
    }

    pub(super) fn path(self: &Arc<Self>, nexus: usize) -> Path {
        Path { model: self.clone(), nexus }
    }

    /// Loses power without APTPL.
    pub(super) fn forget(&self) {
        *self.inside.lock() = Inside::default();
    }
}

impl Inside {
    fn remove(&mut self, nexus: usize) {
        self.keys.remove(&nexus);
        self.holder = self.holder.filter(|holder| *holder != nexus);
    }
}

impl Path {
    fn call<T>(&self, call: impl FnOnce(&mut Inside) -> Outcome<T>) -> Outcome<T> {
        let failed = || Err(ReservationError::Failed(io::Error::other("the path is gone")));
        match self.model.world.step(self.nexus) {
            Fate::Done => call(&mut self.model.inside.lock()),
            Fate::AnswerLost => {
                let _ = call(&mut self.model.inside.lock());
                failed()
            }
            Fate::Refused | Fate::Killed => failed(),
        }
    }

    /// Writes. Returns whether the write was accepted.
    pub(super) fn write(&self) -> Outcome<()> {
        let nexus = self.nexus;
        self.call(|inside| match inside.holder.is_none() || inside.keys.contains_key(&nexus) {
            true => Ok(()),
            false => Err(ReservationError::Conflict),
        })
    }
}

impl Reservable for Path {
    fn register(&self, key: u64) -> Outcome<()> {
        self.call(|inside| {
            match key {
                0 => inside.remove(self.nexus),
                key => drop(inside.keys.insert(self.nexus, key)),
            }
            Ok(())
        })
    }

    fn change(&self, from: u64, to: u64) -> Outcome<()> {
        self.call(|inside| match inside.keys.get_mut(&self.nexus) {
            Some(key) if *key == from => {
                *key = to;
                Ok(())
            }
            _ => Err(ReservationError::Conflict),
        })
    }

    fn reserve(&self, key: u64) -> Outcome<()> {
        self.call(|inside| {
            let may = inside.keys.get(&self.nexus) == Some(&key)
                && inside.holder.is_none_or(|holder| holder == self.nexus);
            if !may {
                return Err(ReservationError::Conflict);
            }
            inside.holder = Some(self.nexus);
            Ok(())
        })
    }

    fn preempt_and_abort(&self, key: u64, other: u64) -> Outcome<()> {
        self.call(|inside| {
            let others =
                inside.keys.iter().filter(|(nexus, it)| **it == other && **nexus != self.nexus);
            let others: Vec<usize> = others.map(|(nexus, _)| *nexus).collect();
            if inside.keys.get(&self.nexus) != Some(&key) || others.is_empty() {
                return Err(ReservationError::Conflict);
            }
            let was_held = inside.holder.is_some_and(|holder| others.contains(&holder));
            others.into_iter().for_each(|nexus| inside.remove(nexus));
            if was_held {
                inside.holder = Some(self.nexus);
            }
            Ok(())
        })
    }

    fn registered(&self) -> Outcome<Registered> {
        // Two requests, as to a real device: something may happen in between.
        let keys = self.call(|inside| Ok(inside.keys.values().copied().collect::<Vec<_>>()))?;
        let holder = self.call(|inside| {
            Ok(inside.holder.and_then(|holder| inside.keys.get(&holder).copied()))
        })?;
        let mut keys = keys;
        keys.sort_unstable();
        keys.dedup();
        Ok(Registered { keys, holder })
    }
}
