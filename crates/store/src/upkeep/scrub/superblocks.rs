//! The superblocks, the labels beside them, and the streams that they name.

use format::Superblock;
use format::label::LABEL_OFFSETS_BYTES;
use format::page::StreamRef;
use format::superblock::SUPERBLOCK_OFFSETS_BYTES;

use super::{Repair, Step, What};
use crate::StoreError;

/// Blocks of superblocks and labels.
pub(super) const ROOT_BLOCKS: u64 =
    (SUPERBLOCK_OFFSETS_BYTES.len() + LABEL_OFFSETS_BYTES.len()) as u64;

impl Step<'_> {
    /// Compares both copies with what memory knows of them, and then those of the label. The store
    /// that is open has written both superblocks whole when it took its epoch.
    ///
    /// On several devices each of them has to have the newest whole.
    ///
    /// A bad copy is written over in its place, so a crash meanwhile leaves it as bad as it is: the
    /// newest once more as it was, the older one as the newest's successor, which says the same.
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
            // Where the device refuses it, the store goes on with the other one.
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

    /// The labels of the device, which says by them that it is of this pool.
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

    /// Each checkpoint writes the streams anew from memory.
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
