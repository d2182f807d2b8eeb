//! Blocks that no longer belong to a file and are not free yet.

use std::rc::Rc;

use super::error::DatastoreError;
use super::layout::{BLOCK_BYTES, Layout, Pool};
use super::mount::Core;

/// A range of bytes of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceRange {
    /// Its offset.
    pub offset_bytes: u64,
    /// Its length.
    pub bytes: u64,
}

/// Blocks that no longer belong to a file and are not free yet, so that they can be unmapped: a
/// block that is free may be another host's at once. If this is dropped they are leaked.
#[must_use = "blocks that are not given back are leaked"]
pub struct Detached {
    core: Rc<Core>,
    blocks: Vec<u32>,
}

impl std::fmt::Debug for Detached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Detached").field("ranges", &self.ranges()).finish()
    }
}

impl Detached {
    pub(super) fn new(core: &Rc<Core>, mut blocks: Vec<u32>) -> Self {
        blocks.sort_unstable();
        Self { core: core.clone(), blocks }
    }

    /// Returns their ranges, in the order of the device.
    pub fn ranges(&self) -> Vec<DeviceRange> {
        ranges_of(&self.core.layout, &self.blocks)
    }

    /// Returns the number of blocks.
    pub fn count(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Frees them like a host that does not unmap them itself: if it reclaims automatically
    /// ([`super::Datastore::auto_reclaim`]) they are unmapped in the background, and free after
    /// that; otherwise they are free at once.
    ///
    /// # Errors
    /// Those of the locks and the device; what was not freed is leaked.
    pub async fn let_go(self) -> Result<(), DatastoreError> {
        self.core.let_go(self.blocks).await
    }

    /// Frees them now.
    ///
    /// # Errors
    /// Those of the locks and the device; what was not freed is leaked.
    pub async fn give_back(self) -> Result<(), DatastoreError> {
        self.core.give_back(Pool::Data, self.blocks).await
    }
}

/// Returns the ranges of blocks; contiguous ones are merged.
pub(super) fn ranges_of(layout: &Layout, blocks: &[u32]) -> Vec<DeviceRange> {
    let mut ranges: Vec<DeviceRange> = Vec::new();
    for block in blocks {
        let offset_bytes = layout.data(*block);
        match ranges.last_mut() {
            Some(last) if last.offset_bytes + last.bytes == offset_bytes => {
                last.bytes += BLOCK_BYTES;
            }
            _ => ranges.push(DeviceRange { offset_bytes, bytes: BLOCK_BYTES }),
        }
    }
    ranges
}
