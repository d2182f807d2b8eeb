//! What was done to the blocks of two volumes, and when: the history that the checker judges.
//!
//! All tested blocks form one row of cells, those of the first volume first. A cell is a logical
//! block, and its value a number: the block contains it as 32 bits, repeated. So zeros are the
//! value 0, equal values in the eight blocks of 4 KiB make a pattern, and blocks with parts of two
//! values are detected at once.

use std::ops::Range;

use anyhow::{Result, ensure};

/// The bytes of a logical block.
pub const BLOCK: usize = 512;
/// The logical blocks of 4 KiB: every command is atomic at least for these.
pub const ATOMIC_BLOCKS: usize = 8;

/// The content of a cell; 0 is never written, or unmapped.
pub type Value = u32;

/// The result of a COMPARE AND WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// GOOD.
    Done,
    /// MISCOMPARE, with the offset of the first byte that differs.
    Miscompare(usize),
    /// There was no response.
    Unknown,
}

/// The effect of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Values were read.
    Read {
        /// The first cell.
        at: usize,
        /// The values read.
        values: Vec<Value>,
    },
    /// Values were written: by WRITE, WRITE SAME or UNMAP.
    Write {
        /// The first cell.
        at: usize,
        /// Their new content.
        values: Vec<Value>,
    },
    /// COMPARE AND WRITE.
    Compare {
        /// The first cell.
        at: usize,
        /// The expected content.
        expected: Vec<Value>,
        /// Their new content.
        values: Vec<Value>,
        /// The result.
        swap: Swap,
    },
    /// One segment of EXTENDED COPY.
    Copy {
        /// The first cell that is read.
        from: usize,
        /// The first cell that is written.
        to: usize,
        /// The number of cells.
        count: usize,
    },
}

impl Action {
    /// Returns the cells that it reads, and those that it writes.
    pub fn cells(&self) -> (Range<usize>, Range<usize>) {
        match self {
            Self::Read { at, values } => (*at..at + values.len(), 0..0),
            Self::Write { at, values } => (0..0, *at..at + values.len()),
            Self::Copy { from, to, count } => (*from..from + count, *to..to + count),
            Self::Compare { at, values, .. } => {
                let all = *at..at + values.len();
                (all.clone(), if self.only_looks() { 0..0 } else { all })
            }
        }
    }

    /// Returns whether its order with another one matters.
    pub fn is_related(&self, other: &Self) -> bool {
        let meet = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        let (one, other) = (self.cells(), other.cells());
        meet(&one.1, &other.1) || meet(&one.0, &other.1) || meet(&one.1, &other.0)
    }

    /// Returns whether it changes nothing.
    pub fn only_looks(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Compare { swap: Swap::Miscompare(_), .. })
    }

    /// Returns whether it observes this value in this cell.
    pub fn sees(&self, cell: usize, value: Value) -> bool {
        let (at, values) = match self {
            Self::Read { at, values } => (at, values),
            Self::Compare { at, expected, swap: Swap::Done, .. } => (at, expected),
            _ => return false,
        };
        cell.checked_sub(*at).and_then(|offset| values.get(offset)) == Some(&value)
    }

    /// Describes it for a reader, with the values that contradict this state.
    pub fn describe(&self, state: &[Value]) -> String {
        let differ = |at: usize, values: &[Value]| {
            let found = values.iter().zip(&state[at..]).position(|(one, other)| one != other);
            found.map_or_else(String::new, |offset| {
                let (value, held) = (values[offset], state[at + offset]);
                let all = runs(at, values, state);
                format!("; {value:x} in cell {} instead of {held:x} ({all})", at + offset)
            })
        };
        match self {
            Self::Read { at, values } => {
                format!("READ of {} at {at}{}", values.len(), differ(*at, values))
            }
            Self::Write { at, values } => format!("WRITE {values:x?} at {at}"),
            Self::Compare { at, expected, values, swap } => {
                let (count, differ, brings) =
                    (values.len(), differ(*at, expected), runs(*at, values, state));
                format!("COMPARE AND WRITE of {count} at {at}: {swap:?}{differ}; returned {brings}")
            }
            Self::Copy { from, to, count } => format!("copy of {count} from {from} to {to}"),
        }
    }
}

/// Lists the cells that differ from a state: runs of them, with the first value of each.
fn runs(at: usize, values: &[Value], state: &[Value]) -> String {
    let mut text = String::new();
    let mut before = false;
    for (offset, value) in values.iter().enumerate() {
        let differs = *value != state[at + offset];
        if differs && !before {
            text += &format!("{}:{value:x}", at + offset);
        } else if before && !differs {
            text += &format!("..{} ", at + offset);
        }
        before = differs;
    }
    text
}

/// Something that happens atomically at one moment between `start` and `end`, as far as can be
/// observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The effect.
    pub action: Action,
    /// When the command was sent.
    pub start: u64,
    /// When its response arrived, or the last moment at which it may take effect.
    pub end: u64,
    /// Whether it certainly happened. An aborted command may not have happened at all.
    pub certain: bool,
    /// The number of its command, for messages.
    pub command: usize,
}

/// Returns the steps of a command: one for COMPARE AND WRITE and READ (SBC-3, 5.2: an uninterrupted
/// series of actions; one request of the store), otherwise one for each 4 KiB that it writes.
///
/// `first` is the logical block of cell 0 of the written volume, modulo 4 KiB: 0 here, because all
/// zones of the race begin at a multiple of it.
pub fn steps(action: Action, (start, end): (u64, u64), certain: bool, command: usize) -> Vec<Step> {
    let step = |action| Step { action, start, end, certain, command };
    match action {
        Action::Write { at, values } => pieces(at, values.len())
            .map(|(offset, count)| {
                let values = values[offset..offset + count].to_vec();
                step(Action::Write { at: at + offset, values })
            })
            .collect(),
        Action::Copy { from, to, count } => pieces(to, count)
            .map(|(offset, count)| {
                step(Action::Copy { from: from + offset, to: to + offset, count })
            })
            .collect(),
        whole => vec![step(whole)],
    }
}

/// Splits a READ without concurrent activity into pieces that don't connect their cells.
pub fn alone(step: &Step) -> Vec<Step> {
    let Action::Read { at, values } = &step.action else { return vec![step.clone()] };
    let piece = |(offset, count): (usize, usize)| {
        let values = values[offset..offset + count].to_vec();
        Step { action: Action::Read { at: at + offset, values }, ..step.clone() }
    };
    pieces(*at, values.len()).map(piece).collect()
}

/// Splits cells at multiples of 4 KiB: offset and length of each piece.
fn pieces(at: usize, count: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let place = at + offset;
        let length = (ATOMIC_BLOCKS - place % ATOMIC_BLOCKS).min(count - offset);
        let piece = (offset, length);
        offset += length;
        (length > 0).then_some(piece)
    })
}

/// Lists steps for a reader, by start, with the relevant part of the initial state.
pub fn list(steps: &[Step], initial: &[Value]) -> String {
    let mut steps: Vec<&Step> = steps.iter().collect();
    steps.sort_by_key(|step| (step.start, step.end));
    let line = |step: &Step| {
        let maybe = if step.certain { "" } else { " (possibly)" };
        let what = step.action.describe(initial);
        format!("\n  command {}, {}..{} ns{maybe}: {what}", step.command, step.start, step.end)
    };
    steps.into_iter().map(line).collect()
}

/// Returns the bytes of some cells.
pub fn bytes_of(values: &[Value]) -> Vec<u8> {
    let words = values.iter().flat_map(|value| [*value; BLOCK / 4]);
    words.flat_map(Value::to_le_bytes).collect()
}

/// Returns the values in some bytes; an error if a logical block contains parts of two values.
pub fn values_of(bytes: &[u8]) -> Result<Vec<Value>> {
    let mut values = Vec::with_capacity(bytes.len() / BLOCK);
    for block in bytes.chunks_exact(BLOCK) {
        let (words, _) = block.as_chunks::<4>();
        ensure!(words.iter().all(|word| *word == words[0]), "a torn logical block: {block:02X?}");
        values.push(Value::from_le_bytes(words[0]));
    }
    Ok(values)
}

/// Returns the first byte in which the blocks of two lists of values differ.
pub fn first_difference(held: &[Value], expected: &[Value]) -> Option<usize> {
    let block = held.iter().zip(expected).position(|(one, other)| one != other)?;
    let (one, other) = (held[block].to_le_bytes(), expected[block].to_le_bytes());
    let byte = one.iter().zip(&other).position(|(one, other)| one != other)?;
    Some(block * BLOCK + byte)
}
