//! Whether the log ends at a position, in one pass over what is stored after it.
//!
//! A record may be missing because it was never written, because a crash tore it, or because it is
//! damaged. Only later records can show which: the next one has a copy of its header and entries,
//! and any of them may say that it was flushed. Usually there is none, and this is what takes most
//! of the time of a takeover. So that is examined first, in one sequential pass over the rest of
//! the segment and the next one. In a planned switch the previous owner knows the end, and nothing
//! needs to be searched: see [`crate::LogEnd`].

use format::log::LogPosition;

use crate::log::log_reader::LogReader;
use crate::log::replay::search_behind;

impl LogReader<'_> {
    /// Returns whether no later record is stored where the search for the one at `end`, or for a
    /// proof that it was flushed, would begin. Returns `false` if that is not certain, because the
    /// copies on several devices may differ.
    pub(super) fn is_end(&mut self, end: &LogPosition) -> bool {
        if self.end.as_ref() == Some(end) {
            return true;
        }
        let mut is_end = self.reads_the_same_everywhere(end);
        if is_end {
            search_behind(self, end, &mut |_| {
                is_end = false;
                true
            });
        }
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
}
