//! Upgrading a pool of an earlier version of the format, while it is in use.
//!
//! 1. A superblock with the new version is written, over the older copy and then over the other. A
//!    crash in between leaves a pool of either version, with the same content.
//! 2. Records and checkpoints are written in the new version, and earlier ones are read as they
//!    are.
//! 3. What earlier checkpoints have written is rewritten, some at a time, until no segment has
//!    metadata with one copy.
//!
//! A pool of version 3 that lacks some features gets them in the same way: labels before step 1,
//! and after it, with the next checkpoint, leaves and pages if the previous one has the key-value
//! space and the segment table in streams.
//!
//! Step 1 takes as long as two writes. Step 3 is done by compaction (`compact`), and proceeds like
//! that: in parallel with the hosts, in small turns, and after a restart based on the segment
//! table. It waits while the pool has no room for it.
//!
//! Nothing of the new version is written before a superblock says so: earlier programs refuse that,
//! and never read what they would take for damage.

use format::{FormatVersion, Superblock};

use crate::StoreError;
use crate::checkpoint::holes::KEPT_SEGMENTS;
use crate::upkeep::Store;
use crate::world::World;
use crate::writer::Writer;

/// Changes a superblock to the latest version, with all of its features, if it does not have them
/// yet. If it is of version 2, the incarnation stays, and checkpoints continue in a new segment:
/// the current one has no second copies in its second half.
pub(crate) fn to_latest(superblock: &mut Superblock, incarnation: u64) {
    if superblock.version < FormatVersion::default() {
        superblock.version = FormatVersion::default();
        superblock.incarnation = incarnation;
        (superblock.metadata_segment, superblock.metadata_block) = (0, 0);
    }
    superblock.features = superblock.features.with_known();
}

impl World {
    /// Switches the state of a pool of this version to the latest one with all of its features,
    /// after a superblock says so.
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
    /// Returns whether the key-value space should be in leaves, or the segment table in pages, but
    /// is in a stream, and a checkpoint has room to change that.
    pub(crate) fn is_dividing_due(&mut self, world: &World) -> bool {
        let needed = |writer: &Self| writer.claim(world).segments.saturating_add(KEPT_SEGMENTS);
        let segments = &self.state.segments;
        !self.has_failed()
            && (self.state.config.is_to_be_divided() || segments.to_be_divided_bytes().is_some())
            && needed(self) <= self.state.segments.free_for_metadata()
    }
}

impl Store {
    /// Upgrades the pool to the latest version; returns `false` if it has that already. Durable
    /// when it returns. Earlier programs can no longer read it.
    ///
    /// # Errors
    /// Those of the device: the pool may then have either version.
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
        // Meanwhile the log continues as before: its records are of the earlier version.
        let written = checkpointer.write_superblock(&self.world.medium, superblock);
        let mut writer = self.writer.lock();
        if let Err(error) = written {
            // It is unknown which version the next start finds: nothing of either may follow.
            writer.fail();
            return Err(error);
        }
        self.world.upgraded(&mut writer, version);
        Ok(true)
    }
}
