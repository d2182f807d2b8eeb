//! The superblocks, the labels, and the streams.

use format::Superblock;
use format::label::LABEL_OFFSETS_BYTES;
use format::page::StreamRef;
use format::superblock::SUPERBLOCK_OFFSETS_BYTES;

use super::{Repair, Step, What};
use crate::StoreError;

/// The number of blocks of superblocks and labels.
pub(super) const ROOT_BLOCKS: u64 =
    (SUPERBLOCK_OFFSETS_BYTES.len() + LABEL_OFFSETS_BYTES.len()) as u64;

impl Step<'_> {
    /// Compares both copies of the superblock with what memory knows of them, and then those of the
    /// label. The open store has written both superblocks when it began its epoch.
    ///
    /// On several devices each of them must have the newest one.
    ///
    /// A bad copy is overwritten in place, so a crash meanwhile leaves it bad: the newest with its
    /// own content, the older one with the newest's successor, which has the same content.
    pub(super) fn superblocks(&mut self) -> Result<(), StoreError> {
        let medium = &self.store.world.medium;
        let newest = self.checkpointer.superblock().clone();
        let copies = medium.disk.root_copies();
        self.count(SUPERBLOCK_OFFSETS_BYTES.len() as u64);
        for age in 0..2 {
            let sequence = newest.sequence - age;
            let copy = (sequence % 2) as usize;
            if matches!(&copies[copy], Ok(found) if found.sequence == sequence) {
                continue;
            }
            let next = Superblock { sequence: newest.sequence + age, ..newest.clone() };
            let written = medium.disk.mend_root(copy, &next).is_ok();
            if written && age > 0 {
                self.checkpointer.wrote(next);
            }
            let offset_bytes = SUPERBLOCK_OFFSETS_BYTES[copy];
            // If the device refuses it, the store continues with the other one.
            let repair = if written { Repair::Done } else { Repair::Impossible };
            self.find(What::Superblock(copy as u8), offset_bytes, repair);
        }
        let (copy, mended) = medium.disk.mend_roots();
        for is_mended in mended {
            let repair = if is_mended { Repair::Done } else { Repair::Impossible };
            self.find(What::Superblock(copy as u8), SUPERBLOCK_OFFSETS_BYTES[copy], repair);
        }
        self.labels();
        Ok(())
    }

    /// Checks the labels of the device, which identify it as a part of this pool.
    fn labels(&mut self) {
        let root = self.checkpointer.superblock().clone();
        if root.features.has_labels() {
            self.count(LABEL_OFFSETS_BYTES.len() as u64);
        }
        for bad in self.store.world.medium.disk.mend_labels(&root) {
            let repair = if bad.mended { Repair::Done } else { Repair::Impossible };
            self.find(What::Label(bad.copy), bad.offset_bytes, repair);
        }
    }

    /// Each checkpoint rewrites the streams from memory.
    pub(super) fn streams(&mut self) {
        let superblock = self.checkpointer.superblock();
        let streams = [superblock.config, superblock.pending, superblock.segments];
        for (index, stream) in streams.into_iter().enumerate() {
            self.stream(index as u8, stream);
        }
    }

    fn stream(&mut self, index: u8, first: StreamRef) {
        if let Some(place) = self.pieces(first) {
            let offset_bytes = self.offset_bytes(place);
            self.find(What::Stream(index), offset_bytes, Repair::Underway);
        }
    }
}
