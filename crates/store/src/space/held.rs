//! Free segments of which the device does not know yet that nobody needs what is in them.
//!
//! Invariants:
//! 1. A segment that the device is being told of is not free meanwhile: nobody can open it.
//! 2. Only a segment that was free is told of. So nothing durable names what is in it, and nobody
//!    may still read it (`segments`).

use std::collections::BTreeSet;

/// Free segments whose space the device does not have back.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Whether anybody wants to know.
    is_wanted: bool,
    segments: BTreeSet<u32>,
}

impl Held {
    /// From here on it is known. What is free by then may hold something.
    pub(crate) fn begin(&mut self, free: &BTreeSet<u32>) {
        self.is_wanted = true;
        self.segments = free.clone();
    }

    /// The device can't be told.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }

    /// A segment was freed that something was in.
    pub(crate) fn freed(&mut self, segment: u32) {
        if self.is_wanted {
            self.segments.insert(segment);
        }
    }

    /// A segment is not free any more.
    pub(crate) fn opened(&mut self, segment: u32) {
        self.segments.remove(&segment);
    }

    /// The last of these that is in `free`: the log takes the first.
    pub(crate) fn last_of(&self, free: &BTreeSet<u32>) -> Option<u32> {
        self.segments.iter().rev().find(|segment| free.contains(segment)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_what_was_freed_and_not_opened_since() {
        let mut held = Held::default();
        held.freed(7);
        let mut free = BTreeSet::from([3, 5, 7]);
        assert_eq!(held.last_of(&free), None, "nobody wants to know");
        held.begin(&free);
        assert_eq!(held.last_of(&free), Some(7));
        held.opened(7);
        assert_eq!(held.last_of(&free), Some(5));
        held.freed(9);
        assert_eq!(held.last_of(&free), Some(5), "it is not free yet");
        free.insert(9);
        assert_eq!(held.last_of(&free), Some(9));
        held.end();
        held.freed(9);
        assert_eq!(held.last_of(&free), None);
    }
}
