//! In-guest UNMAP: a thin disk returns what its guest no longer needs (000, "In-Guest UNMAP in ESXi
//! 6.x"; 002, "Guest OS").

use std::ops::Range;

use super::{DiskError, Provisioning, VirtualDisk};
use crate::datastore::{BLOCK_BYTES, Detached};
use crate::host::{EsxVersion, HostError, Primitive};

impl VirtualDisk {
    /// UNMAP from a guest: removes from the disk the whole blocks of the datastore in `bytes` from
    /// `offset` on, which read as zeros from then on; returns the removed bytes.
    ///
    /// - Before 6.0 a guest can't unmap, and thick disks are never shrunk (000, 002): 0.
    /// - Parts of blocks stay as they are: UNMAP is a hint, and VMFS processes whole, aligned
    ///   blocks of 1 MB only (vSphere Storage 6.7, "Space Reclamation for VMFS6 Virtual Machines").
    ///   The whole blocks of a request that is not aligned are released nevertheless, as from 6.5
    ///   patch 1 on; before, ESXi refused all of it (KB 2148987).
    /// - The array learns of it by UNMAP with `EnableBlockDelete` (000); without, when space is
    ///   reclaimed manually. A host that reclaims automatically does it in the background.
    ///
    /// Reads and writes of the same blocks in flight end first; later ones wait until the blocks
    /// are removed, but not for the array. Like all futures of a datastore, these must run to
    /// completion: a command of a future that was dropped is not waited for.
    ///
    /// # Errors
    /// Beyond the disk's end; those of the datastore, also if the disk is not open exclusively for
    /// this host; those of the device. An array that refuses UNMAP is not an error.
    pub async fn unmap(&self, offset: u64, bytes: u64) -> Result<u64, DiskError> {
        let blocks = self.whole_blocks(offset, bytes)?;
        let is_before_6 = self.place().device.host().settings().version < EsxVersion::V6;
        if is_before_6 || self.provisioning() != Provisioning::Thin || blocks.is_empty() {
            return Ok(0);
        }
        let detached = {
            let _claim = self.0.in_use.claim(blocks.clone()).await;
            self.file().detach(blocks.start, blocks.end - blocks.start).await?
        };
        // From here on these blocks belong to no file: a later write there gets others.
        let released_bytes = detached.count() * BLOCK_BYTES;
        self.unmap_detached(detached).await?;
        Ok(released_bytes)
    }

    /// Returns the blocks that a range contains completely; the last one of the disk may be
    /// shorter.
    pub(crate) fn whole_blocks(&self, offset: u64, bytes: u64) -> Result<Range<u64>, DiskError> {
        let (end, disk_bytes) = (offset.saturating_add(bytes), self.bytes());
        if end > disk_bytes {
            return Err(DiskError::OutOfRange { offset, end, disk_bytes });
        }
        let first = offset.div_ceil(BLOCK_BYTES);
        let last = if end == disk_bytes { self.blocks() } else { end / BLOCK_BYTES };
        Ok(first..last.max(first))
    }

    async fn unmap_detached(&self, detached: Detached) -> Result<(), DiskError> {
        let (device, datastore) = (&self.place().device, &self.place().datastore);
        if !device.host().settings().block_delete || datastore.auto_reclaim().is_ok() {
            return Ok(detached.let_go().await?);
        }
        if !device.may_offload(Primitive::Delete) {
            device.did_by_hand(Primitive::Delete, detached.count() * BLOCK_BYTES);
            return Ok(detached.let_go().await?);
        }
        let ranges = detached.ranges();
        let ranges: Vec<_> = ranges.iter().map(|range| (range.offset_bytes, range.bytes)).collect();
        let end = match device.unmap(&ranges).await {
            Err(HostError::Unsupported { .. }) => {
                device.did_by_hand(Primitive::Delete, detached.count() * BLOCK_BYTES);
                Ok(())
            }
            end => end,
        };
        detached.give_back().await?;
        Ok(end?)
    }
}
