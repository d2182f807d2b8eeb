//! Free segments that are not discarded yet: the device still holds their old content.
//!
//! Invariants:
//! 1. A segment is not free while it is being discarded: it can't be opened.
//! 2. Only a segment that was free is discarded. So nothing durable refers to its content, and no
//!    reader can still read it (`segments`).

use std::collections::BTreeSet;

/// Free segments that were not discarded. Empty unless the pool discards.
#[derive(Debug, Default)]
pub(crate) struct Undiscarded {
    is_enabled: bool,
    segments: BTreeSet<u32>,
}

impl Undiscarded {
    /// Enables discarding. Any segment that is free now may have old content.
    pub(crate) fn enable(&mut self, free: &BTreeSet<u32>) {
        self.is_enabled = true;
        self.segments = free.clone();
    }

    /// Disables it, because the device does not support it.
    pub(crate) fn disable(&mut self) {
        *self = Self::default();
    }

    /// Adds a freed segment.
    pub(crate) fn freed(&mut self, segment: u32) {
        if self.is_enabled {
            self.segments.insert(segment);
        }
    }

    /// Removes a segment that is no longer free, or is being discarded.
    pub(crate) fn remove(&mut self, segment: u32) {
        self.segments.remove(&segment);
    }

    /// Returns the last of these that is in `free`. The log takes the first.
    pub(crate) fn last_in(&self, free: &BTreeSet<u32>) -> Option<u32> {
        self.segments.iter().rev().find(|segment| free.contains(segment)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_segments_are_listed_until_they_are_opened() {
        let mut undiscarded = Undiscarded::default();
        undiscarded.freed(7);
        let mut free = BTreeSet::from([3, 5, 7]);
        assert_eq!(undiscarded.last_in(&free), None, "the pool does not discard");
        undiscarded.enable(&free);
        assert_eq!(undiscarded.last_in(&free), Some(7));
        undiscarded.remove(7);
        assert_eq!(undiscarded.last_in(&free), Some(5));
        undiscarded.freed(9);
        assert_eq!(undiscarded.last_in(&free), Some(5), "segment 7 is not free yet");
        free.insert(9);
        assert_eq!(undiscarded.last_in(&free), Some(9));
        undiscarded.disable();
        undiscarded.freed(9);
        assert_eq!(undiscarded.last_in(&free), None);
    }
}
