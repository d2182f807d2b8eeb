//! Repair of stored blocks that are wrong on a device while other copies are right.
//!
//! It is unknown on which bytes of a group a block depends, and a device may be wrong in one block
//! of a group, and another device in the next one. So a repair changes only what makes the
//! requested block right: the rest of a copy is as good as that of the others, as far as can be
//! determined.
//!
//! Invariants:
//! 1. Only bytes of the group are changed, and of those only what makes a block wrong.
//! 2. One repair at a time: two groups may share a block, which is read, changed and written.
//! 3. No one else writes to the repaired blocks meanwhile: see [`right_copy`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use block::{FRAME_BYTES, Frame, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::{
    Brought, ChunkId, ChunkRow, Codec, Fingerprint, PLACE_UNIT_BYTES, Place, RecordPlaces, Shape,
};

use crate::chunks::bad_copies::BadCopies;
use crate::chunks::medium::Medium;
use crate::chunks::unpack::{block_in, covering_blocks};
use crate::sync::Mutex;

/// Repairs of copies.
#[derive(Default)]
pub(crate) struct Mends {
    /// Whether writing is allowed: not in a store opened read-only.
    is_allowed: AtomicBool,
    /// The number of locations that were not what was written, and were rewritten.
    count: AtomicU64,
    /// Chunks of which a copy was repaired when it was read, and their locations: for the list of
    /// damage.
    pub(crate) chunks: BadCopies<(u64, Place)>,
    one_at_a_time: Mutex<()>,
}

impl Mends {
    /// Allows writing, once the pool is in use.
    pub(crate) fn allow(&self) {
        self.is_allowed.store(true, Ordering::Relaxed);
    }

    /// Returns how many locations were repaired since the pool was opened.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a repair.
    pub(crate) fn mended(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether writing is allowed.
    pub(crate) fn are_allowed(&self) -> bool {
        self.is_allowed.load(Ordering::Relaxed)
    }
}

/// A stored block to find.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) chunk: ChunkId,
    /// The location of it or of its group.
    pub(crate) place: Place,
    pub(crate) shape: Shape,
    pub(crate) fingerprint: Fingerprint,
}

impl Wanted {
    /// The block of a row with a location.
    pub(crate) fn of_row(chunk: ChunkId, row: &ChunkRow) -> Self {
        Self { chunk, place: row.place, shape: row.shape(), fingerprint: row.fingerprint }
    }

    /// A block of a record.
    pub(crate) fn of_brought(places: RecordPlaces, brought: &Brought) -> Self {
        let Brought { chunk, fingerprint, payload_units, shape } = *brought;
        Self { chunk, place: places.payload(payload_units), shape, fingerprint }
    }

    fn stored_bytes(&self) -> usize {
        usize::from(self.shape.stored_units) * PLACE_UNIT_BYTES as usize
    }

    /// Returns whether such a block is possible.
    fn is_possible(&self, medium: &Medium) -> bool {
        medium.contains(self.place, self.stored_bytes() as u64)
            && self.shape.codec != Codec::Alias
            && (self.shape.codec != Codec::Raw
                || self.shape.stored_units == Shape::RAW.stored_units
                    && self.place.offset_units.is_multiple_of(UNITS_PER_BLOCK))
    }

    /// Returns whether these are the bytes of its group, as far as this block depends on them.
    pub(crate) fn is_right(&self, medium: &Medium, stored: &[u8]) -> bool {
        self.right_in(medium, stored).is_some()
    }

    /// Returns the bytes of its group from the first copy in which the block is right.
    pub(crate) fn right_bytes(&self, medium: &Medium) -> Option<Vec<u8>> {
        if !self.is_possible(medium) {
            return None;
        }
        let (count, _) = covering_blocks(self.place.offset_units, self.shape.stored_units);
        let read = |copy| read_blocks(medium, self.place.block_start(), count, copy);
        let mut copies = (0..medium.disk.copies()).filter_map(read);
        let found = copies.find(|blocks| self.is_right(medium, in_blocks(self, blocks)))?;
        Some(in_blocks(self, &found).to_vec())
    }

    /// Copies from a right group what makes a wrong one right, and leaves what makes no difference.
    pub(crate) fn make_right(&self, medium: &Medium, wrong: &mut [u8], right: &[u8]) {
        let before = wrong.to_vec();
        wrong.copy_from_slice(right);
        if self.shape.group_blocks <= 1 {
            return;
        }
        let unit = PLACE_UNIT_BYTES as usize;
        let differs = |at: &usize| before[at * unit..][..unit] != right[at * unit..][..unit];
        let count = right.len() / unit;
        let mut at = 0;
        while let Some(first) = (at..count).find(differs) {
            at = (first..count).find(|at| !differs(at)).unwrap_or(count);
            let piece = first * unit..at * unit;
            wrong[piece.clone()].copy_from_slice(&before[piece.clone()]);
            if self.right_in(medium, wrong).is_none() {
                wrong[piece.clone()].copy_from_slice(&right[piece]);
            }
        }
    }

    /// Extracts the block from the bytes of its group, if it is what was written.
    fn right_in(&self, medium: &Medium, stored: &[u8]) -> Option<Frame> {
        block_in(stored, self.shape).filter(|frame| medium.is_intact(frame, self.fingerprint))
    }
}

/// The state of all copies of a block.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// The block, if any copy is right.
    pub(crate) frame: Option<Frame>,
    /// How many copies were repaired.
    pub(crate) mended: u64,
}

/// Returns the block from any copy that is right; repairs wrong ones, if writing is allowed. `None`
/// if no copy is right, or there is only the one that was read.
///
/// The caller has found that what was read is not what was written, and makes sure that there are
/// no writes to the location meanwhile: its whole record was durable when its row was read, and its
/// segment is not reused.
#[cold]
pub(crate) fn right_copy(medium: &Medium, wanted: &Wanted) -> Option<Frame> {
    let copies = mend_copies(medium, wanted);
    if copies.mended > 0 {
        medium.mends.chunks.note((wanted.chunk.0, wanted.place));
    }
    copies.frame
}

/// The same as [`right_copy`], for callers that report it.
#[cold]
pub(crate) fn mend_copies(medium: &Medium, wanted: &Wanted) -> Copies {
    let mut copies = Copies::default();
    let count = medium.disk.copies();
    if count <= 1 || !wanted.is_possible(medium) {
        return copies;
    }
    let start = wanted.place.block_start();
    let (blocks_count, _) = covering_blocks(wanted.place.offset_units, wanted.shape.stored_units);
    let mut right: Option<Vec<u8>> = None;
    let mut wrong = Vec::new();
    for copy in 0..count {
        let blocks = read_blocks(medium, start, blocks_count, copy);
        let right_in = |blocks: &Vec<u8>| wanted.right_in(medium, in_blocks(wanted, blocks));
        let found = blocks.as_ref().and_then(right_in);
        match (found, blocks) {
            (Some(frame), Some(blocks)) => {
                copies.frame.get_or_insert(frame);
                right.get_or_insert(blocks);
            }
            _ => wrong.push(copy),
        }
    }
    if let Some(right) = right
        && medium.mends.are_allowed()
    {
        let mend = |copy: &u32| mend(medium, wanted, *copy, &right);
        copies.mended = wrong.iter().filter(|copy| mend(copy)).count() as u64;
    }
    copies
}

/// Returns the bytes of a group from its blocks.
fn in_blocks<'a>(wanted: &Wanted, blocks: &'a [u8]) -> &'a [u8] {
    let (_, skip) = covering_blocks(wanted.place.offset_units, wanted.shape.stored_units);
    &blocks[skip..skip + wanted.stored_bytes()]
}

/// Reads blocks from one copy. Must begin with the first block of those that belong together: which
/// device has a copy of the following ones is undefined.
fn read_blocks(medium: &Medium, place: Place, count: usize, copy: u32) -> Option<Vec<u8>> {
    let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
    medium.disk.read_copy(place, copy, &mut frames).ok()?;
    let mut bytes = Vec::with_capacity(count * FRAME_BYTES);
    frames.iter().for_each(|frame| bytes.extend_from_slice(&frame[..]));
    Some(bytes)
}

/// Repairs a copy with the blocks of a right one. Returns whether it was wrong and is right now.
fn mend(medium: &Medium, wanted: &Wanted, copy: u32, right: &[u8]) -> bool {
    let _one = medium.mends.one_at_a_time.lock();
    let start = wanted.place.block_start();
    let mut held = right.to_vec();
    // Unreadable blocks belong to no record, and are replaced from the good copy. The first block
    // may also contain another group, which can be read.
    let whole = read_blocks(medium, start, right.len() / FRAME_BYTES, copy);
    let is_read = whole.is_some();
    let found = whole.or_else(|| read_blocks(medium, start, 1, copy)).unwrap_or_default();
    held[..found.len()].copy_from_slice(&found);
    let (_, skip) = covering_blocks(wanted.place.offset_units, wanted.shape.stored_units);
    let group = &mut held[skip..skip + wanted.stored_bytes()];
    let is_wrong = wanted.right_in(medium, group).is_none();
    if is_wrong {
        wanted.make_right(medium, group, in_blocks(wanted, right));
    }
    if !is_wrong && is_read {
        // Another thread was faster.
        return false;
    }
    let frames: Vec<Frame> =
        held.chunks_exact(FRAME_BYTES).map(|block| FrameMut::from_bytes(block).freeze()).collect();
    let is_mended = medium.disk.mend(start, copy, &frames).is_ok();
    if is_mended {
        medium.mends.mended();
    }
    is_mended
}
