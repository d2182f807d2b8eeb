//! What a copy takes from its source, examined in advance: what it costs, and how much of it one
//! commit may take.
//!
//! The cost is counted in units of *work*: one for an entry of a leaf that gets a reference, and
//! some for a node that is walked through, or for what is set with a descent of its own. Holes,
//! zeros, patterns and repeated blocks of any length are one such thing, and so is a node that the
//! destination can share as it is. So the length of a copy does not determine its cost.

use std::ops::Range;

use format::map::LEVEL_MAX;
use format::{MapEntry, VolumeRow};

use crate::edits::edit::Edit;
use crate::edits::preload::{Looker, Unreadable};
use crate::tuning::{NODE_WORK, STEP_WORK};

/// The cost of a node that is shared as it is, next to others.
const GRAFT_WORK: u64 = 2;
/// The maximum number of device reads for one piece: some milliseconds.
const LOADS_MAX: u64 = 64;

impl Edit {
    /// Returns the cost of examining it again, in units of work.
    pub(crate) fn looked_at(&self) -> u64 {
        self.work.max(STEP_WORK * self.steps.len() as u64)
    }
}

/// Blocks of the destination that become one thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenRun {
    pub(super) start: u64,
    pub(super) count: u64,
    /// An entry that spans this many levels in the destination is replaced as a whole.
    pub(super) whole_level: u8,
    /// The value of all of them, if they are alike.
    alike: Option<MapEntry>,
}

/// What was examined.
pub(crate) struct Taken {
    pub(super) runs: Vec<TakenRun>,
    pub(super) work: u64,
    /// How many blocks it is, from the end where it was begun.
    pub(super) blocks: u64,
}

struct Taker<'l, 'a> {
    looker: &'l mut Looker<'a>,
    range: Range<u64>,
    to: u64,
    budget: u64,
    loads_end: u64,
    /// From the end, not from the beginning.
    backwards: bool,
    taken: Taken,
}

impl Looker<'_> {
    /// Examines what a copy takes of a range, whose first block goes to `to`, until the budget is
    /// spent. For a copy that is done in `pieces` something is taken in any case.
    pub(crate) fn take(
        &mut self,
        map: &VolumeRow,
        range: Range<u64>,
        to: u64,
        budget: u64,
        pieces: Option<bool>,
    ) -> Result<Taken, Unreadable> {
        let loads = self.world.load_count();
        // One commit must not become several because memory is short.
        let loads_end = pieces.map_or(u64::MAX, |_| loads + LOADS_MAX);
        let mut taker = Taker {
            looker: self,
            range,
            to,
            budget,
            loads_end,
            backwards: pieces == Some(true),
            taken: Taken { runs: Vec::new(), work: 0, blocks: 0 },
        };
        if !taker.range.is_empty() {
            taker.entry(map.root, map.level, 0)?;
        }
        Ok(taker.taken)
    }
}

impl Taker<'_, '_> {
    fn is_spent(&self) -> bool {
        self.taken.work >= self.budget
            || self.taken.blocks > 0 && self.looker.world.load_count() > self.loads_end
    }

    /// Takes the wanted part of an entry; returns `false` if the budget is spent, and nothing more
    /// is taken.
    fn entry(&mut self, entry: MapEntry, level: u8, base: u64) -> Result<bool, Unreadable> {
        let world = self.looker.world;
        let span = world.span_blocks(level);
        let (start, end) = (self.range.start.max(base), self.range.end.min(base + span));
        if start >= end {
            return Ok(true);
        }
        let at = block::BlockNumber(start);
        let to = self.to + (start - self.range.start);
        let MapEntry::Node(id) = entry else {
            self.looker.row(entry, at)?;
            match level {
                0 => self.push(to, 1, 0, None, 1),
                _ => self.push(to, end - start, LEVEL_MAX, Some(entry), NODE_WORK),
            }
            return Ok(true);
        };
        if end - start == span && to.is_multiple_of(span) {
            self.looker.row(entry, at)?;
            self.looker.grafted.insert(id);
            self.push(to, span, level, None, GRAFT_WORK);
            return Ok(true);
        }
        self.taken.work += NODE_WORK;
        let node = world.nodes.get(world.medium, id, level);
        let Some(node) = self.looker.found(node, at)? else { return Ok(true) };
        let child_span = world.span_blocks(level - 1);
        let (first, last) = ((start - base) / child_span, (end - 1 - base) / child_span);
        for step in 0..=last - first {
            let index = if self.backwards { last - step } else { first + step };
            // A leaf that was begun is completed, so that it need not be walked again.
            if level > 1 && self.is_spent() && self.taken.blocks > 0 {
                return Ok(false);
            }
            let child = node.get(index as usize);
            if !self.entry(child, level - 1, base + index * child_span)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds blocks that follow the previous ones.
    fn push(
        &mut self,
        start: u64,
        count: u64,
        whole_level: u8,
        alike: Option<MapEntry>,
        work: u64,
    ) {
        self.taken.blocks += count;
        if let Some(last) = self.taken.runs.last_mut()
            && (last.whole_level, last.alike) == (whole_level, alike)
        {
            // What is set together has one descent.
            last.start = last.start.min(start);
            last.count += count;
            self.taken.work += work.min(GRAFT_WORK);
            return;
        }
        self.taken.work += work.max(NODE_WORK);
        self.taken.runs.push(TakenRun { start, count, whole_level, alike });
    }
}
