//! Segments that are laid anew, with another width, while nothing is in them.

use std::collections::BTreeSet;

use format::{SegmentRow, SegmentState};

use super::Segments;
use crate::space::tally::Tally;
use crate::space::widths::SegmentWidths;

impl Segments {
    /// A checkpoint can fill so many blocks of a segment from here on.
    pub(crate) fn fill_with(&mut self, metadata_blocks: u32) {
        let mut tally = Tally::new(metadata_blocks);
        self.all_rows().for_each(|(id, row)| tally.change(id, SegmentRow::default(), row));
        self.tally = tally;
    }

    /// Segments have these widths from here on; none of them can be opened now.
    pub(crate) fn set_widths(&mut self, widths: &SegmentWidths) {
        self.free.set_widths(widths);
    }

    /// All segments have these widths, as they are found in a pool that is opened.
    pub(crate) fn found_widths(&mut self, widths: &SegmentWidths) {
        let free = std::mem::take(&mut self.free);
        self.free.set_widths(widths);
        free.segments().iter().for_each(|segment| self.free.insert(*segment));
    }

    /// Takes out some of these segments, as far as they can be opened now, to be laid anew, and as
    /// many others that may become narrower for them: at most half of all that can be opened, as
    /// somebody may need one. [`Segments::laid_anew`] puts them back.
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

    /// Segments were laid anew, or not, and are free again.
    pub(crate) fn laid_anew(&mut self, segments: Vec<u32>) {
        for segment in segments {
            assert_eq!(self.row(segment).state, SegmentState::Free, "it was opened meanwhile");
            self.free.insert(segment);
        }
    }
}
