//! Narrows the times of steps, using values that can get into a cell in only one way.
//!
//! Let a value be written to a cell by one step P only (or be the initial one), and be read there
//! by steps R. Then P is before every R, and any other step that writes the cell is before P or
//! after every R. So a step's interval shrinks to what the others allow, until the times determine
//! the order of nearly all steps, and little is left to search. An interval that becomes empty is a
//! contradiction; no valid order is excluded.

use std::collections::{HashMap, HashSet};

use super::history::{Action, Step, Swap, Value};

/// The rounds of conclusions; each propagates them one step further.
const ROUNDS: usize = 12;
/// How many consecutive copies are followed to the origin of a value.
const COPY_DEPTH: usize = 4;

/// A value that can get into its cell in only one way.
struct Stay {
    cell: usize,
    /// The step that writes it; `None` if it was there from the beginning.
    by: Option<usize>,
    /// The steps that see it there.
    seen_by: Vec<usize>,
}

/// Shrinks the intervals of steps; the error is the number of one that can't have happened. A
/// possible step that was seen becomes certain.
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

/// The steps that concern each cell.
struct Cells<'a> {
    initial: &'a [Value],
    /// All that write a cell, including copies.
    writers: Vec<Vec<usize>>,
    /// The steps that write this value there, without copies.
    brings: HashMap<(usize, Value), Vec<usize>>,
    /// Copies to a cell: the step, and the source cell.
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

    /// Returns whether a cell may contain a value at any time.
    fn may_hold(&self, cell: usize, value: Value, depth: usize) -> bool {
        depth == 0
            || self.initial[cell] == value
            || self.brings.contains_key(&(cell, value))
            || self.copies[cell].iter().any(|(_, from)| self.may_hold(*from, value, depth - 1))
    }

    /// Returns all values that are read and can get into their cell in only one way.
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

/// Draws the conclusions from one value. Returns whether an interval has changed.
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

/// Orders two steps, if both happen: the interval of each shrinks if the other one is certain.
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
