//! What outlives a checkpoint for the next one, and the superblocks.

use std::collections::BTreeSet;
use std::sync::Weak;

use format::{Geometry, Place, Superblock};

use crate::StoreError;
use crate::chunks::medium::Medium;
use crate::space::readers::ReaderToken;

/// What outlives a checkpoint for the next one.
pub(crate) struct Checkpointer {
    superblock: Superblock,
    /// The pieces of the streams that the superblock names.
    pub(crate) streams: [Vec<(Place, u32)>; 3],
    /// How the pool was divided when the superblock was written.
    stored_geometry: Geometry,
    /// Who may still read the image of an earlier checkpoint.
    pub(crate) earlier_images: Vec<Weak<ReaderToken>>,
    /// Segments that have refused a part of a checkpoint since the pool was opened: what is free
    /// in them is no hole.
    pub(crate) refused: BTreeSet<u32>,
}

impl Checkpointer {
    pub(crate) fn new(superblock: Superblock) -> Self {
        let stored_geometry = superblock.geometry;
        let (streams, earlier_images) = Default::default();
        let refused = BTreeSet::new();
        Self { superblock, streams, stored_geometry, earlier_images, refused }
    }

    /// The superblock as it is on the medium.
    pub(crate) fn stored_superblock(&self) -> Superblock {
        Superblock {
            geometry: self.stored_geometry,
            capacity_bytes: self.superblock.capacity_bytes.min(self.stored_geometry.pool_bytes()),
            ..self.superblock.clone()
        }
    }

    /// Whether somebody reads the image of an earlier checkpoint.
    pub(crate) fn is_earlier_image_read(&self) -> bool {
        self.earlier_images.iter().any(|token| token.strong_count() > 0)
    }

    pub(crate) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// The next checkpoint describes a pool of this capacity.
    pub(crate) fn grow(&mut self, capacity_bytes: u64, geometry: Geometry) {
        self.superblock.capacity_bytes = capacity_bytes;
        self.superblock.geometry = geometry;
    }

    /// Writes a superblock over both copies: first the older one, and when that is durable its
    /// successor, which says the same, over the other. So one of them is whole at any time, and
    /// both say the same when this returns; `false` if only one could be written.
    ///
    /// One that can't be written keeps what it says, which the other has overtaken, or is torn. The
    /// store goes on with the other, and writes a stand-in for it before it is written over.
    pub(crate) fn write_superblock(
        &mut self,
        medium: &Medium,
        superblock: Superblock,
    ) -> Result<bool, StoreError> {
        let twin = Superblock { sequence: superblock.sequence + 1, ..superblock.clone() };
        let older = self.write_copy(medium, superblock);
        match (older, self.write_copy(medium, twin)) {
            (Err(error), Err(_)) => Err(error),
            (older, newer) => {
                medium.disk.settle_root();
                Ok(older.is_ok() && newer.is_ok())
            }
        }
    }

    /// The next superblock is of this incarnation.
    pub(crate) fn count_incarnation(&mut self, incarnation: u64) {
        self.superblock.incarnation = incarnation;
    }

    /// Writes what the superblocks say once more: an error if the device takes neither.
    pub(crate) fn rewrite_superblock(&mut self, medium: &Medium) -> Result<(), StoreError> {
        let next = self.superblock.clone();
        let sequence = next.sequence + 1;
        self.write_superblock(medium, Superblock { sequence, ..self.stored_superblock() })?;
        // What the next checkpoint describes is to come still.
        self.grow(next.capacity_bytes, next.geometry);
        Ok(())
    }

    /// Writes a superblock over the copy that its sequence number belongs to.
    pub(crate) fn write_copy(
        &mut self,
        medium: &Medium,
        superblock: Superblock,
    ) -> Result<(), StoreError> {
        let before = self.superblock.sequence;
        assert!(superblock.sequence > before, "no copy becomes older");
        medium.disk.swap_root(before, &superblock)?;
        self.wrote(superblock);
        Ok(())
    }

    /// A superblock is on the medium.
    pub(crate) fn wrote(&mut self, superblock: Superblock) {
        self.stored_geometry = superblock.geometry;
        self.superblock = superblock;
    }
}
