//! Upgrading a pool of an earlier version of the format, while it is used.
//!
//! 1. A superblock says that the pool is of the new version, over the older copy, then over the
//!    other. A crash in between leaves a pool of either version, with the same content.
//! 2. Records and checkpoints are written as the new version has them, and those of before are read
//!    as they are.
//! 3. What checkpoints of before have written is written anew, some at a time, until no segment has
//!    metadata that stands once.
//!
//! A pool of version 3 that lacks some of its features gets them in the same way: labels before
//! step 1, and after it, by the next checkpoint, leaves and pages where the one before has the
//! key-value space and the segment table in streams.
//!
//! Step 1 takes as long as two writes. Step 3 is what compaction does (`compact`), and goes on as
//! that does: beside the hosts, in small turns, and after a restart from what the segment table
//! says. It waits while the pool has no room for it.
//!
//! Nothing of the new version is written before a superblock says that the pool is of it: earlier
//! programs refuse that, and never read what they would take for damage.

use format::{FormatVersion, Superblock};

use crate::StoreError;
use crate::checkpoint::holes::KEPT_SEGMENTS;
use crate::upkeep::Store;
use crate::world::World;
use crate::writer::Writer;

/// Has a superblock say that the pool is of the latest version, with all of its features, if it
/// does not yet. From version 2 on it goes on in this incarnation, and checkpoints go on in a new
/// segment: the one that they are in has nothing in its second half that is a copy.
pub(crate) fn to_latest(superblock: &mut Superblock, incarnation: u64) {
    if superblock.version < FormatVersion::default() {
        superblock.version = FormatVersion::default();
        superblock.incarnation = incarnation;
        (superblock.metadata_segment, superblock.metadata_block) = (0, 0);
    }
    superblock.features = superblock.features.with_known();
}

impl World {
    /// A superblock says that the pool, which was of this version, is of the latest one with all of
    /// its features.
    pub(crate) fn upgraded(&self, writer: &mut Writer, version: FormatVersion) {
        self.medium.upgraded();
        writer.state.config.divide();
        writer.state.segments.divide();
        if version == FormatVersion::default() {
            return;
        }
        writer.state.segments.upgraded(self.medium.geometry());
        writer.next_checkpoint.upgraded(self.medium.metadata_blocks());
        writer.note_holes(self, 0);
    }
}

impl Writer {
    /// Whether the key-value space is to be in leaves or the segment table in pages, and is in a
    /// stream, and a checkpoint has room to change that.
    pub(crate) fn is_dividing_due(&mut self, world: &World) -> bool {
        let needed = |writer: &Self| writer.claim(world).segments.saturating_add(KEPT_SEGMENTS);
        let segments = &self.state.segments;
        !self.has_failed()
            && (self.state.config.is_to_be_divided() || segments.to_be_divided_bytes().is_some())
            && needed(self) <= self.state.segments.free_for_metadata()
    }
}

impl Store {
    /// Makes the pool one of the latest version, if it is of an earlier one; `false` if it is that
    /// already. Durable when it returns. Earlier programs don't read it any more.
    ///
    /// # Errors
    /// Those of the device: the pool is of either version then.
    pub fn upgrade(&self) -> Result<bool, StoreError> {
        let mut checkpointer = self.checkpointing.lock();
        let mut superblock = checkpointer.superblock().clone();
        if superblock.is_latest() {
            return Ok(false);
        }
        let version = superblock.version;
        superblock.sequence += 1;
        to_latest(&mut superblock, self.incarnation().number);
        if self.has_failed() {
            return Err(StoreError::Volume(block::VolumeError::WriteFailed));
        }
        self.world.medium.disk.mend_labels(&superblock);
        // Meanwhile the log goes on as before: its records are of the earlier version.
        let written = checkpointer.write_superblock(&self.world.medium, superblock);
        let mut writer = self.writer.lock();
        if let Err(error) = written {
            // Which version the next start finds is not known: nothing of either may follow.
            writer.fail();
            return Err(error);
        }
        self.world.upgraded(&mut writer, version);
        Ok(true)
    }
}
