//! Segments that change their layout to another width, while they are empty.

use std::collections::BTreeSet;

use format::{SegmentRow, SegmentState};

use super::Segments;
use crate::space::tally::Tally;
use crate::space::widths::SegmentWidths;

impl Segments {
    /// Sets the usable blocks of a segment.
    pub(crate) fn fill_with(&mut self, metadata_blocks: u32) {
        let mut tally = Tally::new(metadata_blocks);
        self.all_rows().for_each(|(id, row)| tally.change(id, SegmentRow::default(), row));
        self.tally = tally;
    }

    /// Sets the widths of segments, none of which can be opened now.
    pub(crate) fn set_widths(&mut self, widths: &SegmentWidths) {
        self.free.set_widths(widths);
    }

    /// Sets the widths of all segments, as found when a pool is opened.
    pub(crate) fn found_widths(&mut self, widths: &SegmentWidths) {
        let free = std::mem::take(&mut self.free);
        self.free.set_widths(widths);
        free.segments().iter().for_each(|segment| self.free.insert(*segment));
    }

    /// Takes out some of these segments that can be opened now, to change their layout, and as many
    /// others that may become narrower for them: at most half of all that can be opened, because
    /// others may need one. [`Segments::laid_anew`] puts them back.
    pub(crate) fn take_to_lay(&mut self, wanted: &[u32], most: usize) -> Vec<u32> {
        self.reap();
        let free = self.free.segments();
        let most = most.min(free.len() / 2);
        let taken = wanted.iter().copied().filter(|segment| free.contains(segment));
        let mut taken: Vec<u32> = taken.take(most).collect();
        if !taken.is_empty() {
            let wanted: BTreeSet<u32> = wanted.iter().copied().collect();
            let others = free.difference(&wanted).copied();
            taken.extend(others.take(most - taken.len()).collect::<Vec<_>>());
        }
        for segment in &taken {
            self.free.remove(*segment);
        }
        taken
    }

    /// Puts back segments whose layout was or was not changed.
    pub(crate) fn laid_anew(&mut self, segments: Vec<u32>) {
        for segment in segments {
            assert_eq!(
                self.row(segment).state,
                SegmentState::Free,
                "opened during a layout change"
            );
            self.free.insert(segment);
        }
    }
}
