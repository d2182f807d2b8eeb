//! What the rows of the segment table add up to. There are up to 65,536 of them, so nothing that is
//! asked under the writer's lock for each commit, turn or checkpoint walks them: the sums change
//! with the rows.

use std::collections::BTreeSet;

use format::{Geometry, SegmentRow, SegmentState};

use crate::NODE_UNITS;

/// Sums over all rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    blocks_per_segment: u64,
    /// Segments that are not free.
    pub(crate) used: u32,
    /// Units of 64 bytes that are live in all segments.
    pub(crate) live_units: u64,
    /// Of these in segments of the log.
    pub(crate) live_log_units: u64,
    /// Segments in use in which nothing is live.
    pub(crate) empty: BTreeSet<u32>,
    /// Segments of metadata in which something is live.
    pub(crate) metadata: BTreeSet<u32>,
    /// Blocks of those that nothing live is in, at least: see [`Tally::holes_of`].
    pub(crate) holes_blocks: u64,
}

impl Tally {
    /// That of rows that are all free.
    pub(crate) fn new(geometry: Geometry) -> Self {
        Self::of_free(geometry.blocks_per_segment().into())
    }

    fn of_free(blocks_per_segment: u64) -> Self {
        Self {
            blocks_per_segment,
            used: 0,
            live_units: 0,
            live_log_units: 0,
            empty: BTreeSet::new(),
            metadata: BTreeSet::new(),
            holes_blocks: 0,
        }
    }

    /// A row becomes another. The sets change only when a segment is opened, freed, or no longer
    /// empty, not with each chunk.
    pub(crate) fn change(&mut self, segment: u32, old: SegmentRow, new: SegmentRow) {
        let is_used = |row: SegmentRow| row.state != SegmentState::Free;
        self.used = self.used - u32::from(is_used(old)) + u32::from(is_used(new));
        let live = |row: SegmentRow| u64::from(row.live_units);
        self.live_units = self.live_units - live(old) + live(new);
        let live = |row: SegmentRow| if row.state == SegmentState::Log { live(row) } else { 0 };
        self.live_log_units = self.live_log_units - live(old) + live(new);
        self.holes_blocks = self.holes_blocks - self.holes_of(old) + self.holes_of(new);
        let is_empty = |row: SegmentRow| is_used(row) && row.live_units == 0;
        keep(&mut self.empty, segment, is_empty(old), is_empty(new));
        let is_metadata =
            |row: SegmentRow| row.state == SegmentState::Metadata && row.live_units > 0;
        keep(&mut self.metadata, segment, is_metadata(old), is_metadata(new));
    }

    /// Blocks of a segment of metadata that nothing live is in, at least: each half of a block that
    /// is live may be in a block of its own.
    pub(crate) fn holes_of(&self, row: SegmentRow) -> u64 {
        match row.state {
            SegmentState::Metadata if row.live_units > 0 => {
                self.blocks_per_segment.saturating_sub(row.live_units.div_ceil(NODE_UNITS).into())
            }
            _ => 0,
        }
    }

    /// Whether it is what these rows add up to.
    pub(crate) fn is_of(&self, rows: impl Iterator<Item = (u32, SegmentRow)>) -> bool {
        let mut sum = Self::of_free(self.blocks_per_segment);
        rows.for_each(|(segment, row)| sum.change(segment, SegmentRow::default(), row));
        sum == *self
    }
}

fn keep(set: &mut BTreeSet<u32>, segment: u32, was: bool, is: bool) {
    match (was, is) {
        (false, true) => drop(set.insert(segment)),
        (true, false) => drop(set.remove(&segment)),
        _ => {}
    }
}
