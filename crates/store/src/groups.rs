//! Reading stored blocks one after another, where whole groups are read and unpacked once: for
//! recovery, reclaim, scrubbing and checks.

use block::{BLOCK_BYTES, Frame, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::{Codec, PLACE_UNIT_BYTES, Place, Shape};

use crate::StoreError;
use crate::medium::Medium;
use crate::pack::{Unpacked, covering_blocks};

/// Reads blocks; remembers the group that it read last.
#[derive(Default)]
pub(crate) struct GroupReader {
    group: Unpacked<Place>,
    /// What was read ahead: the first byte, and the blocks from there on.
    ahead: (u64, Vec<Frame>),
}

impl GroupReader {
    /// Reads `count` blocks from a byte of the device on with one operation: what stands in there
    /// is taken from there. Where that fails, each is read by itself.
    pub(crate) fn read_ahead(&mut self, medium: &Medium, offset_bytes: u64, count: usize) {
        let frames = read_frames(medium, offset_bytes, count).unwrap_or_default();
        self.ahead = (offset_bytes, frames);
    }

    fn frames(
        &self,
        medium: &Medium,
        offset_bytes: u64,
        count: usize,
    ) -> Result<Vec<Frame>, StoreError> {
        let (start, ahead) = &self.ahead;
        let held = offset_bytes.checked_sub(*start).and_then(|behind| {
            let first = (behind / BLOCK_BYTES) as usize;
            ahead.get(first..first.checked_add(count)?)
        });
        match held {
            Some(frames) => Ok(frames.to_vec()),
            None => read_frames(medium, offset_bytes, count),
        }
    }

    /// A block that is stored at a place; `None` where there is no such block.
    pub(crate) fn read(
        &mut self,
        medium: &Medium,
        place: Place,
        shape: Shape,
    ) -> Result<Option<Frame>, StoreError> {
        let bytes = u64::from(shape.stored_units) * PLACE_UNIT_BYTES;
        if !medium.geometry().contains(place, bytes) {
            return Ok(None);
        }
        if shape.codec == Codec::Raw {
            if !place.offset_units.is_multiple_of(UNITS_PER_BLOCK) {
                return Ok(None);
            }
            let offset_bytes = medium.geometry().offset_bytes(place);
            return Ok(self.frames(medium, offset_bytes, 1)?.pop());
        }
        if !self.group.holds(&place, shape) {
            let (count, skip) = covering_blocks(place.offset_units, shape.stored_units);
            let offset_bytes = medium.geometry().offset_bytes(place) - skip as u64;
            let frames = self.frames(medium, offset_bytes, count)?;
            self.group.unpack(place, shape, &frames, skip);
        }
        Ok(self.group.block(shape))
    }
}

fn read_frames(medium: &Medium, offset_bytes: u64, count: usize) -> Result<Vec<Frame>, StoreError> {
    let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
    medium.disk.read_patiently(offset_bytes, &mut frames)?;
    Ok(frames.into_iter().map(FrameMut::freeze).collect())
}
