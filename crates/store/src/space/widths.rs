//! Free segments, counted by their size.
//!
//! In a striped pool segments may be narrower than when it was created, because devices were lost,
//! or differ in size. Checks for enough free space count in *whole* segments, of the original
//! width: several narrow ones that make up a whole one count as one. A wider one also counts as
//! one.

use std::collections::{BTreeMap, BTreeSet};

use crate::chunks::medium::Medium;

/// The count of a whole segment.
const WHOLE: u64 = 1024;

/// The widths of some segments.
#[derive(Debug, Default)]
pub(crate) struct SegmentWidths(Vec<(u32, u64)>);

impl SegmentWidths {
    /// Returns those of these segments.
    pub(crate) fn of(medium: &Medium, segments: impl Iterator<Item = u32>) -> Self {
        let columns = |segment| (segment, medium.geometry_of(segment).columns);
        Self::new(medium.geometry().columns, segments.map(columns))
    }

    /// Returns those of segments with this many data columns; a whole one has `whole_columns`.
    fn new(whole_columns: u8, segments: impl Iterator<Item = (u32, u8)>) -> Self {
        let counts =
            |columns: u8| (u64::from(columns) * WHOLE / u64::from(whole_columns)).min(WHOLE);
        Self(segments.map(|(segment, columns)| (segment, counts(columns))).collect())
    }
}

/// Segments that can be opened.
#[derive(Debug, Default)]
pub(crate) struct FreeSegments {
    segments: BTreeSet<u32>,
    /// The count of each narrow segment, free or not; all others count as whole.
    narrow: BTreeMap<u32, u64>,
    /// How much the free ones together lack of whole ones.
    lacking: u64,
}

impl FreeSegments {
    pub(crate) fn new(segments: impl Iterator<Item = u32>) -> Self {
        Self { segments: segments.collect(), ..Self::default() }
    }

    /// Sets the widths of segments, none of which is free.
    pub(crate) fn set_widths(&mut self, widths: &SegmentWidths) {
        for (segment, counts) in &widths.0 {
            assert!(
                !self.segments.contains(segment),
                "segment {segment} is free and changes its layout"
            );
            if *counts < WHOLE {
                self.narrow.insert(*segment, *counts);
            } else {
                self.narrow.remove(segment);
            }
        }
    }

    fn lacks(&self, segment: u32) -> u64 {
        self.narrow.get(&segment).map_or(0, |counts| WHOLE - counts)
    }

    pub(crate) fn insert(&mut self, segment: u32) {
        if self.segments.insert(segment) {
            self.lacking += self.lacks(segment);
        }
    }

    /// Takes a segment out; returns `false` if it was not there.
    pub(crate) fn remove(&mut self, segment: u32) -> bool {
        let was_free = self.segments.remove(&segment);
        if was_free {
            self.lacking -= self.lacks(segment);
        }
        was_free
    }

    /// Takes out the lowest.
    pub(crate) fn pop_first(&mut self) -> Option<u32> {
        let first = *self.segments.first()?;
        self.remove(first);
        Some(first)
    }

    /// Returns how many whole ones they make up.
    pub(crate) fn whole_count(&self) -> u32 {
        self.segments.len() as u32 - self.lacking.div_ceil(WHOLE) as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(crate) fn segments(&self) -> &BTreeSet<u32> {
        &self.segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_segments_make_up_whole_ones() {
        let mut free = FreeSegments::new(std::iter::empty());
        free.set_widths(&SegmentWidths::new(4, [(1, 3), (2, 2), (3, 4), (4, 6)].into_iter()));
        let mut counts = Vec::new();
        for segment in 1..=4 {
            free.insert(segment);
            free.insert(segment);
            counts.push(free.whole_count());
        }
        assert_eq!(counts, [0, 1, 2, 3]);
        assert!(free.remove(2) && !free.remove(2));
        assert_eq!((free.whole_count(), free.pop_first()), (2, Some(1)));
        assert_eq!(free.whole_count(), 2);
        free.set_widths(&SegmentWidths::new(4, [(1, 4)].into_iter()));
        free.insert(1);
        assert_eq!((free.whole_count(), free.segments().len()), (3, 3));
    }

    #[test]
    fn a_segment_that_could_be_opened_is_not_laid_out_again() {
        let mut free = FreeSegments::new([1].into_iter());
        let widths = SegmentWidths::new(4, [(1, 3)].into_iter());
        let laid = std::panic::catch_unwind(move || free.set_widths(&widths));
        assert!(laid.is_err());
    }
}
