//! The random choice of a load's next operation, the same for the same seed.

use super::Kind;
use super::operation::{Action, REGION_BLOCKS, ZeroBy};
use crate::random::Random;

/// Chooses.
#[derive(Debug)]
pub struct Chooser {
    /// The kinds to choose from.
    pub kinds: Vec<Kind>,
    /// The number of blocks of the span.
    pub blocks: u64,
    /// The random numbers.
    pub random: Random,
}

impl Chooser {
    /// Returns the next kind.
    pub fn kind(&mut self) -> Kind {
        let kinds = &self.kinds;
        if kinds.contains(&Kind::Write) && self.random.percent(50) {
            return Kind::Write;
        }
        let index = self.random.below(kinds.len() as u64) as usize;
        kinds.get(index).copied().unwrap_or(Kind::Write)
    }

    /// Returns a range within one region, of at most `most` blocks; half of them are one block.
    pub fn small(&mut self, most: u64) -> (u64, u64) {
        let blocks = self.blocks;
        let count = if self.random.percent(50) { 1 } else { 1 + self.random.below(most) };
        let first = self.random.below(blocks);
        let end = (first / REGION_BLOCKS + 1) * REGION_BLOCKS;
        (first, count.min(end.min(blocks) - first))
    }

    /// Returns a range for offloads: part of a region, or one to four whole ones.
    fn range(&mut self) -> (u64, u64) {
        if self.random.percent(60) {
            return self.small(REGION_BLOCKS);
        }
        let regions = self.blocks / REGION_BLOCKS;
        let count = 1 + self.random.below(4);
        (self.random.below(regions) * REGION_BLOCKS, count * REGION_BLOCKS)
    }

    /// Returns an action of a kind; it may exceed the span, or overlap itself.
    pub fn action(&mut self, kind: Kind) -> Action {
        match kind {
            Kind::Read | Kind::Write => {
                let (first, count) = self.small(32);
                Action::Write { first, count }
            }
            Kind::Compare => Action::Compare { block: self.random.below(self.blocks) },
            Kind::Zero | Kind::Unmap => {
                let (first, count) = self.range();
                let by = if kind == Kind::Unmap { ZeroBy::Unmap } else { ZeroBy::WriteSame };
                Action::Zero { first, count, by }
            }
            Kind::Copy => {
                let (source, count) = self.range();
                let mut destination = self.random.below(self.blocks);
                if source % REGION_BLOCKS == 0 && self.random.percent(70) {
                    destination -= destination % REGION_BLOCKS;
                }
                Action::Copy { source, destination, count }
            }
        }
    }
}
