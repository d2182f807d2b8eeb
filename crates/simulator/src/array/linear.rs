//! A linearizability monitor for blocks of 4 KiB, online and exact for each block.
//!
//! A command on several blocks is an operation on each of them: SCSI promises only that one block
//! is changed at one time. The interval is that of the command. Contents are tags: the driver of
//! the hosts maps contents to numbers; 0 is zeros, the initial content of every block.
//!
//! # How to use it
//! [`Linear::invoke`] for each block before the command's first byte is sent, then one of
//! - [`Linear::answer`] when its response has come;
//! - [`Linear::refused`] if the response says that it had no effect (RESERVATION CONFLICT, BUSY);
//! - [`Linear::lost`] when the connection is lost: it may still take effect at any time, until
//! - [`Linear::never_again`], after the response to an abort or to the end of the session, or after
//!   a restart of the array. Also for a response with an error after which a part may be written.
//!
//! An operation is over after `answer`, `refused` and `never_again`.
//!
//! # What is exact
//! An error is returned if and only if no order of the operations on the block explains the
//! responses, with one exception: the destination of a copy may get any value that its source may
//! have had since the copy began, regardless of its fate. So there is no false alarm, and a copy of
//! what was written before it began is reported as wrong only if no host could have written it.

use std::collections::{BTreeMap, BTreeSet};

pub use super::search::OpId;
use super::search::{Kind, Model, Search, Stuck};

/// A block of some volume, numbered by the driver of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(pub u64);

/// What a command does to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// It writes this content. Zeroing and unmapping write 0.
    Write(u64),
    /// It writes `new` if the block has `expected`.
    CompareAndWrite {
        /// The expected content.
        expected: u64,
        /// The new content.
        new: u64,
        /// Whether the same was sent before, and its response was lost. `new` is then unique to it:
        /// a block that has it was written by the previous one, or by a copy.
        repeats: bool,
    },
    /// It reads.
    Read,
    /// It copies the content of the block `source`.
    CopyOf(Block),
}

/// The response to a command, for one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// A write or a copy is done.
    Done,
    /// A read returned this content.
    Read(u64),
    /// A compare-and-write has written.
    Matched,
    /// A compare-and-write has found another content.
    Miscompare,
    /// A repeated one has found what it would have written, and was recognized.
    Known,
    /// The same, and was not recognized.
    Unknown,
}

/// A response that no order of the operations explains, or too much to keep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// No order of the operations explains it.
    #[error("block {block:?}: {what} to {id:?} ({op}), but only {possible:?} are possible")]
    Impossible {
        /// The block.
        block: Block,
        /// The operation.
        id: OpId,
        /// What it does.
        op: String,
        /// The response.
        what: String,
        /// The possible contents before the response, with any effects of what is in flight.
        possible: Vec<u64>,
    },
    /// More is possible than may be kept: fewer commands in flight for each block are needed.
    #[error("block {block:?}: more than {most} configurations with {in_flight} in flight")]
    TooMany {
        /// The block.
        block: Block,
        /// How many may be kept.
        most: usize,
        /// The operations in flight.
        in_flight: usize,
    },
}

/// An operation, and what is known about it.
#[derive(Clone, Debug)]
enum Known {
    Write(u64),
    CompareAndWrite {
        expected: u64,
        new: u64,
        repeats: bool,
    },
    Read,
    /// With the possible contents of its source since it began.
    Copy {
        source: Block,
        candidates: BTreeSet<u64>,
    },
}

/// The content of a block.
#[derive(Clone, Debug)]
struct Register;

impl Model for Register {
    type State = u64;
    type Op = Known;
    type Outcome = Outcome;

    fn apply(state: &u64, op: &Known) -> Vec<(u64, Outcome)> {
        match op {
            Known::Write(value) => vec![(*value, Outcome::Done)],
            Known::CompareAndWrite { expected, new, .. } if state == expected => {
                vec![(*new, Outcome::Matched)]
            }
            Known::CompareAndWrite { new, repeats: true, .. } if state == new => {
                vec![(*state, Outcome::Known), (*state, Outcome::Unknown)]
            }
            Known::CompareAndWrite { .. } => vec![(*state, Outcome::Miscompare)],
            Known::Read => vec![(*state, Outcome::Read(*state))],
            Known::Copy { candidates, .. } => {
                candidates.iter().map(|value| (*value, Outcome::Done)).collect()
            }
        }
    }

    fn kind(op: &Known) -> Kind {
        match op {
            Known::Read => Kind::Observes,
            Known::CompareAndWrite { .. } => Kind::Depends,
            Known::Write(_) | Known::Copy { .. } => Kind::Overwrites,
        }
    }

    fn changes(_: &Known, outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Done | Outcome::Matched)
    }
}

/// The monitor of all blocks.
#[derive(Debug)]
pub struct Linear {
    blocks: BTreeMap<Block, Search<Register>>,
    /// The blocks of the operations in flight.
    places: BTreeMap<OpId, Block>,
    /// The copies in flight, by their sources.
    copies: BTreeMap<Block, BTreeSet<OpId>>,
    next: u64,
    most: usize,
    /// Increases with each beginning and each end of an operation.
    moment: u64,
    /// If responses need not be durable: the possible contents of each block after a power failure,
    /// and the last time it may have had each.
    had: Option<BTreeMap<Block, BTreeMap<u64, u64>>>,
}

impl Linear {
    /// Creates a monitor for blocks of zeros. `configurations_max` bounds what is kept for each
    /// block. While reads or compare-and-writes are in flight that is about two to the power of the
    /// writes in flight.
    pub fn new(configurations_max: usize) -> Self {
        Self {
            blocks: BTreeMap::new(),
            places: BTreeMap::new(),
            copies: BTreeMap::new(),
            next: 0,
            most: configurations_max,
            moment: 0,
            had: None,
        }
    }

    /// The same for an array that acknowledges writes before they are durable.
    pub fn volatile(configurations_max: usize) -> Self {
        Self { had: Some(BTreeMap::new()), ..Self::new(configurations_max) }
    }

    /// Returns whether responses need not be durable.
    pub fn is_volatile(&self) -> bool {
        self.had.is_some()
    }

    /// Begins an operation that is about to be sent.
    pub fn invoke(&mut self, block: Block, op: Op) -> OpId {
        let id = OpId(self.next);
        self.next += 1;
        self.moment += 1;
        let known = match op {
            Op::Write(value) => Known::Write(value),
            Op::CompareAndWrite { expected, new, repeats } => {
                Known::CompareAndWrite { expected, new, repeats }
            }
            Op::Read => Known::Read,
            Op::CopyOf(source) => {
                self.copies.entry(source).or_default().insert(id);
                Known::Copy { source, candidates: self.possible(source) }
            }
        };
        let values = values_of(&known);
        self.block(block).invoke(id, known);
        self.places.insert(id, block);
        for value in values {
            self.may_have(block, value);
        }
        id
    }

    /// Processes a response. It must be of the kind of the operation.
    ///
    /// # Errors
    /// The response is wrong. The block can't be used after that.
    pub fn answer(&mut self, id: OpId, outcome: Outcome) -> Result<(), Wrong> {
        self.answer_any(id, &[outcome])
    }

    /// The same for a response that stands for one of several outcomes.
    ///
    /// # Errors
    /// As [`Linear::answer`].
    pub fn answer_any(&mut self, id: OpId, outcomes: &[Outcome]) -> Result<(), Wrong> {
        self.conclude(id, &format!("answer {outcomes:?}"), |block| block.answer_any(id, outcomes))
    }

    /// Returns the current time, for [`Linear::made_durable`].
    pub fn moment(&self) -> u64 {
        self.moment
    }

    /// Records that everything acknowledged before this time about a block is durable.
    pub fn made_durable(&mut self, block: Block, since: u64) {
        if let Some(values) = self.had.as_mut().and_then(|had| had.get_mut(&block)) {
            values.retain(|_, last| *last >= since);
        }
    }

    /// Records that the array has lost what was not durable, and nothing is in flight any longer.
    /// Each block has a content that it may have had since everything was durable.
    pub fn lost_all(&mut self) {
        let had = self.had.replace(BTreeMap::new()).unwrap_or_default();
        let all: Vec<Block> = self.blocks.keys().copied().collect();
        for block in all {
            let mut values = self.possible(block);
            values.extend(had.get(&block).into_iter().flat_map(BTreeMap::keys));
            self.blocks.insert(block, Search::any_of(values, self.most));
        }
        self.places.clear();
        self.copies.clear();
    }

    /// Records the possible contents of a block so far.
    fn note(&mut self, block: Block, possible: &BTreeSet<u64>) {
        let moment = self.moment;
        self.moment += 1;
        if let Some(had) = &mut self.had {
            had.entry(block).or_default().extend(possible.iter().map(|value| (*value, moment)));
        }
    }

    /// Records that the response will never come. The operation may take effect at any time, until
    /// [`Linear::never_again`].
    pub fn lost(&mut self, id: OpId) {
        let Some(block) = self.places.get(&id).copied() else { return };
        let search = self.block(block);
        search.lose(id);
        // A read has no effect.
        if search.op(id).is_none() {
            self.places.remove(&id);
        }
    }

    /// Records that it has had its effect, or never will.
    ///
    /// # Errors
    /// Too much is possible.
    pub fn never_again(&mut self, id: OpId) -> Result<(), Wrong> {
        self.conclude(id, "the end", |block| block.end(id))
    }

    /// Records its response, after which it must not have had an effect.
    ///
    /// # Errors
    /// It had one.
    pub fn refused(&mut self, id: OpId) -> Result<(), Wrong> {
        self.conclude(id, "refusal", |block| block.refuse(id))
    }

    /// Returns the contents that a block may have now or get from what is in flight. Exact if
    /// nothing is.
    pub fn possible(&self, block: Block) -> BTreeSet<u64> {
        let Some(search) = self.blocks.get(&block) else { return BTreeSet::from([0]) };
        let mut values = search.states();
        values.extend(search.ops().flat_map(values_of));
        values
    }

    /// Returns whether an operation is not over. A read is over when it is lost.
    pub fn is_in_flight(&self, id: OpId) -> bool {
        self.places.contains_key(&id)
    }

    /// Returns how many operations on a block are not over.
    pub fn in_flight_at(&self, block: Block) -> usize {
        self.blocks.get(&block).map_or(0, |search| search.ops().count())
    }

    /// Returns how many operations are not over.
    pub fn in_flight(&self) -> usize {
        self.places.len()
    }

    fn block(&mut self, block: Block) -> &mut Search<Register> {
        let most = self.most;
        self.blocks.entry(block).or_insert_with(|| Search::new(0, most))
    }

    /// Records that a block may have a value from here on, and so may its copies in flight.
    fn may_have(&mut self, block: Block, value: u64) {
        let mut left = vec![block];
        while let Some(source) = left.pop() {
            for id in self.copies.get(&source).cloned().unwrap_or_default() {
                let Some(place) = self.places.get(&id).copied() else { continue };
                let mut is_new = false;
                self.block(place).widen(id, |op| {
                    if let Known::Copy { candidates, .. } = op {
                        is_new = candidates.insert(value);
                    }
                });
                if is_new {
                    left.push(place);
                }
            }
        }
    }

    fn conclude(
        &mut self,
        id: OpId,
        what: &str,
        conclude: impl FnOnce(&mut Search<Register>) -> Result<(), Stuck>,
    ) -> Result<(), Wrong> {
        let Some(block) = self.places.remove(&id) else {
            panic!("{id:?} has ended or was never invoked");
        };
        let most = self.most;
        let possible = self.possible(block);
        self.note(block, &possible);
        let search = self.block(block);
        let op = search.op(id).cloned();
        let in_flight = search.ops().count();
        let result = conclude(search);
        if let Some(Known::Copy { source, .. }) = &op {
            self.copies.entry(*source).or_default().remove(&id);
        }
        result.map_err(|stuck| match stuck {
            Stuck::TooMany => Wrong::TooMany { block, most, in_flight },
            Stuck::Impossible => Wrong::Impossible {
                block,
                id,
                op: op.map(|op| format!("{op:?}")).unwrap_or_default(),
                what: what.to_owned(),
                possible: possible.into_iter().collect(),
            },
        })
    }
}

/// Returns the values that an operation may give a block.
fn values_of(op: &Known) -> Vec<u64> {
    match op {
        Known::Write(value) => vec![*value],
        Known::CompareAndWrite { new, .. } => vec![*new],
        Known::Read => Vec::new(),
        Known::Copy { candidates, .. } => candidates.iter().copied().collect(),
    }
}

#[cfg(test)]
mod tests;
