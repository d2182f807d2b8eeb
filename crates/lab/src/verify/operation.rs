//! An operation on the span, as the journal records it and the model interprets it.

use std::fmt;
use std::ops::Range;

/// Bytes of a block: the granularity of the model.
pub const BLOCK_BYTES: u64 = 4096;
/// Blocks of a region: the granularity of operations in flight.
pub const REGION_BLOCKS: u64 = 256;

/// The command for zeroing a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZeroBy {
    /// WRITE SAME (16).
    WriteSame,
    /// UNMAP.
    Unmap,
}

/// The action. Blocks are of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// New content in `count` blocks.
    Write {
        /// First block.
        first: u64,
        /// The number of blocks.
        count: u64,
    },
    /// New content in one block, if it has the content in the model.
    Compare {
        /// The block.
        block: u64,
    },
    /// Zeros in `count` blocks.
    Zero {
        /// First block.
        first: u64,
        /// The number of blocks.
        count: u64,
        /// The command.
        by: ZeroBy,
    },
    /// `count` blocks copied.
    Copy {
        /// First block that is read.
        source: u64,
        /// First block that is written.
        destination: u64,
        /// The number of blocks.
        count: u64,
    },
}

/// An action with its number, which is never reused and never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its number.
    pub id: u64,
    /// The action.
    pub action: Action,
}

impl Action {
    /// Returns whether it must have happened completely or not at all.
    pub fn is_atomic(&self) -> bool {
        !matches!(self, Action::Write { .. })
    }

    /// Returns the blocks that it changes.
    pub fn written(&self) -> Range<u64> {
        match *self {
            Action::Write { first, count } | Action::Zero { first, count, .. } => {
                first..first + count
            }
            Action::Compare { block } => block..block + 1,
            Action::Copy { destination, count, .. } => destination..destination + count,
        }
    }

    /// Returns the regions that nothing else may touch meanwhile.
    pub fn regions(&self) -> Vec<u64> {
        let mut regions: Vec<u64> = regions_of(self.written()).collect();
        if let Action::Copy { source, count, .. } = *self {
            regions.extend(regions_of(source..source + count));
        }
        regions
    }

    /// Returns whether it stays within `blocks` blocks, and a copy does not overlap itself.
    pub fn fits(&self, blocks: u64) -> bool {
        let below = |first: u64, count: u64| {
            count > 0 && first.checked_add(count).is_some_and(|end| end <= blocks)
        };
        match *self {
            Action::Write { first, count } | Action::Zero { first, count, .. } => {
                below(first, count)
            }
            Action::Compare { block } => below(block, 1),
            Action::Copy { source, destination, count } => {
                below(source, count)
                    && below(destination, count)
                    && source.abs_diff(destination) >= count
            }
        }
    }

    /// Parses what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(' ');
        let name = fields.next()?;
        let mut number = || fields.next()?.parse::<u64>().ok();
        let action = match name {
            "write" => Action::Write { first: number()?, count: number()? },
            "compare" => Action::Compare { block: number()? },
            "same" => Action::Zero { first: number()?, count: number()?, by: ZeroBy::WriteSame },
            "unmap" => Action::Zero { first: number()?, count: number()?, by: ZeroBy::Unmap },
            "copy" => Action::Copy { source: number()?, destination: number()?, count: number()? },
            _ => return None,
        };
        fields.next().is_none().then_some(action)
    }
}

/// Returns the regions that a range of blocks touches.
pub fn regions_of(blocks: Range<u64>) -> Range<u64> {
    blocks.start / REGION_BLOCKS..blocks.end.div_ceil(REGION_BLOCKS)
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Write { first, count } => write!(f, "write {first} {count}"),
            Action::Compare { block } => write!(f, "compare {block}"),
            Action::Zero { first, count, by: ZeroBy::WriteSame } => {
                write!(f, "same {first} {count}")
            }
            Action::Zero { first, count, by: ZeroBy::Unmap } => {
                write!(f, "unmap {first} {count}")
            }
            Action::Copy { source, destination, count } => {
                write!(f, "copy {source} {destination} {count}")
            }
        }
    }
}
