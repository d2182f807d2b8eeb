//! The comparison of COMPARE AND WRITE.

use block::{
    BLOCK_BYTES, BlockNumber, DataOut, Frame, SECTOR_BYTES, SectorRange, VolumeError, VolumeId,
};
use format::{Compared, Entry, Keys};

use crate::edits::edit::Edit;

/// The data that COMPARE AND WRITE expects.
#[derive(Debug)]
pub(crate) struct Compare {
    pub(super) volume: VolumeId,
    pub(super) range: SectorRange,
    pub(super) expected: DataOut,
    /// The log entry for it, if it is a host's command.
    pub(crate) compared: Option<Box<Compared>>,
}

impl Compare {
    /// Returns what an earlier command wrote whose response may have been lost, if the blocks that
    /// were read contain exactly what this one would write.
    pub(crate) fn done_before(
        &self,
        blocks: impl Iterator<Item = Frame>,
        keys: &Keys,
    ) -> Option<&Compared> {
        let compared = self.compared.as_deref()?;
        let start = self.range.start.offset_in_block_bytes();
        let mut bytes = Vec::new();
        blocks.for_each(|block| bytes.extend_from_slice(&block[..]));
        let held = bytes.get(start..start + self.expected.len())?;
        (keys.fingerprint(held) == compared.new).then_some(compared)
    }

    /// Compares what was read with what is expected; the error has the first byte that differs.
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

impl Edit {
    /// Takes the log entry of a host's COMPARE AND WRITE. To be taken once, with its steps.
    pub(crate) fn take_compared(&mut self) -> Option<Entry> {
        self.compare.as_mut()?.compared.take().map(Entry::Compared)
    }
}
