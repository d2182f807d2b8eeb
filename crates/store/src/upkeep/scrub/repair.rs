//! Rewriting a damaged chunk from memory.

use block::Frame;
use format::geometry::UNITS_PER_BLOCK;
use format::{ChunkId, Entry, Fingerprint};

use super::{What, findings::Findings};
use crate::StoreError;
use crate::log::relocation::Relocation;
use crate::upkeep::Store;

/// The content of a chunk that is damaged on the device.
pub(super) struct Rescued {
    pub(super) id: ChunkId,
    pub(super) fingerprint: Fingerprint,
    pub(super) frame: Frame,
}

impl Store {
    /// Commits chunks to a new location, as reclaim does. If the pool has no room, they stay as
    /// they are, and the next pass tries again.
    pub(super) fn put_back(&self, rescued: Vec<Rescued>) -> Result<(), StoreError> {
        for batch in rescued.chunks(self.options.tuning.move_blocks_max) {
            let entries = batch.iter().enumerate().map(|(index, chunk)| Entry::Relocate {
                first: chunk.id,
                payload_units: index as u32 * UNITS_PER_BLOCK,
                fingerprints: vec![chunk.fingerprint],
            });
            let frames = batch.iter().map(|chunk| chunk.frame.clone()).collect();
            let entries = entries.collect();
            // One block of a group is written separately, uncompressed.
            let relocation = Relocation { entries, frames, ..Relocation::default() };
            if !self.relocate(relocation)? {
                return Ok(());
            }
            let scrub = &mut *self.scrub.lock();
            let findings: &mut Findings = &mut scrub.findings;
            batch.iter().for_each(|chunk| findings.repaired(What::Chunk(chunk.id.0)));
            scrub.status.repairs += batch.len() as u64;
        }
        Ok(())
    }
}
