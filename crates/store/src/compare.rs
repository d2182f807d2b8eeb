//! The comparison of COMPARE AND WRITE.

use block::{
    BLOCK_BYTES, BlockNumber, DataOut, Frame, SECTOR_BYTES, SectorRange, VolumeError, VolumeId,
};

/// What COMPARE AND WRITE expects.
#[derive(Debug)]
pub(crate) struct Compare {
    pub(crate) volume: VolumeId,
    pub(crate) range: SectorRange,
    pub(crate) expected: DataOut,
}

impl Compare {
    /// Compares what was read with what is expected; the first byte that differs is the error.
    pub(crate) fn run(
        &self,
        blocks: &[(&(VolumeId, BlockNumber), &Frame)],
    ) -> Result<(), VolumeError> {
        let start_bytes = self.range.start.0 * SECTOR_BYTES;
        let mut offset = 0;
        while offset < self.expected.len() {
            let at = start_bytes + offset as u64;
            let block = BlockNumber(at / BLOCK_BYTES);
            let within = (at % BLOCK_BYTES) as usize;
            let piece = self.expected.slice_from(offset);
            let length = piece.len().min(BLOCK_BYTES as usize - within);
            let wanted = (self.volume, block);
            let Ok(found) = blocks.binary_search_by_key(&&wanted, |(key, _)| key) else {
                return Err(VolumeError::Medium { sector: block.sector() });
            };
            let held = &blocks[found].1[within..within + length];
            if let Some(at) = held.iter().zip(piece).position(|(a, b)| a != b) {
                return Err(VolumeError::Miscompare { offset_bytes: offset + at });
            }
            offset += length;
        }
        Ok(())
    }
}
