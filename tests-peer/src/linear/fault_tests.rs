//! Histories as long as those of the race, with a fault in the middle: each is rejected.

use super::checker::{Verdict, check};
use super::history::{Action, Step, Swap, Value, first_difference, steps};
use crate::random::Random;

const TURNS: usize = 200_000;
/// Two volumes of four spots of 16 cells and a lock of 128.
const CELLS: usize = 384;
const SPOTS: [usize; 8] = [0, 16, 32, 48, 192, 208, 224, 240];
const LOCKS: [usize; 2] = [64, 256];
const LOCK: usize = 128;
/// The number of commands of a history, and the position of its fault.
const COMMANDS: usize = 100;
const MIDDLE: usize = 50;
/// The number of seeds of each fault.
const SEEDS: u64 = 12;

/// A fault of an array.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    /// Two hosts take the same lock.
    LostUpdate,
    /// One half of a lock is seen taken, the other one free.
    Torn,
    /// An overwritten value is seen again.
    Stale,
    /// An aborted command is invisible after the response, and then visible.
    Late,
    /// The first difference is that of two different moments.
    TwoMoments,
}

/// An array that executes one command at a time, and what hosts saw of it, and when.
struct Race {
    random: Random,
    state: Vec<Value>,
    fresh: Value,
    time: u64,
    steps: Vec<Step>,
}

impl Race {
    fn run(seed: u64, fault: Fault) -> Verdict {
        let random = Random::new(seed);
        let state = vec![0; CELLS];
        let mut race = Self { random, state, fresh: 1, time: 1000, steps: Vec::new() };
        for command in 0..COMMANDS {
            if command == MIDDLE {
                race.fail(fault);
            }
            race.any();
        }
        race.time += 1000;
        for at in (0..CELLS).step_by(8) {
            let values = race.state[at..at + 8].to_vec();
            race.add(Action::Read { at, values }, 0);
        }
        check(&[0; CELLS], &race.steps, TURNS)
    }

    fn values(&mut self, count: usize) -> Vec<Value> {
        self.fresh += count as Value;
        (self.fresh - count as Value..self.fresh).collect()
    }

    /// Adds a command that happens now, and began and ended up to `spread` away.
    fn add(&mut self, action: Action, spread: u64) {
        self.time += 10;
        let start = self.time - self.random.below(spread + 1);
        let end = self.time + self.random.below(spread + 1);
        self.steps.extend(steps(action, (start, end), true, self.steps.len()));
    }

    /// Adds a correct command, concurrent with about ten others.
    fn any(&mut self) {
        let spot = SPOTS[self.random.below(8) as usize];
        let count = 1 + self.random.below(12) as usize;
        let mut at = spot + self.random.below((16 - count) as u64 + 1) as usize;
        let mut expected = self.state[at..at + count].to_vec();
        let action = match self.random.below(5) {
            0 => Action::Read { at, values: expected },
            1 => Action::Write { at, values: self.values(count) },
            2 => Action::Copy { from: at, to: (at + CELLS / 2) % CELLS, count },
            kind => {
                if kind == 3 {
                    at = LOCKS[self.random.below(2) as usize];
                    expected = self.state[at..at + LOCK].to_vec();
                }
                if self.random.below(3) == 0 {
                    expected[0] ^= 1;
                }
                let values = self.values(expected.len());
                let swap = first_difference(&self.state[at..], &expected);
                let swap = swap.map_or(Swap::Done, Swap::Miscompare);
                Action::Compare { at, expected, values, swap }
            }
        };
        self.put(&action);
        self.add(action, 60);
    }

    fn put(&mut self, action: &Action) {
        match action {
            Action::Write { at, values } | Action::Compare { at, values, swap: Swap::Done, .. } => {
                self.state[*at..*at + values.len()].copy_from_slice(values);
            }
            Action::Copy { from, to, count } => self.state.copy_within(*from..*from + *count, *to),
            Action::Read { .. } | Action::Compare { .. } => {}
        }
    }

    /// Takes a lock correctly.
    fn lock(&mut self, at: usize, swap: Swap) -> Action {
        let expected = self.state[at..at + LOCK].to_vec();
        let values = self.values(LOCK);
        Action::Compare { at, expected, values, swap }
    }

    fn fail(&mut self, fault: Fault) {
        let lock = LOCKS[self.random.below(2) as usize];
        match fault {
            Fault::None => {}
            Fault::LostUpdate => {
                let (one, other) = (self.lock(lock, Swap::Done), self.lock(lock, Swap::Done));
                self.put(&other);
                self.add(one, 60);
                self.add(other, 60);
            }
            Fault::Torn => {
                let taken = self.lock(lock, Swap::Done);
                let mut values = self.state[lock..lock + LOCK].to_vec();
                self.put(&taken);
                self.add(taken, 60);
                values[LOCK / 2..].copy_from_slice(&self.state[lock + LOCK / 2..lock + LOCK]);
                self.add(Action::Read { at: lock, values }, 60);
            }
            Fault::Stale => {
                let at = SPOTS[self.random.below(8) as usize];
                for _ in 0..2 {
                    let write = Action::Write { at, values: self.values(4) };
                    self.put(&write);
                    self.add(write, 3);
                }
                let values: Vec<Value> = self.state[at..at + 4].iter().map(|v| v - 4).collect();
                self.add(Action::Read { at, values }, 3);
            }
            Fault::Late => {
                let at = SPOTS[self.random.below(8) as usize];
                let aborted = Action::Write { at, values: self.values(8) };
                let times = (self.time - 60, self.time);
                self.steps.extend(steps(aborted.clone(), times, false, self.steps.len()));
                let values = self.state[at..at + 8].to_vec();
                self.add(Action::Read { at, values }, 3);
                self.put(&aborted);
                let values = self.state[at..at + 8].to_vec();
                self.add(Action::Read { at, values }, 3);
            }
            Fault::TwoMoments => {
                let wrong = self.lock(lock, Swap::Miscompare(4096));
                let taken = self.lock(lock, Swap::Done);
                self.put(&taken);
                self.add(taken, 60);
                self.add(wrong, 60);
            }
        }
    }
}

#[test]
fn correct_histories_are_accepted() {
    let mut undecided = 0;
    for seed in 0..SEEDS * 5 {
        match Race::run(seed, Fault::None) {
            Verdict::Linearizable => {}
            Verdict::Undecided => undecided += 1,
            Verdict::Wrong(why) => panic!("seed {seed}: {why}"),
        }
    }
    assert!(undecided <= 1, "{undecided}");
}

#[test]
fn faults_among_many_commands_are_found() {
    for fault in [Fault::LostUpdate, Fault::Torn, Fault::Stale, Fault::Late, Fault::TwoMoments] {
        for seed in 0..SEEDS {
            let verdict = Race::run(seed, fault);
            assert!(matches!(verdict, Verdict::Wrong(_)), "{fault:?}, seed {seed}: {verdict:?}");
        }
    }
}
