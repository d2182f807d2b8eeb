//! Allocation of RODs in the internal volume.

use std::collections::BTreeMap;

use block::request::limits::LEAF_BYTES;
use block::{SECTOR_BYTES, SectorCount, SectorRange};

/// The volume's sectors, and which of them are in use. Pieces in use never overlap.
#[derive(Debug)]
pub(super) struct Room {
    size: SectorCount,
    /// Where the next search begins.
    cursor: u64,
    /// Pieces in use: start and end.
    used: BTreeMap<u64, u64>,
}

impl Room {
    pub(super) fn new(size: SectorCount) -> Self {
        Self { size, cursor: 0, used: BTreeMap::new() }
    }

    /// Allocates space for a copy of each of these ranges; `None` if there is not enough for all.
    pub(super) fn allocate(&mut self, ranges: &[SectorRange]) -> Option<Vec<SectorRange>> {
        let mut pieces = Vec::with_capacity(ranges.len());
        for range in ranges {
            let Some(place) = self.find(self.cursor, *range).or_else(|| self.find(0, *range))
            else {
                self.free(&pieces);
                return None;
            };
            let end = place + range.count.0;
            self.used.insert(place, end);
            self.cursor = end;
            pieces.push(SectorRange::new(place, range.count.0));
        }
        Some(pieces)
    }

    /// Allocates these pieces, unless one of them is in use or outside the volume: then returns
    /// false, and nothing has changed.
    pub(super) fn take(&mut self, pieces: &[SectorRange]) -> bool {
        for (at, piece) in pieces.iter().enumerate() {
            if piece.is_empty() || !piece.fits(self.size) || !self.is_free(piece) {
                self.free(&pieces[..at]);
                return false;
            }
            self.used.insert(piece.start.0, piece.start.0 + piece.count.0);
        }
        true
    }

    /// Frees these pieces.
    ///
    /// # Panics
    /// If one of the pieces is not in use.
    pub(super) fn free(&mut self, pieces: &[SectorRange]) {
        for piece in pieces {
            let end = self.used.remove(&piece.start.0);
            assert_eq!(
                end,
                Some(piece.start.0 + piece.count.0),
                "a piece is freed once and completely"
            );
        }
    }

    fn is_free(&self, piece: &SectorRange) -> bool {
        let end = piece.start.0 + piece.count.0;
        self.used.range(..end).next_back().is_none_or(|(_, before)| *before <= piece.start.0)
    }

    /// Returns the first free position at or after `from` for a range, at the same offset in its
    /// leaf as the range, so that whole leaves are shared.
    fn find(&self, from: u64, range: SectorRange) -> Option<u64> {
        let leaf = LEAF_BYTES / SECTOR_BYTES;
        let aligned = |at: u64| at.next_multiple_of(leaf) + range.start.0 % leaf;
        let before = self.used.range(..=from).next_back().map_or(0, |(_, end)| *end);
        let mut place = aligned(from.max(before));
        for (start, end) in self.used.range(from..) {
            if place + range.count.0 <= *start {
                break;
            }
            place = place.max(aligned(*end));
        }
        (place + range.count.0 <= self.size.0).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, count: u64) -> SectorRange {
        SectorRange::new(start, count)
    }

    #[test]
    fn pieces_that_overlap_or_do_not_fit_are_refused() {
        let mut room = Room::new(SectorCount(100));
        assert!(room.take(&[range(10, 10), range(30, 5)]));
        let bad = [range(5, 6), range(19, 1), range(12, 2), range(0, 100), range(95, 6)];
        for piece in bad.into_iter().chain([range(50, 0), range(u64::MAX, 1)]) {
            assert!(!room.take(&[range(60, 1), piece]), "{piece:?}");
        }
        assert!(room.take(&[range(20, 10), range(60, 1)]), "a failure allocates nothing");
        room.free(&[range(10, 10)]);
        assert!(room.take(&[range(5, 15)]));
    }

    #[test]
    fn a_request_that_does_not_fit_allocates_nothing() {
        let mut room = Room::new(SectorCount(100));
        assert_eq!(room.allocate(&[range(0, 60), range(0, 60)]), None);
        assert_eq!(room.allocate(&[range(0, 100)]), Some(vec![range(0, 100)]));
    }
}
