//! Reading stored blocks sequentially, where each group is read and decompressed once: for
//! recovery, reclaim, scrubbing and checks.

use std::sync::Arc;

use block::{Frame, FrameMut};
use format::geometry::UNITS_PER_BLOCK;
use format::{Codec, PLACE_UNIT_BYTES, Place, Shape};

use crate::StoreError;
use crate::chunks::medium::Medium;
use crate::chunks::unpack::{Unpacked, covering_blocks};

/// Reads blocks, and remembers the last group.
#[derive(Default)]
pub(crate) struct GroupReader {
    group: Unpacked<Place>,
    /// What was read ahead.
    ahead: Image,
}

/// Contiguous blocks read from the device, and the location of the first.
#[derive(Clone, Default)]
pub(crate) struct Image {
    pub(crate) place: Place,
    pub(crate) frames: Arc<[Frame]>,
}

impl Image {
    /// Returns whether it has blocks of this segment.
    pub(crate) fn is_of(&self, segment: u32) -> bool {
        self.place.segment == segment && !self.frames.is_empty()
    }
}

impl GroupReader {
    /// Reads `count` blocks ahead with one operation, to serve later reads. If that fails, each is
    /// read separately.
    pub(crate) fn read_ahead(&mut self, medium: &Medium, place: Place, count: usize) {
        let frames = read_frames(medium, place, count).unwrap_or_default().into();
        self.ahead = Image { place, frames };
    }

    /// Serves reads from these blocks.
    pub(crate) fn over(image: &Image) -> Self {
        Self { ahead: image.clone(), ..Self::default() }
    }

    fn frames(
        &self,
        medium: &Medium,
        place: Place,
        count: usize,
    ) -> Result<Vec<Frame>, StoreError> {
        let Image { place: start, frames: ahead } = &self.ahead;
        let behind = place.offset_units.checked_sub(start.offset_units);
        let held = behind.filter(|_| place.segment == start.segment).and_then(|behind| {
            let first = (behind / UNITS_PER_BLOCK) as usize;
            ahead.get(first..first.checked_add(count)?)
        });
        match held {
            Some(frames) => Ok(frames.to_vec()),
            None => read_frames(medium, place, count),
        }
    }

    /// Reads a block stored at a place; `None` if there is no such block.
    pub(crate) fn read(
        &mut self,
        medium: &Medium,
        place: Place,
        shape: Shape,
    ) -> Result<Option<Frame>, StoreError> {
        let bytes = u64::from(shape.stored_units) * PLACE_UNIT_BYTES;
        if !medium.contains(place, bytes) {
            return Ok(None);
        }
        if shape.codec == Codec::Raw {
            if !place.offset_units.is_multiple_of(UNITS_PER_BLOCK) {
                return Ok(None);
            }
            return Ok(self.frames(medium, place, 1)?.pop());
        }
        if !self.group.holds(&place, shape) {
            let (count, skip) = covering_blocks(place.offset_units, shape.stored_units);
            let frames = self.frames(medium, place.block_start(), count)?;
            // Its other blocks are needed next.
            self.group.unpack(place, shape, shape.group_blocks, &frames, skip);
        }
        Ok(self.group.block(shape))
    }
}

fn read_frames(medium: &Medium, place: Place, count: usize) -> Result<Vec<Frame>, StoreError> {
    let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
    medium.disk.read_patiently(place, &mut frames)?;
    Ok(frames.into_iter().map(FrameMut::freeze).collect())
}
