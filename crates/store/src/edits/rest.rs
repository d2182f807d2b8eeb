//! Requests that take several commits, one after another.
//!
//! No commit, nor its planning, may take longer for a longer request. Most requests cost the same
//! at any length. A copy costs as much as its source has parts, if its nodes can't be shared as
//! they are; an UNMAP as much as it has ranges. What is too much for one commit is done in
//! *pieces*: each is an atomic commit of its own, the next one is planned when it is durable, and
//! the request completes after the last. Other requests come in between.
//!
//! Pieces of a copy whose source and destination overlap are taken from the end where nothing was
//! overwritten yet. So it reads what was there when it began, as if it were done at once.

use std::collections::VecDeque;

use block::{BLOCK_BYTES, BlockCount, CopySegment, SECTORS_PER_BLOCK, SectorRange, VolumeId};

use crate::edits::copies::moved_blocks;
use crate::edits::edit::{Edit, Step};
use crate::tuning::STEP_WORK;
use crate::tuning::Tuning;

/// The maximum number of ranges of an UNMAP in one commit: on a snapshot the two ends of each can
/// copy a leaf of their own, and every chunk of that gets another reference.
pub(crate) const UNMAP_PIECE_RANGES: usize = 16;
/// How many ranges may be added to those because they share a block with the previous one.
const UNMAP_SHARED_RANGES: usize = 8;
/// The number of blocks in a piece that must be moved, because its ends are not aligned alike: 1
/// MiB.
const MOVED_PIECE_BLOCKS: u64 = 256;

/// Bytes that can be read, checked and compressed in the time of a unit of work.
const WORK_BYTES: u64 = 256;

/// The rest of a request, including the current piece.
#[derive(Debug)]
pub(crate) enum Rest {
    /// Segments, one after another; the piece is this many sectors of the first.
    Copy { segments: VecDeque<CopySegment>, piece: u64 },
    /// Ranges in order; the piece is this many of them.
    Unmap { volume: VolumeId, ranges: VecDeque<SectorRange>, piece: usize },
}

impl Rest {
    /// Returns all of a copy.
    pub(crate) fn of_copy(segments: &[CopySegment]) -> Self {
        let moves = |segment: &&CopySegment| segment.count.0 > 0 && !is_in_place(segment);
        Self::Copy { segments: segments.iter().filter(moves).copied().collect(), piece: 0 }
    }

    /// Removes the current piece, which is done.
    fn advance(&mut self) {
        match self {
            Self::Copy { segments, piece } => {
                let Some(first) = segments.front_mut() else { return };
                if !is_taken_from_its_end(first) {
                    first.source_start.0 += *piece;
                    first.destination_start.0 += *piece;
                }
                first.count.0 -= *piece;
                if first.count.0 == 0 {
                    segments.pop_front();
                }
            }
            Self::Unmap { ranges, piece, .. } => drop(ranges.drain(..*piece)),
        }
    }

    /// Returns the cost of planning the next piece, in units of work.
    fn piece_work(&self, tuning: &Tuning) -> u64 {
        match self {
            Self::Copy { .. } => tuning.commit_work,
            Self::Unmap { ranges, .. } => STEP_WORK * ranges.len().min(UNMAP_PIECE_RANGES) as u64,
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Copy { segments, .. } => segments.is_empty(),
            Self::Unmap { ranges, .. } => ranges.is_empty(),
        }
    }
}

/// Returns whether a segment copies sectors onto themselves.
pub(crate) fn is_in_place(segment: &CopySegment) -> bool {
    segment.source == segment.destination && segment.source_start == segment.destination_start
}

/// Returns whether copying a segment from its beginning would overwrite what is read later.
fn is_taken_from_its_end(segment: &CopySegment) -> bool {
    let (from, to) = (segment.source_start.0, segment.destination_start.0);
    segment.source == segment.destination && from < to && to - from < segment.count.0
}

/// Returns the next piece of a segment, in sectors from its beginning: whole blocks of the
/// destination, or the partial block at an end.
fn piece_of(segment: &CopySegment, moved_blocks_max: u64) -> (u64, u64) {
    let (start, count) = (segment.destination_start.0, segment.count.0);
    let end = start + count;
    let moved = moved_blocks(segment) > 0;
    let longest = if moved { moved_blocks_max * SECTORS_PER_BLOCK } else { u64::MAX };
    if is_taken_from_its_end(segment) {
        let edge = end - end % SECTORS_PER_BLOCK;
        let from = match !moved && edge < end {
            true => edge,
            false => end.saturating_sub(longest).next_multiple_of(SECTORS_PER_BLOCK),
        };
        let from = if from < end { from.max(start) } else { start };
        // What is before the first whole block is a piece of its own.
        let first = start.next_multiple_of(SECTORS_PER_BLOCK);
        let from = if !moved && from < first && first < end { first } else { from };
        return (from - start, end - from);
    }
    let edge = start.next_multiple_of(SECTORS_PER_BLOCK);
    let to = match (!moved && start < edge, start.saturating_add(longest)) {
        (true, _) => edge,
        (false, to) if moved && to >= end => end,
        (false, to) => to.min(end) - to.min(end) % SECTORS_PER_BLOCK,
    };
    let to = if to > start { to.min(end) } else { end };
    (0, to - start)
}

impl Edit {
    /// Returns whether it is done in pieces.
    pub(crate) fn is_in_pieces(&self) -> bool {
        self.rest.is_some()
    }

    /// Returns the cost of continuing it: planning its next piece, staging its next part, or
    /// examining all of it again.
    pub(crate) fn cost_bytes(&self, tuning: &Tuning) -> u64 {
        let work = match &self.rest {
            Some(rest) if self.steps.is_empty() => rest.piece_work(tuning),
            _ if self.is_to_stage() => return tuning.part_blocks_max * BLOCK_BYTES,
            _ => self.looked_at(),
        };
        work * WORK_BYTES
    }

    /// Converts a copy that is too much for one commit to pieces, from the beginning.
    pub(crate) fn in_pieces(self) -> Self {
        let rest = Some(Rest::of_copy(&self.copied));
        Self { rest, wait: self.wait, ..Self::default() }
    }

    /// Plans the next piece, if there is no current one.
    pub(crate) fn begin_piece(&mut self, tuning: &Tuning) {
        if !self.steps.is_empty() {
            return;
        }
        let Some(mut rest) = self.rest.take() else { return };
        match &mut rest {
            Rest::Copy { segments, piece } => {
                if let Some(segment) = segments.front() {
                    // Its ends are in two more blocks.
                    let moved_blocks_max = MOVED_PIECE_BLOCKS.min(tuning.edit_blocks_max - 2);
                    let (offset, count) = piece_of(segment, moved_blocks_max);
                    *piece = count;
                    self.copy_piece(segment, offset, count);
                }
            }
            Rest::Unmap { volume, ranges, piece } => {
                *piece = unmap_piece(ranges);
                self.unmap(*volume, ranges.iter().take(*piece).copied());
            }
        }
        self.rest = Some(rest);
    }

    /// Leaves the rest of a piece after this many blocks to the next one.
    pub(crate) fn cut(&mut self, blocks: u64) {
        let Some(Rest::Copy { segments, piece }) = &mut self.rest else { return };
        let (Some(Step::Copy { from, to, .. }), Some(segment)) =
            (self.steps.first_mut(), segments.front())
        else {
            return;
        };
        let left = to.count.0.saturating_sub(blocks);
        if is_taken_from_its_end(segment) {
            from.0 += left;
            to.start.0 += left;
        }
        to.count = BlockCount(to.count.0 - left);
        *piece = to.count.0 * SECTORS_PER_BLOCK;
    }

    /// Returns whether pieces are taken from the end of what is copied.
    pub(crate) fn is_taken_from_its_end(&self) -> bool {
        match &self.rest {
            Some(Rest::Copy { segments, .. }) => {
                segments.front().is_some_and(is_taken_from_its_end)
            }
            _ => false,
        }
    }

    /// Takes the rest when the current piece joins a record: what continues once it is durable, if
    /// anything is left.
    pub(crate) fn take_rest(&mut self) -> Option<Box<Self>> {
        let mut rest = self.rest.take()?;
        rest.advance();
        if rest.is_done() {
            // When it completes, either all pieces must be durable, or none need be.
            self.fua = true;
            return None;
        }
        Some(Box::new(Self { rest: Some(rest), ..Self::default() }))
    }
}

/// Returns how many ranges go into the next piece: those that share a block stay together.
fn unmap_piece(ranges: &VecDeque<SectorRange>) -> usize {
    let mut count = ranges.len().min(UNMAP_PIECE_RANGES);
    while count < ranges.len().min(UNMAP_PIECE_RANGES + UNMAP_SHARED_RANGES) {
        let last = ranges[count - 1];
        let last_sector = last.start.0 + last.count.0 - 1;
        if ranges[count].start.0 / SECTORS_PER_BLOCK != last_sector / SECTORS_PER_BLOCK {
            break;
        }
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use block::{Sector, SectorCount};

    use super::*;

    fn pieces(mut segment: CopySegment) -> Vec<(u64, u64)> {
        let mut pieces = Vec::new();
        let source = segment.source_start.0;
        while segment.count.0 > 0 {
            let (offset, count) = piece_of(&segment, MOVED_PIECE_BLOCKS);
            assert!(count > 0 && offset + count <= segment.count.0, "{segment:?}");
            pieces.push((segment.source_start.0 - source + offset, count));
            let mut rest = Rest::of_copy(&[segment]);
            if let Rest::Copy { piece, .. } = &mut rest {
                *piece = count;
            }
            rest.advance();
            let Rest::Copy { segments, .. } = rest else { panic!("a copy") };
            segment.count.0 = 0;
            segment = segments.front().copied().unwrap_or(segment);
        }
        pieces
    }

    fn segment(from: u64, to: u64, count: u64) -> CopySegment {
        CopySegment {
            source: VolumeId(1),
            source_start: Sector(from),
            destination: VolumeId(1),
            destination_start: Sector(to),
            count: SectorCount(count),
        }
    }

    #[test]
    fn pieces_are_whole_blocks_and_partial_ends() {
        // Downwards, upwards, within one block, and moved.
        assert_eq!(pieces(segment(19, 3, 20)), [(0, 5), (5, 8), (13, 7)]);
        assert_eq!(pieces(segment(3, 11, 20)), [(13, 7), (5, 8), (0, 5)]);
        assert_eq!(pieces(segment(3, 19, 4)), [(0, 4)]);
        assert_eq!(pieces(segment(3, 11, 9)), [(5, 4), (0, 5)]);
        assert_eq!(pieces(segment(16, 8, 32)), [(0, 32)]);
        assert_eq!(pieces(segment(8, 16, 32)), [(0, 32)]);
        assert_eq!(pieces(segment(5000, 1, 3000)), [(0, 2047), (2047, 953)]);
        assert_eq!(pieces(segment(1, 500, 3000)), [(956, 2044), (0, 956)]);
    }

    #[test]
    fn pieces_cover_any_segment_exactly() {
        for (from, to) in (0..17).flat_map(|from| (0..17).map(move |to| (from, to))) {
            for count in [1, 2, 7, 8, 9, 16, 24, 31, 2048, 4097, 6000] {
                let mut pieces = pieces(segment(from, to, count));
                pieces.sort_unstable();
                let mut next = 0;
                for (offset, length) in pieces {
                    assert_eq!(offset, next, "{from} {to} {count}");
                    next += length;
                }
                assert!(next == count || from == to, "{from} {to} {count}");
            }
        }
    }
}
