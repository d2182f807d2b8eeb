//! What the rows of the segment table add up to. There may be very many of them, so nothing that is
//! asked under the writer's lock for each commit, turn or checkpoint walks them: the sums change
//! with the rows.

use std::collections::BTreeSet;

use format::{SegmentRow, SegmentState};

use crate::NODE_UNITS;

/// Sums over all rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Blocks of a segment that a checkpoint can fill.
    metadata_blocks: u64,
    /// Segments that are not free.
    pub(super) used: u32,
    /// Units of 64 bytes that are live in all segments: both copies of what stands twice.
    pub(super) live_units: u64,
    /// Of these in segments of the log.
    pub(super) live_log_units: u64,
    /// Segments in use in which nothing is live.
    pub(super) empty: BTreeSet<u32>,
    /// Segments of metadata in which something is live.
    pub(crate) metadata: BTreeSet<u32>,
    /// Segments of metadata that stands once, live or not: the last checkpoint may have something
    /// in them that was removed since.
    pub(crate) of_one_copy: BTreeSet<u32>,
    /// Blocks of metadata segments that nothing live is in, at least: see [`Tally::holes_of`].
    pub(crate) holes_blocks: u64,
}

impl Tally {
    /// That of rows that are all free, where a checkpoint can fill so many blocks of a segment.
    pub(crate) fn new(metadata_blocks: u32) -> Self {
        Self {
            metadata_blocks: metadata_blocks.into(),
            used: 0,
            live_units: 0,
            live_log_units: 0,
            empty: BTreeSet::new(),
            metadata: BTreeSet::new(),
            of_one_copy: BTreeSet::new(),
            holes_blocks: 0,
        }
    }

    /// A row becomes another. The sets change only when a segment is opened, freed, or no longer
    /// empty, not with each chunk.
    pub(crate) fn change(&mut self, segment: u32, old: SegmentRow, new: SegmentRow) {
        let is_used = |row: SegmentRow| row.state != SegmentState::Free;
        self.used = self.used - u32::from(is_used(old)) + u32::from(is_used(new));
        let live = |row: SegmentRow| u64::from(row.live_units) * copies_of(row);
        self.live_units = self.live_units - live(old) + live(new);
        let live = |row: SegmentRow| if row.state == SegmentState::Log { live(row) } else { 0 };
        self.live_log_units = self.live_log_units - live(old) + live(new);
        self.holes_blocks = self.holes_blocks - self.holes_of(old) + self.holes_of(new);
        let is_empty = |row: SegmentRow| is_used(row) && row.live_units == 0;
        keep(&mut self.empty, segment, is_empty(old), is_empty(new));
        let is_metadata =
            |row: SegmentRow| row.state == SegmentState::Metadata && row.live_units > 0;
        keep(&mut self.metadata, segment, is_metadata(old), is_metadata(new));
        let is_once = |row: SegmentRow| row.state == SegmentState::Metadata && !row.mirrored;
        keep(&mut self.of_one_copy, segment, is_once(old), is_once(new));
    }

    /// Blocks of a segment of metadata that nothing live is in, at least: each half of a block that
    /// is live may be in a block of its own.
    pub(crate) fn holes_of(&self, row: SegmentRow) -> u64 {
        match row.state {
            SegmentState::Metadata if row.live_units > 0 => {
                self.metadata_blocks.saturating_sub(row.live_units.div_ceil(NODE_UNITS).into())
            }
            _ => 0,
        }
    }

    /// Whether it is what these rows add up to.
    pub(crate) fn is_of(&self, rows: impl Iterator<Item = (u32, SegmentRow)>) -> bool {
        let mut sum = Self::new(self.metadata_blocks as u32);
        rows.for_each(|(segment, row)| sum.change(segment, SegmentRow::default(), row));
        sum == *self
    }
}

/// How often what is live in a segment stands there.
fn copies_of(row: SegmentRow) -> u64 {
    if row.state == SegmentState::Metadata && row.mirrored { 2 } else { 1 }
}

fn keep(set: &mut BTreeSet<u32>, segment: u32, was: bool, is: bool) {
    match (was, is) {
        (false, true) => drop(set.insert(segment)),
        (true, false) => drop(set.remove(&segment)),
        _ => {}
    }
}
