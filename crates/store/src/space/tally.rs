//! Sums over the rows of the segment table. There may be very many rows, so figures that are needed
//! under the writer's lock for each commit, turn or checkpoint are kept as sums that change with
//! the rows.

use std::collections::BTreeSet;

use format::{SegmentRow, SegmentState};

use crate::NODE_UNITS;

/// Sums over all rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The usable blocks of a segment.
    metadata_blocks: u64,
    /// Segments that are not free.
    pub(super) used: u32,
    /// Live units of 64 bytes in all segments, counting both copies.
    pub(super) live_units: u64,
    /// Those of them in log segments.
    pub(super) live_log_units: u64,
    /// Used segments without live data.
    pub(super) empty: BTreeSet<u32>,
    /// Segments of metadata with live data.
    pub(crate) metadata: BTreeSet<u32>,
    /// Segments of metadata with one copy, live or not: the last checkpoint may have something in
    /// them that was removed since.
    pub(crate) of_one_copy: BTreeSet<u32>,
    /// The minimum number of blocks of metadata segments without live data: see
    /// [`Tally::holes_of`].
    pub(crate) holes_blocks: u64,
}

impl Tally {
    /// Returns the sums of free rows, with this many usable blocks per segment.
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

    /// Replaces a row. The sets change only when a segment is opened, freed, or no longer empty,
    /// not with each chunk.
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

    /// Returns the minimum number of blocks of a metadata segment without live data: each live half
    /// block may be in a block of its own.
    pub(crate) fn holes_of(&self, row: SegmentRow) -> u64 {
        match row.state {
            SegmentState::Metadata if row.live_units > 0 => {
                self.metadata_blocks.saturating_sub(row.live_units.div_ceil(NODE_UNITS).into())
            }
            _ => 0,
        }
    }

    /// Returns whether these are the sums of these rows.
    pub(crate) fn is_of(&self, rows: impl Iterator<Item = (u32, SegmentRow)>) -> bool {
        let mut sum = Self::new(self.metadata_blocks as u32);
        rows.for_each(|(segment, row)| sum.change(segment, SegmentRow::default(), row));
        sum == *self
    }
}

/// Returns how many copies the data of a segment has.
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
