//! The settings of a host, with the names that ESXi gives them.

use std::time::Duration;

use super::acceleration::Primitive;

/// The ESXi version that a host imitates, where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EsxVersion {
    /// 5.0 and 5.1: as 5.5, but space is reclaimed by a percentage and a balloon file.
    V5_0,
    /// 5.5: thin disks are copied by their 1 MB extents.
    V5,
    /// 6.0: adjacent extents of a thin disk are copied together.
    V6,
    /// 6.5: reclaims automatically, and checks an ATS heartbeat that miscompared (KB 2113956).
    V6_5,
}

/// A host's settings. The defaults are those of ESXi, with the papers' recommendations for paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The version that it imitates.
    pub version: EsxVersion,
    /// `DataMover.HardwareAcceleratedMove`: EXTENDED COPY is used.
    pub accelerated_move: bool,
    /// `DataMover.HardwareAcceleratedInit`: WRITE SAME is used.
    pub accelerated_init: bool,
    /// `VMFS3.HardwareAcceleratedLocking`: COMPARE AND WRITE is used, not reservations.
    pub accelerated_locking: bool,
    /// `VMFS3.useATSForHBOnVMFS5`: also for heartbeats.
    pub ats_heartbeat: bool,
    /// `VMFS3.EnableBlockDelete`: what a guest unmaps is also unmapped in the datastore.
    pub block_delete: bool,
    /// How many blocks of 1 MB per second 6.5 unmaps automatically, in each datastore that files
    /// were deleted from; 0 is priority "none". 002 has "low" and "none" without a rate; VMware's
    /// manual (vSphere Storage 6.7, "Space Reclamation Requests from VMFS Datastores") has 25 to 50
    /// MB per second for "low".
    pub reclaim_blocks_per_s: u32,
    /// `DataMover.MaxHWTransferSize`, in bytes: the maximum that one EXTENDED COPY moves.
    pub transfer_bytes: u64,
    /// The maximum number of segments of a transfer: 1, or 8 by a claim rule (002).
    pub transfer_segments: u64,
    /// What one WRITE SAME zeroes, in bytes: whole MiB, and no more than the array reports.
    pub zero_bytes: u64,
    /// The maximum number of copies in flight, over all operations of the host (001: 16).
    pub copies_in_flight: usize,
    /// Round robin: commands on one path before the next one is used (000: 1).
    pub io_limit: u32,
    /// How long a refused offload is not tried again.
    pub retry_offload: Duration,
    /// How long commands are retried if no path is left (all paths down: 140 s).
    pub paths_down: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            version: EsxVersion::V6,
            accelerated_move: true,
            accelerated_init: true,
            accelerated_locking: true,
            ats_heartbeat: true,
            block_delete: true,
            reclaim_blocks_per_s: 25,
            transfer_bytes: 4 << 20,
            transfer_segments: 1,
            zero_bytes: 1 << 20,
            copies_in_flight: 16,
            io_limit: 1,
            retry_offload: Duration::from_secs(5),
            paths_down: Duration::from_secs(140),
        }
    }
}

impl Settings {
    /// Returns whether an offload is switched on. UNMAP always is: what sends it has switches of
    /// its own.
    pub fn offloads(&self, primitive: Primitive) -> bool {
        match primitive {
            Primitive::Move => self.accelerated_move,
            Primitive::Init => self.accelerated_init,
            Primitive::Locking => self.accelerated_locking,
            Primitive::Delete => true,
        }
    }

    /// Returns settings with which the host does everything itself that can be offloaded.
    pub fn without_offloads(self) -> Self {
        Self {
            accelerated_move: false,
            accelerated_init: false,
            accelerated_locking: false,
            ats_heartbeat: false,
            ..self
        }
    }
}
