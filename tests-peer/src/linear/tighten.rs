//! What follows from values that come to a cell in one way only: when steps must have happened.
//!
//! Let a value come to a cell by one step P alone (or be there from the beginning), and be seen
//! there by steps R. Then P is before every R, and what else writes the cell is before P or behind
//! every R. So a step's time shrinks to what the others leave of it, until the order of nearly all
//! is told by their times, and little is left to search. A time that shrinks to less than nothing
//! is a contradiction; nothing here rules out an order that is right.

use std::collections::{HashMap, HashSet};

use super::history::{Action, Step, Swap, Value};

/// Rounds of conclusions; each carries them one step further.
const ROUNDS: usize = 12;
/// How many copies in a row are followed to where a value may come from.
const COPY_DEPTH: usize = 4;

/// A value that has one way into its cell.
struct Stay {
    cell: usize,
    /// Who brings it; nobody where it was there from the beginning.
    by: Option<usize>,
    /// Who sees it there.
    seen_by: Vec<usize>,
}

/// Shrinks the times of steps; the number of one that can't have happened is the error. What may
/// have happened, and was seen, is certain from then on.
pub fn tighten(initial: &[Value], steps: &mut [Step]) -> Result<(), usize> {
    let cells = Cells::new(initial, steps);
    let stays = cells.stays(steps);
    for _ in 0..ROUNDS {
        let mut changed = false;
        for stay in &stays {
            changed |= conclude(stay, &cells.writers[stay.cell], steps);
        }
        if let Some(wrong) = steps.iter().position(|step| step.certain && step.start > step.end) {
            return Err(wrong);
        }
        if !changed {
            break;
        }
    }
    Ok(())
}

/// Who does what to each cell.
struct Cells<'a> {
    initial: &'a [Value],
    /// All that write a cell, copies too.
    writers: Vec<Vec<usize>>,
    /// Who writes this value there, without copies.
    brings: HashMap<(usize, Value), Vec<usize>>,
    /// Copies to a cell: the step, and the cell that it reads.
    copies: Vec<Vec<(usize, usize)>>,
}

impl<'a> Cells<'a> {
    fn new(initial: &'a [Value], steps: &[Step]) -> Self {
        let mut this = Self {
            initial,
            writers: vec![Vec::new(); initial.len()],
            brings: HashMap::new(),
            copies: vec![Vec::new(); initial.len()],
        };
        for (index, step) in steps.iter().enumerate() {
            match &step.action {
                Action::Write { at, values } | Action::Compare { at, values, .. }
                    if !step.action.only_looks() =>
                {
                    for (offset, value) in values.iter().enumerate() {
                        this.writers[at + offset].push(index);
                        this.brings.entry((at + offset, *value)).or_default().push(index);
                    }
                }
                Action::Copy { from, to, count } => {
                    for offset in 0..*count {
                        this.writers[to + offset].push(index);
                        this.copies[to + offset].push((index, from + offset));
                    }
                }
                _ => {}
            }
        }
        this
    }

    /// Whether a cell may hold a value at any time.
    fn may_hold(&self, cell: usize, value: Value, depth: usize) -> bool {
        depth == 0
            || self.initial[cell] == value
            || self.brings.contains_key(&(cell, value))
            || self.copies[cell].iter().any(|(_, from)| self.may_hold(*from, value, depth - 1))
    }

    /// All values that are seen and have one way into their cell.
    fn stays(&self, steps: &[Step]) -> Vec<Stay> {
        let mut seen_by: HashMap<(usize, Value), Vec<usize>> = HashMap::new();
        for (index, step) in steps.iter().enumerate() {
            let (at, values) = match &step.action {
                Action::Read { at, values } => (*at, values),
                Action::Compare { at, expected, swap: Swap::Done, .. } if step.certain => {
                    (*at, expected)
                }
                _ => continue,
            };
            for (offset, value) in values.iter().enumerate() {
                seen_by.entry((at + offset, *value)).or_default().push(index);
            }
        }
        let stay = |((cell, value), seen_by): ((usize, Value), Vec<usize>)| {
            let copies = self.copies[cell].iter();
            let copied = copies.filter(|(_, from)| self.may_hold(*from, value, COPY_DEPTH));
            let mut ways: HashSet<Option<usize>> = copied.map(|(copy, _)| Some(*copy)).collect();
            ways.extend(self.brings.get(&(cell, value)).into_iter().flatten().copied().map(Some));
            if self.initial[cell] == value {
                ways.insert(None);
            }
            let mut ways = ways.into_iter();
            let (by, another) = (ways.next()?, ways.next());
            another.is_none().then_some(Stay { cell, by, seen_by })
        };
        seen_by.into_iter().filter_map(stay).collect()
    }
}

/// One value's conclusions; whether a time has changed.
fn conclude(stay: &Stay, writers: &[usize], steps: &mut [Step]) -> bool {
    let mut changed = false;
    if let Some(by) = stay.by {
        if !steps[by].certain {
            steps[by].certain = true;
            changed = true;
        }
        for seen in stay.seen_by.iter().filter(|seen| **seen != by) {
            changed |= order(steps, by, *seen);
        }
    }
    let (by_start, by_end) = stay.by.map_or((0, 0), |by| (steps[by].start, steps[by].end));
    let last_seen = stay.seen_by.iter().map(|seen| steps[*seen].start).max().unwrap_or(0);
    for writer in writers.iter().copied().filter(|writer| Some(*writer) != stay.by) {
        let after =
            steps[writer].start > by_end || stay.by.is_none() || stay.seen_by.contains(&writer);
        let before = steps[writer].end < last_seen.max(by_start);
        if after {
            for seen in stay.seen_by.iter().filter(|seen| **seen != writer) {
                changed |= order(steps, *seen, writer);
            }
        } else if before && let Some(by) = stay.by {
            changed |= order(steps, writer, by);
        }
    }
    changed
}

/// The one is before the other, if both happen: the time of each shrinks, if the other one is
/// certain.
fn order(steps: &mut [Step], one: usize, other: usize) -> bool {
    let mut changed = false;
    if steps[other].certain && steps[one].end > steps[other].end {
        steps[one].end = steps[other].end;
        changed = true;
    }
    if steps[one].certain && steps[other].start < steps[one].start {
        steps[other].start = steps[one].start;
        changed = true;
    }
    changed
}
