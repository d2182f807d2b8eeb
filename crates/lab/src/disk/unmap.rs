//! In-guest UNMAP: a thin disk gives back what its guest does not need any more (000, "In-Guest
//! UNMAP in ESXi 6.x"; 002, "Guest OS").

use std::ops::Range;

use super::{DiskError, Provisioning, VirtualDisk};
use crate::datastore::{BLOCK_BYTES, Detached};
use crate::host::{EsxVersion, HostError, Primitive};

impl VirtualDisk {
    /// UNMAP from a guest: the disk loses the whole blocks of the datastore in `bytes` from
    /// `offset` on, which read as zeros from then on; bytes that it has lost.
    ///
    /// - Before 6.0 a guest can't unmap, and thick disks are never shrunk (000, 002): 0.
    /// - Parts of blocks stay as they are: UNMAP is a hint, and VMFS processes whole, aligned
    ///   blocks of 1 MB only (vSphere Storage 6.7, "Space Reclamation for VMFS6 Virtual Machines").
    ///   What is to be had of a request that is not aligned is released all the same, as from 6.5
    ///   patch 1 on; before, ESXi refused all of it (KB 2148987).
    /// - The array learns of it by UNMAP with `EnableBlockDelete` (000); without, when space is
    ///   reclaimed by hand. A host that reclaims by itself does it in the background.
    ///
    /// Reads and writes of the same blocks that are under way end first; those that come later wait
    /// until the blocks are gone, but not for the array. As all futures of a datastore, those must
    /// be let run to their ends: a command of a future that was dropped is not waited for.
    ///
    /// # Errors
    /// Behind the disk's end; those of the datastore, also where the disk is not open for this host
    /// alone; those of the device. An array that refuses UNMAP is none.
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
        // From here on these blocks belong to nobody: a later write there gets others.
        let released_bytes = detached.count() * BLOCK_BYTES;
        self.unmap_detached(detached).await?;
        Ok(released_bytes)
    }

    /// The blocks that a range has all of; the last one of the disk may be shorter.
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
