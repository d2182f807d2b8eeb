//! Whether a history is linearizable: whether there is an order of its steps, each at one moment
//! between its start and its end, in which every answer is the right one.
//!
//! The search is that of Wing and Gong with Lowe's memory of what was tried: take any step that no
//! other one has to precede, and go on; where nothing fits go back. Four things keep it short:
//! - what only looks is taken as soon as it fits, and never taken back for another order: putting
//!   it earlier changes nothing for the others;
//! - a value that somebody has yet to see is not overwritten, unless it can come again;
//! - the same steps taken, and the same state: it was tried;
//! - what has no cell in common, not even by way of others, is judged by itself ([`parts`]).

use std::collections::{HashMap, HashSet};

use super::history::{Action, Step, Swap, Value, first_difference, list};
use super::parts::parts;
use super::tighten::tighten;

/// How many copies in a row are looked at, where a value may come from; more may bring anything.
const COPY_DEPTH: usize = 4;

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order.
    Linearizable,
    /// There is none. What stood in the way when most of the steps were in order.
    Wrong(String),
    /// The search became too long.
    Undecided,
}

/// How a step goes with the state.
enum Fit {
    /// Its answer would be another one.
    No,
    /// It fits, and changes these cells.
    Yes(Vec<(usize, Value)>),
}

/// A choice that was made, and how to undo it.
struct Turn {
    /// What could be taken here, the last one next.
    choices: Vec<usize>,
    /// What was taken: the one that was chosen, and then those that only look.
    taken: Vec<usize>,
    /// What the cells held.
    undo: Vec<(usize, Value)>,
    /// How late it was.
    time: u64,
}

/// A search.
pub struct Checker<'a> {
    steps: &'a [Step],
    state: Vec<Value>,
    taken: Vec<bool>,
    taken_count: usize,
    /// The latest start of a step that was taken.
    time: u64,
    /// Certain steps in the order of their starts, and the first of them that was not taken.
    certain: Vec<usize>,
    /// All others.
    uncertain: Vec<usize>,
    /// How many that were not taken have yet to see a value in a cell.
    awaited: HashMap<(usize, Value), u32>,
    /// How many that were not taken bring a value to a cell.
    brings: HashMap<(usize, Value), u32>,
    /// The copies to each cell: the step and the cell that it reads for it.
    copies: Vec<Vec<(usize, usize)>>,
    hash: u128,
    tried: HashSet<u128>,
    furthest: (usize, String),
}

/// Judges the steps from a state on, with so many turns at most for each of their parts.
pub fn check(initial: &[Value], steps: &[Step], turns: usize) -> Verdict {
    let mut shrunk = steps.to_vec();
    if let Err(wrong) = tighten(initial, &mut shrunk) {
        let what = steps[wrong].action.describe(initial);
        return Verdict::Wrong(format!(
            "there is no time for command {}: {what}",
            steps[wrong].command
        ));
    }
    // The worst of all: what is wrong in one part is wrong.
    let mut verdict = Verdict::Linearizable;
    for part in parts(&shrunk, initial.len()) {
        match Checker::new(initial, &part).run(turns) {
            Verdict::Linearizable => {}
            Verdict::Undecided => verdict = Verdict::Undecided,
            Verdict::Wrong(why) => {
                return Verdict::Wrong(format!("{why}\nAll of these:{}", list(&part, initial)));
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

    /// Takes a step, and all behind it that only look. Nothing where it does not fit, or leads to
    /// what was tried.
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

    /// Changes cells, and tells what they held.
    fn put(&mut self, changes: &[(usize, Value)]) -> Vec<(usize, Value)> {
        let mut before = Vec::with_capacity(changes.len());
        for (cell, value) in changes {
            let old = std::mem::replace(&mut self.state[*cell], *value);
            self.hash ^= spread(*cell as u64, old.into()) ^ spread(*cell as u64, (*value).into());
            before.push((*cell, old));
        }
        before
    }

    /// Takes everything that fits and only looks. Not in front of a step that may have happened
    /// and would have to be earlier: whether that one is taken is a choice.
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

    /// Steps that may have happened, and still may happen now.
    fn maybes(&self) -> impl Iterator<Item = usize> + '_ {
        let open = |index: &usize| !self.taken[*index] && self.steps[*index].end >= self.time;
        self.uncertain.iter().copied().filter(open)
    }

    /// Certain steps that no other one has to precede.
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

    /// What can be taken next; the last one is tried first: what was answered first.
    ///
    /// Something has to be taken before all others: what ends first. Whatever is taken in front of
    /// it and has nothing to do with it, not even by way of others, could as well come behind it;
    /// so only the rest has to be tried.
    fn choices(&self) -> Vec<usize> {
        let mut open = self.ready();
        open.sort_by_key(|index| self.steps[*index].end);
        let Some(first) = open.first().copied() else { return Vec::new() };
        let first_end = self.steps[first].end;
        open.extend(self.maybes().filter(|index| self.steps[*index].start <= first_end));
        // What may have happened and ends even earlier could not come behind it.
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
                    // What holds what it brings was changed by itself, in an attempt whose answer
                    // was lost: that is GOOD (RFC 0007). No other command brings the same.
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

    /// Whether changes hide a value for good that somebody else has yet to see.
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

    /// Whether a value can come to a cell once more behind a step and its changes, as far as that
    /// can be told easily.
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

    /// Counts what a step has yet to see, and what it can bring.
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
        let mut text = format!("{taken} of {all} steps are in order, and none of these fits then:");
        for index in choices.iter().rev().take(12) {
            let step = &self.steps[*index];
            let what = step.action.describe(&self.state);
            let maybe = if step.certain { "" } else { " (perhaps)" };
            let (start, end) = (step.start / 1000, step.end / 1000);
            text += &format!("\n  command {}, {start}..{end} us{maybe}: {what}", step.command);
        }
        text
    }
}

/// 128 bits for a pair, far from those of all others.
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
