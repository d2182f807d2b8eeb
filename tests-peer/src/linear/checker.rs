//! Checks whether a history is linearizable: whether its steps have an order, each at one moment
//! between its start and its end, in which every response is right.
//!
//! The search is that of Wing and Gong with Lowe's memoization: take any step that no other one
//! must precede, and continue; if nothing fits, backtrack. Four things keep it short:
//! - a step that only reads is taken as soon as it fits, and never moved: taking it earlier changes
//!   nothing for the others;
//! - a value that a step still has to see is not overwritten, unless it can be written again;
//! - the same set of taken steps with the same state is not tried twice;
//! - groups without a common cell, even indirectly, are judged separately ([`parts`]).

use std::collections::{HashMap, HashSet};

use super::history::{Action, Step, Swap, Value, first_difference, list};
use super::parts::parts;
use super::tighten::tighten;

/// How many consecutive copies are followed to a value's origin; longer chains may bring anything.
const COPY_DEPTH: usize = 4;

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is such an order.
    Linearizable,
    /// There is none. What blocked the longest order found.
    Wrong(String),
    /// The search became too long.
    Undecided,
}

/// Whether a step fits the state.
enum Fit {
    /// Its response would be different.
    No,
    /// It fits, and makes these changes to cells.
    Yes(Vec<(usize, Value)>),
}

/// A choice that was made, and how to undo it.
struct Turn {
    /// The possible choices, the last one next.
    choices: Vec<usize>,
    /// The steps taken: the chosen one, and then those that only read.
    taken: Vec<usize>,
    /// The previous content of the cells.
    undo: Vec<(usize, Value)>,
    /// The previous time.
    time: u64,
}

/// A search.
pub struct Checker<'a> {
    steps: &'a [Step],
    state: Vec<Value>,
    taken: Vec<bool>,
    taken_count: usize,
    /// The latest start of a taken step.
    time: u64,
    /// Certain steps by start, and the first of them that was not taken.
    certain: Vec<usize>,
    /// All others.
    uncertain: Vec<usize>,
    /// How many steps that were not taken still have to see a value in a cell.
    awaited: HashMap<(usize, Value), u32>,
    /// How many steps that were not taken write a value to a cell.
    brings: HashMap<(usize, Value), u32>,
    /// The copies to each cell: the step and the source cell.
    copies: Vec<Vec<(usize, usize)>>,
    hash: u128,
    tried: HashSet<u128>,
    furthest: (usize, String),
}

/// Judges the steps from an initial state, with at most this many turns for each part.
pub fn check(initial: &[Value], steps: &[Step], turns: usize) -> Verdict {
    let mut shrunk = steps.to_vec();
    if let Err(wrong) = tighten(initial, &mut shrunk) {
        let what = steps[wrong].action.describe(initial);
        return Verdict::Wrong(format!("command {} fits nowhere: {what}", steps[wrong].command));
    }
    // The worst result of all: an error in one part is an error.
    let mut verdict = Verdict::Linearizable;
    for part in parts(&shrunk, initial.len()) {
        match Checker::new(initial, &part).run(turns) {
            Verdict::Linearizable => {}
            Verdict::Undecided => verdict = Verdict::Undecided,
            Verdict::Wrong(why) => {
                return Verdict::Wrong(format!("{why}\nAll steps:{}", list(&part, initial)));
            }
        }
    }
    verdict
}

impl<'a> Checker<'a> {
    fn new(initial: &[Value], steps: &'a [Step]) -> Self {
        let by_start = |certain| {
            let mut list: Vec<usize> =
                (0..steps.len()).filter(|index| steps[*index].certain == certain).collect();
            list.sort_by_key(|index| steps[*index].start);
            list
        };
        let mut checker = Self {
            steps,
            state: initial.to_vec(),
            taken: vec![false; steps.len()],
            taken_count: 0,
            time: 0,
            certain: by_start(true),
            uncertain: by_start(false),
            awaited: HashMap::new(),
            brings: HashMap::new(),
            copies: vec![Vec::new(); initial.len()],
            hash: 0,
            tried: HashSet::new(),
            furthest: (0, String::new()),
        };
        for (index, step) in steps.iter().enumerate() {
            checker.count(index, 1);
            if let Action::Copy { from, to, count } = step.action {
                for offset in 0..count {
                    checker.copies[to + offset].push((index, from + offset));
                }
            }
        }
        checker
    }

    fn run(&mut self, turns: usize) -> Verdict {
        let time = self.time;
        let mut taken = Vec::new();
        self.look(&mut taken);
        let choices = self.choices();
        let mut stack = vec![Turn { choices, taken, undo: Vec::new(), time }];
        for _ in 0..turns {
            if self.is_done() {
                return Verdict::Linearizable;
            }
            let Some(top) = stack.last_mut() else {
                return Verdict::Wrong(self.furthest.1.clone());
            };
            match top.choices.pop() {
                Some(choice) => {
                    if let Some(turn) = self.try_turn(choice) {
                        stack.push(turn);
                    }
                }
                None => {
                    if let Some(turn) = stack.pop() {
                        self.take_back(turn);
                    }
                }
            }
        }
        Verdict::Undecided
    }

    fn is_done(&self) -> bool {
        self.certain.iter().all(|index| self.taken[*index])
    }

    /// Takes a step, and all steps after it that only read. Returns `None` if it does not fit, or
    /// leads to a state that was tried.
    fn try_turn(&mut self, choice: usize) -> Option<Turn> {
        let time = self.time;
        let Fit::Yes(changes) = self.fit(choice) else { return None };
        if self.hides(choice, &changes) {
            return None;
        }
        let undo = self.put(&changes);
        let mut taken = vec![choice];
        self.take(choice);
        self.look(&mut taken);
        let mut turn = Turn { choices: Vec::new(), taken, undo, time };
        if !self.tried.insert(self.hash) {
            self.take_back(turn);
            return None;
        }
        turn.choices = self.choices();
        if self.taken_count > self.furthest.0 {
            self.furthest = (self.taken_count, self.describe(&turn.choices));
        }
        Some(turn)
    }

    fn take_back(&mut self, turn: Turn) {
        for index in turn.taken.into_iter().rev() {
            self.taken[index] = false;
            self.taken_count -= 1;
            self.hash ^= spread(index as u64, u64::MAX);
            self.count(index, 1);
        }
        self.put(&turn.undo);
        self.time = turn.time;
    }

    fn take(&mut self, index: usize) {
        self.taken[index] = true;
        self.taken_count += 1;
        self.hash ^= spread(index as u64, u64::MAX);
        self.time = self.time.max(self.steps[index].start);
        self.count(index, -1);
    }

    /// Changes cells. Returns their previous content.
    fn put(&mut self, changes: &[(usize, Value)]) -> Vec<(usize, Value)> {
        let mut before = Vec::with_capacity(changes.len());
        for (cell, value) in changes {
            let old = std::mem::replace(&mut self.state[*cell], *value);
            self.hash ^= spread(*cell as u64, old.into()) ^ spread(*cell as u64, (*value).into());
            before.push((*cell, old));
        }
        before
    }

    /// Takes all steps that fit and only read; but none before a possible step that would have to
    /// precede it, because taking that one is a choice.
    fn look(&mut self, taken: &mut Vec<usize>) {
        loop {
            let earliest_maybe = self.maybes().map(|index| self.steps[index].end).min();
            let looks = self.ready().into_iter().find(|index| {
                let step = &self.steps[*index];
                step.action.only_looks()
                    && earliest_maybe.is_none_or(|end| step.start <= end)
                    && matches!(self.fit(*index), Fit::Yes(_))
            });
            let Some(index) = looks else { return };
            self.take(index);
            taken.push(index);
        }
    }

    /// Returns possible steps that can still happen now.
    fn maybes(&self) -> impl Iterator<Item = usize> + '_ {
        let open = |index: &usize| !self.taken[*index] && self.steps[*index].end >= self.time;
        self.uncertain.iter().copied().filter(open)
    }

    /// Returns certain steps that no other one must precede.
    fn ready(&self) -> Vec<usize> {
        let mut ready = Vec::new();
        let mut first_end = u64::MAX;
        for index in self.certain.iter().copied().filter(|index| !self.taken[*index]) {
            let step = &self.steps[index];
            if step.start > first_end {
                break;
            }
            first_end = first_end.min(step.end);
            ready.push(index);
        }
        ready.retain(|index| self.steps[*index].start <= first_end);
        ready
    }

    /// Returns the steps that can be taken next. The last one is tried first: the one whose
    /// response came first.
    ///
    /// One step must precede all others: the one that ends first. Any step taken before it that has
    /// no relation to it, even indirectly, could as well follow it; so only the others must be
    /// tried.
    fn choices(&self) -> Vec<usize> {
        let mut open = self.ready();
        open.sort_by_key(|index| self.steps[*index].end);
        let Some(first) = open.first().copied() else { return Vec::new() };
        let first_end = self.steps[first].end;
        open.extend(self.maybes().filter(|index| self.steps[*index].start <= first_end));
        // A possible step that ends even earlier could not follow it.
        let early = |index: &usize| *index == first || self.steps[*index].end < first_end;
        let (mut related, mut open): (Vec<usize>, Vec<usize>) = open.into_iter().partition(early);
        let mut place = 0;
        let action = |index: usize| &self.steps[index].action;
        while let Some(one) = related.get(place).copied() {
            let (near, far): (Vec<usize>, Vec<usize>) =
                open.into_iter().partition(|other| action(one).is_related(action(*other)));
            related.extend(near);
            open = far;
            place += 1;
        }
        let late = |index: &usize| (!self.steps[*index].certain, self.steps[*index].end);
        related.sort_by_key(|index| std::cmp::Reverse(late(index)));
        related
    }

    fn fit(&self, index: usize) -> Fit {
        let held = |at: usize, count: usize| &self.state[at..at + count];
        let all = |at: usize, values: &[Value]| {
            values.iter().enumerate().map(|(offset, value)| (at + offset, *value)).collect()
        };
        match &self.steps[index].action {
            Action::Read { at, values } if held(*at, values.len()) == values => {
                Fit::Yes(Vec::new())
            }
            Action::Read { .. } => Fit::No,
            Action::Write { at, values } => Fit::Yes(all(*at, values)),
            Action::Copy { from, to, count } => Fit::Yes(all(*to, held(*from, *count))),
            Action::Compare { at, expected, values, swap } => {
                let difference = first_difference(held(*at, expected.len()), expected);
                match (difference, swap) {
                    (None, Swap::Done | Swap::Unknown) => Fit::Yes(all(*at, values)),
                    // Only its own earlier attempt, whose response was lost, can have written the
                    // new values: then the result is GOOD (RFC 0007).
                    (Some(found), Swap::Miscompare(told))
                        if found == *told && held(*at, values.len()) != values =>
                    {
                        Fit::Yes(Vec::new())
                    }
                    _ => Fit::No,
                }
            }
        }
    }

    /// Returns whether changes permanently hide a value that another step still has to see.
    fn hides(&self, choice: usize, changes: &[(usize, Value)]) -> bool {
        changes.iter().any(|(cell, new)| {
            let old = self.state[*cell];
            if old == *new {
                return false;
            }
            let waiting = self.awaited.get(&(*cell, old)).copied().unwrap_or(0);
            let own = u32::from(self.steps[choice].action.sees(*cell, old));
            waiting > own && !self.comes_again((choice, changes), *cell, old, COPY_DEPTH)
        })
    }

    /// Returns whether it is easy to show that a value will be in a cell again after a step and its
    /// changes.
    fn comes_again(
        &self,
        step: (usize, &[(usize, Value)]),
        cell: usize,
        value: Value,
        depth: usize,
    ) -> bool {
        if depth == 0 || self.brings.get(&(cell, value)).copied().unwrap_or(0) > 0 {
            return true;
        }
        let (choice, changes) = step;
        let copies = self.copies[cell].iter();
        let mut open = copies.filter(|(copy, _)| *copy != choice && !self.taken[*copy]);
        open.any(|(_, source)| {
            self.state[*source] == value
                || changes.contains(&(*source, value))
                || self.comes_again(step, *source, value, depth - 1)
        })
    }

    /// Counts what a step still has to see, and what it can write.
    fn count(&mut self, index: usize, by: i32) {
        let step = &self.steps[index];
        let add = |map: &mut HashMap<(usize, Value), u32>, at: usize, values: &[Value]| {
            for (offset, value) in values.iter().enumerate() {
                let entry = map.entry((at + offset, *value)).or_default();
                *entry = entry.wrapping_add_signed(by);
            }
        };
        match &step.action {
            Action::Read { at, values } => add(&mut self.awaited, *at, values),
            Action::Write { at, values } => add(&mut self.brings, *at, values),
            Action::Compare { at, expected, values, swap } => {
                if *swap == Swap::Done && step.certain {
                    add(&mut self.awaited, *at, expected);
                }
                if !step.action.only_looks() {
                    add(&mut self.brings, *at, values);
                }
            }
            // These are found by the cells that they write.
            Action::Copy { .. } => {}
        }
    }

    fn describe(&self, choices: &[usize]) -> String {
        let (taken, all) = (self.taken_count, self.steps.len());
        let mut text = format!("{taken} of {all} steps can be ordered; none of these fits next:");
        for index in choices.iter().rev().take(12) {
            let step = &self.steps[*index];
            let what = step.action.describe(&self.state);
            let maybe = if step.certain { "" } else { " (possibly)" };
            let (start, end) = (step.start / 1000, step.end / 1000);
            text += &format!("\n  command {}, {start}..{end} us{maybe}: {what}", step.command);
        }
        text
    }
}

/// Returns 128 bits for a pair, unlike those of all others.
fn spread(one: u64, other: u64) -> u128 {
    let mix = |seed: u64| {
        let mut bits = one.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed;
        bits = (bits ^ (bits >> 31)).wrapping_add(other).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 27)).wrapping_mul(0x2545_F491_4F6C_DD1D)
    };
    let (low, high) = (mix(0x243F_6A88_85A3_08D3), mix(0x1319_8A2E_0370_7344));
    u128::from(high ^ (high >> 32)) << 64 | u128::from(low ^ (low >> 32))
}
