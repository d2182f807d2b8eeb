//! State that is kept from one checkpoint to the next, and the superblocks.

use std::collections::BTreeSet;
use std::sync::Weak;

use format::{Geometry, Place, Superblock};

use crate::StoreError;
use crate::chunks::medium::Medium;
use crate::space::readers::ReaderToken;

/// State that is kept from one checkpoint to the next.
pub(crate) struct Checkpointer {
    superblock: Superblock,
    /// The pieces of the streams that the superblock refers to.
    pub(crate) streams: [Vec<(Place, u32)>; 3],
    /// The division of the pool when the superblock was written.
    stored_geometry: Geometry,
    /// Readers of earlier checkpoints.
    pub(crate) earlier_images: Vec<Weak<ReaderToken>>,
    /// Segments that have refused a part of a checkpoint since the pool was opened: unused blocks
    /// there are not holes.
    pub(crate) refused: BTreeSet<u32>,
}

impl Checkpointer {
    pub(crate) fn new(superblock: Superblock) -> Self {
        let stored_geometry = superblock.geometry;
        let (streams, earlier_images) = Default::default();
        let refused = BTreeSet::new();
        Self { superblock, streams, stored_geometry, earlier_images, refused }
    }

    /// The superblock on the medium.
    pub(crate) fn stored_superblock(&self) -> Superblock {
        Superblock {
            geometry: self.stored_geometry,
            capacity_bytes: self.superblock.capacity_bytes.min(self.stored_geometry.pool_bytes()),
            ..self.superblock.clone()
        }
    }

    /// Returns whether there is a reader of an earlier checkpoint.
    pub(crate) fn is_earlier_image_read(&self) -> bool {
        self.earlier_images.iter().any(|token| token.strong_count() > 0)
    }

    pub(crate) fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Sets the capacity of the pool for the next checkpoint.
    pub(crate) fn grow(&mut self, capacity_bytes: u64, geometry: Geometry) {
        self.superblock.capacity_bytes = capacity_bytes;
        self.superblock.geometry = geometry;
    }

    /// Writes a superblock over both copies: first the older one, and when that is durable its
    /// successor, with the same content, over the other. So one of them is valid at any time, and
    /// both have the same content when this returns; `false` if only one could be written.
    ///
    /// One that can't be written keeps its content, which is older than that of the other, or is
    /// torn. The store continues with the other, and writes a stand-in for it before it is
    /// overwritten.
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

    /// Sets the incarnation of the next superblock.
    pub(crate) fn count_incarnation(&mut self, incarnation: u64) {
        self.superblock.incarnation = incarnation;
    }

    /// Writes the content of the superblocks again; returns an error if the device accepts neither.
    pub(crate) fn rewrite_superblock(&mut self, medium: &Medium) -> Result<(), StoreError> {
        let next = self.superblock.clone();
        let sequence = next.sequence + 1;
        self.write_superblock(medium, Superblock { sequence, ..self.stored_superblock() })?;
        // The content of the next checkpoint does not count yet.
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
        assert!(superblock.sequence > before, "sequence numbers of superblocks only increase");
        medium.disk.swap_root(before, &superblock)?;
        self.wrote(superblock);
        Ok(())
    }

    /// Records the superblock on the medium.
    pub(crate) fn wrote(&mut self, superblock: Superblock) {
        self.stored_geometry = superblock.geometry;
        self.superblock = superblock;
    }
}
