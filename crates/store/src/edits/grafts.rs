//! Grafts that are applied after the metadata for an edit was read (`preload`).
//!
//! A copy, a clone and an overwritten volume replace nodes by others, or share them. So an edit
//! that examines such nodes waits until they are applied, and is planned again if one was applied
//! since it was. Edits that only refer to whole leaves or drop them examine no leaves: for them
//! only grafts matter that change inner nodes on their path.

use block::{BlockCount, BlockRange, VolumeId};
use format::Entry;
use format::map::Fanout;
use smallvec::SmallVec;

use crate::edits::edit::{Edit, Step};
use crate::edits::entries::overlap;
use crate::edits::preload::{Looker, Unreadable};

/// The maximum number of leaves of a copy that may be split: if there may be more, it is done in
/// pieces.
const BROKEN_LEAVES_MAX: u64 = 64;

/// Blocks of a volume whose nodes are replaced, or shared from there on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Graft {
    volume: VolumeId,
    range: BlockRange,
    /// They are replaced; otherwise they are shared.
    sets: bool,
}

/// Blocks of a volume that a change examines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    volume: VolumeId,
    range: BlockRange,
    /// It sets them; otherwise it copies from them.
    sets: bool,
    /// As whole leaves.
    whole: bool,
}

impl Graft {
    /// Returns what is shared with another volume, or replaced, as a whole: both when a volume is
    /// overwritten, and the source of a clone.
    pub(crate) fn of_entry(entry: &Entry) -> impl Iterator<Item = Self> + use<> {
        let all = BlockRange::new(0, u64::MAX);
        let graft = |volume, sets| Some(Self { volume, range: all, sets });
        let grafts = match entry {
            Entry::VolumeClone { source, .. } => [graft(*source, false), None],
            Entry::VolumeOverwrite { source, volume } => {
                [graft(*source, false), graft(*volume, true)]
            }
            _ => [None, None],
        };
        grafts.into_iter().flatten()
    }

    /// Returns what a copy takes, and what it sets.
    pub(crate) fn of_copy(
        source: (VolumeId, BlockRange),
        target: (VolumeId, BlockRange),
    ) -> [Self; 2] {
        let graft = |(volume, range), sets| Self { volume, range, sets };
        [graft(source, false), graft(target, true)]
    }

    /// Returns whether it changes any examined blocks.
    pub(crate) fn concern_any(&self, touched: &[Touch], fanout: Fanout) -> bool {
        touched.iter().any(|touch| self.concerns(touch, fanout))
    }

    fn concerns(&self, touch: &Touch, fanout: Fanout) -> bool {
        self.volume == touch.volume
            && overlap(self.range, touch.range)
            && (self.sets || touch.sets)
            && !(touch.whole && self.range.count.0 < fanout.span_blocks(2))
    }
}

fn is_whole_leaves(range: BlockRange, fanout: Fanout) -> bool {
    let leaf = fanout.span_blocks(1);
    range.start.0.is_multiple_of(leaf) && range.count.0.is_multiple_of(leaf)
}

impl Looker<'_> {
    /// Examines what a copy sets next to blocks that `earlier` steps set: these may split what is
    /// one entry of its source now. Returns `false` if that is too much.
    pub(crate) fn broken_up(&mut self, step: &Step, earlier: &[Step]) -> Result<bool, Unreadable> {
        let (Some((source, from)), (destination, to)) = (step.source(), step.target()) else {
            return Ok(true);
        };
        for (volume, range) in earlier.iter().map(Step::target) {
            let around = leaves_around(range, self.fanout());
            let (start, end) = (from.start.max(around.start).0, from.end().min(around.end()).0);
            if volume != source || start >= end {
                continue;
            }
            if end - start > BROKEN_LEAVES_MAX * self.fanout().span_blocks(1) {
                return Ok(false);
            }
            let at = to.start.0 + (start - from.start.0);
            self.set(destination, BlockRange::new(at, end - start), 0)?;
        }
        Ok(true)
    }
}

/// Returns all blocks of the leaves that contain a part of a range.
pub(crate) fn leaves_around(range: BlockRange, fanout: Fanout) -> BlockRange {
    let leaf = fanout.span_blocks(1);
    let start = range.start.0 - range.start.0 % leaf;
    BlockRange::new(start, range.end().0.next_multiple_of(leaf) - start)
}

impl Step {
    /// Returns what it copies from while it is applied.
    pub(crate) fn source(&self) -> Option<(VolumeId, BlockRange)> {
        match self {
            Self::Copy { source, from, to, .. } => {
                Some((*source, BlockRange { start: *from, count: to.count }))
            }
            _ => None,
        }
    }

    fn touched(&self, fanout: Fanout) -> impl Iterator<Item = Touch> + use<> {
        let (volume, range) = self.target();
        let source = self.source();
        let whole = is_whole_leaves(range, fanout)
            && match self {
                Self::Fill { .. } | Self::Repeat { .. } => true,
                Self::Copy { .. } => source.is_some_and(|(_, from)| is_whole_leaves(from, fanout)),
                _ => false,
            };
        let taken = source.map(|(volume, range)| Touch { volume, range, sets: false, whole });
        [Some(Touch { volume, range, sets: true, whole }), taken].into_iter().flatten()
    }
}

impl Edit {
    /// Returns whether it copies from volumes when it is applied.
    pub(crate) fn copies(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Copy { .. }))
    }

    /// Returns what it examines.
    pub(crate) fn touched(&self, fanout: Fanout) -> SmallVec<[Touch; 2]> {
        self.steps.iter().flat_map(|step| step.touched(fanout)).collect()
    }
}

/// Returns what a change by an administrator examines. Most only change roots.
pub(crate) fn touched_by(entries: &[Entry], fanout: Fanout) -> Vec<Touch> {
    entries.iter().filter_map(|entry| touched_by_entry(entry, fanout)).collect()
}

fn touched_by_entry(entry: &Entry, fanout: Fanout) -> Option<Touch> {
    match entry {
        Entry::VolumeResize { volume, size_blocks } => {
            let start = size_blocks - size_blocks % fanout.span_blocks(1);
            let count = BlockCount(u64::MAX - start);
            let range = BlockRange { count, ..BlockRange::new(start, 0) };
            Some(Touch { volume: *volume, range, sets: true, whole: false })
        }
        _ => None,
    }
}
