//! Whether the log ends at a position, in one pass over what is stored after it.
//!
//! A record may be missing because it was never written, because a crash tore it, or because it is
//! damaged. Only later records can show which: the next one has a copy of its header and entries,
//! and any of them may say that it was flushed. Usually there is none, and this is what takes most
//! of the time of a takeover. So that is examined first, in one sequential pass over the rest of
//! the segment and the next one. In a planned switch the previous owner knows the end, and nothing
//! needs to be searched: see [`crate::LogEnd`].

use format::Place;
use format::log::LogPosition;

use crate::log::log_reader::LogReader;

impl LogReader<'_> {
    /// Returns whether no later record is stored where the search for the one at `end`, or for a
    /// proof that it was flushed, would begin. Returns `false` if that is not certain: because
    /// blocks are unreadable, or because the copies on several devices may differ.
    pub(super) fn is_end(&mut self, end: &LogPosition) -> bool {
        if self.end.as_ref() == Some(end) {
            return true;
        }
        let is_end = self.reads_the_same_everywhere(end)
            && self.has_none_after(end, (end.segment, end.block))
            && self.has_none_after(end, (end.next_segment, 0));
        if is_end {
            self.end = Some(*end);
        }
        is_end
    }

    /// Returns whether all copies of the rows that decide, or all ways to reconstruct them, are
    /// equal.
    fn reads_the_same_everywhere(&self, end: &LogPosition) -> bool {
        if self.medium.disk.copies() <= 1 {
            return true;
        }
        let [here, next] = Self::places_of_copies(end);
        self.is_one_in_all_ways(&here, true) && self.is_one_in_all_ways(&next, false)
    }

    /// Returns whether all blocks of a segment, from one on, can be read, and none begins a record
    /// after `end`.
    fn has_none_after(&mut self, end: &LogPosition, (segment, first): (u32, u32)) -> bool {
        (first..self.medium.geometry().rows()).all(|block| {
            match self.header_at(Place::of_block(segment, block)) {
                Ok(header) => header.is_none_or(|header| header.lsn <= end.lsn),
                Err(_) => false,
            }
        })
    }
}
