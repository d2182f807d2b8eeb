//! Reading stored blocks one after another, where whole groups are read and unpacked once: for
//! recovery, reclaim and checks.

use block::{BLOCK_BYTES, Frame, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::{Codec, PLACE_UNIT_BYTES, Place, Shape};

use crate::StoreError;
use crate::medium::Medium;
use crate::pack::{covering_blocks, stored_bytes, unpack};

/// Reads blocks; remembers the group that it read last.
#[derive(Default)]
pub(crate) struct GroupReader {
    held: Option<(Place, Shape)>,
    stored: Vec<u8>,
    plain: Vec<u8>,
}

impl GroupReader {
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
            let mut frame = [FrameMut::stale()];
            medium.disk.read(medium.geometry().offset_bytes(place), &mut frame)?;
            let [frame] = frame;
            return Ok(Some(frame.freeze()));
        }
        let group = (place, Shape { group_index: 0, ..shape });
        if self.held != Some(group) {
            self.held = None;
            if !self.read_group(medium, place, shape)? {
                return Ok(None);
            }
            self.held = Some(group);
        }
        let start = usize::from(shape.group_index) * BLOCK_BYTES as usize;
        let block = self.plain.get(start..start + BLOCK_BYTES as usize);
        Ok(block.map(|block| FrameMut::from_bytes(block).freeze()))
    }

    fn read_group(
        &mut self,
        medium: &Medium,
        place: Place,
        shape: Shape,
    ) -> Result<bool, StoreError> {
        let (count, skip) = covering_blocks(place.offset_units, shape.stored_units);
        let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
        let offset = medium.geometry().offset_bytes(place) - skip as u64;
        medium.disk.read(offset, &mut frames)?;
        let frames: Vec<Frame> = frames.into_iter().map(FrameMut::freeze).collect();
        stored_bytes(&frames, skip, shape, &mut self.stored);
        Ok(unpack(&self.stored, shape, &mut self.plain))
    }
}
