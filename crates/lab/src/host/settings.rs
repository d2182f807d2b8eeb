//! What an administrator sets on a host, by the names that ESXi gives it.

use std::time::Duration;

use super::acceleration::Primitive;

/// Which ESXi a host is like, where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EsxVersion {
    /// 5.0 and 5.1: as 5.5, but space is reclaimed by a percentage and a balloon file.
    V5_0,
    /// 5.5: thin disks are copied by their 1 MB extents.
    V5,
    /// 6.0: neighbouring extents of a thin disk are copied together.
    V6,
    /// 6.5: reclaims by itself, and checks an ATS heartbeat that miscompared (KB 2113956).
    V6_5,
}

/// A host's settings. The defaults are those of ESXi, with what the papers recommend for paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which ESXi it is like.
    pub version: EsxVersion,
    /// `DataMover.HardwareAcceleratedMove`: EXTENDED COPY is used.
    pub accelerated_move: bool,
    /// `DataMover.HardwareAcceleratedInit`: WRITE SAME is used.
    pub accelerated_init: bool,
    /// `VMFS3.HardwareAcceleratedLocking`: COMPARE AND WRITE is used, not reservations.
    pub accelerated_locking: bool,
    /// `VMFS3.useATSForHBOnVMFS5`: and for heartbeats too.
    pub ats_heartbeat: bool,
    /// `VMFS3.EnableBlockDelete`: what a guest unmaps is unmapped in the datastore too.
    pub block_delete: bool,
    /// How many blocks of 1 MB 6.5 unmaps in a second by itself, of each datastore that files were
    /// deleted from; 0 is priority "none". 002 has "low" and "none" and tells no rate; VMware's
    /// manual (vSphere Storage 6.7, "Space Reclamation Requests from VMFS Datastores") has 25 to
    /// 50 MB a second for "low".
    pub reclaim_blocks_per_s: u32,
    /// `DataMover.MaxHWTransferSize`, in bytes: what one EXTENDED COPY moves at most.
    pub transfer_bytes: u64,
    /// Into how many segments a transfer may be divided: 1, or 8 by a claim rule (002).
    pub transfer_segments: u64,
    /// What one WRITE SAME zeroes, in bytes: whole MiB, and no more than the array says it takes.
    pub zero_bytes: u64,
    /// Copies in flight at the most, over all operations of the host (001: 16).
    pub copies_in_flight: usize,
    /// Round robin: commands on one path before the next has its turn (000: 1).
    pub io_limit: u32,
    /// How long an offload that the array has refused is not tried again.
    pub retry_offload: Duration,
    /// How long commands are tried again where no path is left (all paths down: 140 s).
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
    /// Whether an offload is switched on. UNMAP always is: what sends it has switches of its own.
    pub fn offloads(&self, primitive: Primitive) -> bool {
        match primitive {
            Primitive::Move => self.accelerated_move,
            Primitive::Init => self.accelerated_init,
            Primitive::Locking => self.accelerated_locking,
            Primitive::Delete => true,
        }
    }

    /// With all that can be offloaded done by the host.
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
