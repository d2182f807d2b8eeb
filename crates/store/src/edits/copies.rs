//! Planning a copy.

use block::request::limits::COPY_SEGMENTS_MAX;
use block::{
    BlockRange, CopySegment, Frame, SECTORS_PER_BLOCK, Sector, SectorCount, SectorRange,
    VolumeError, VolumeId,
};

use crate::edits::edit::{Edit, Sizes, Step};
use crate::edits::put::Put;
use crate::edits::rest::{Rest, is_in_place};

impl Edit {
    pub(crate) fn plan_copy(
        segments: &[CopySegment],
        sizes: &dyn Sizes,
    ) -> Result<Edit, VolumeError> {
        if segments.len() > COPY_SEGMENTS_MAX {
            return Err(VolumeError::TooLong);
        }
        let mut edit = Edit::default();
        for segment in segments {
            let from = SectorRange { start: segment.source_start, count: segment.count };
            edit.check(segment.source, from, sizes)?;
            edit.check(segment.destination, destination_of(segment), sizes)?;
        }
        edit.named.clear();
        let moved: u64 = segments.iter().map(moved_blocks).sum();
        let staged = moved + 2 * segments.len() as u64 > sizes.tuning().edit_blocks_max;
        if staged && sizes.tuning().is_too_long_to_stage(segments.iter().map(moved_blocks)) {
            // One commit that maps all of it would take long.
            edit.rest = Some(Rest::of_copy(segments));
            return Ok(edit);
        }
        let part_blocks_max = staged.then_some(sizes.tuning().part_blocks_max);
        for (index, segment) in segments.iter().enumerate() {
            if segment.count.0 > 0 && !is_in_place(segment) {
                edit.copy_segment(&segments[..=index], destination_of(segment), part_blocks_max);
            }
        }
        edit.stage_segments(segments);
        edit.copied = segments.to_vec();
        Ok(edit)
    }

    /// Adds the steps of a piece of a segment: this many sectors, from a given one on.
    pub(crate) fn copy_piece(&mut self, segment: &CopySegment, offset: u64, count: u64) {
        let piece = CopySegment {
            source_start: Sector(segment.source_start.0 + offset),
            destination_start: Sector(segment.destination_start.0 + offset),
            count: SectorCount(count),
            ..*segment
        };
        self.copy_segment(&[piece], destination_of(&piece), None);
    }

    /// Adds the steps of the last of `segments`, which is staged in parts if these have a size.
    fn copy_segment(
        &mut self,
        segments: &[CopySegment],
        to: SectorRange,
        part_blocks_max: Option<u64>,
    ) {
        let segment = segments[segments.len() - 1];
        let (edges, inner) = if moved_blocks(&segment) == 0 {
            let (edges, inner) = Self::split_edges(to);
            if inner.count.0 > 0 {
                // Sectors are shifted by a constant, and the phase is the same: so blocks are, too.
                let offset = inner.start.sector().0 - to.start.0;
                let from = Sector(segment.source_start.0 + offset).block();
                let (source, destination) = (segment.source, segment.destination);
                self.steps.push(Step::Copy { source, from, destination, to: inner });
            }
            (edges, BlockRange::default())
        } else if part_blocks_max.is_some() {
            Self::split_edges(to)
        } else {
            (vec![to], BlockRange::default())
        };
        self.stage(segments, inner, part_blocks_max.unwrap_or(u64::MAX));
        for edge in edges {
            let blocks = edge.covering_blocks();
            // They get memory of their own when their content was read.
            let frames = vec![Frame::zeros(); blocks.count.0 as usize];
            let volume = segment.destination;
            self.steps.push(Step::Put(Put::new(volume, blocks.start, frames)));
            let first = blocks.start.sector().0;
            for sector in first..blocks.end().sector().0 {
                let origin = origin_of(segments, (volume, Sector(sector)));
                self.gather_sector(sector - first, origin);
            }
        }
    }
}

fn destination_of(segment: &CopySegment) -> SectorRange {
    SectorRange { start: segment.destination_start, count: segment.count }
}

/// Returns how many blocks a segment must move, because its ends are not aligned alike.
pub(crate) fn moved_blocks(segment: &CopySegment) -> u64 {
    let phase = |sector: Sector| sector.0 % SECTORS_PER_BLOCK;
    if phase(segment.source_start) == phase(segment.destination_start) {
        return 0;
    }
    segment.count.0.div_ceil(SECTORS_PER_BLOCK) + 1
}

/// Returns where the content of a sector was before the first of `segments`, given where it is
/// after the last of them.
pub(crate) fn origin_of(
    segments: &[CopySegment],
    wanted: (VolumeId, Sector),
) -> (VolumeId, Sector) {
    let (mut volume, mut sector) = wanted;
    for segment in segments.iter().rev() {
        let start = segment.destination_start.0;
        let covers = (start..start + segment.count.0).contains(&sector.0);
        if volume == segment.destination && covers {
            sector = Sector(segment.source_start.0 + (sector.0 - start));
            volume = segment.source;
        }
    }
    (volume, sector)
}
