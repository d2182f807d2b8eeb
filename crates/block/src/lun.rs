//! What an initiator sees: logical unit numbers and their volumes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::offload::Offloads;
use crate::units::{SectorCount, VolumeId};

/// The size of a logical block as the host sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogicalBlockSize {
    /// 512 bytes on 4 KiB physical blocks (512e).
    #[default]
    B512,
    /// 4096 bytes (4Kn).
    B4096,
}

impl LogicalBlockSize {
    /// Returns the size in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::B512 => 512,
            Self::B4096 => 4096,
        }
    }

    /// Returns the size in sectors: 1 or 8.
    pub fn sectors(self) -> u64 {
        self.bytes() / crate::units::SECTOR_BYTES
    }
}

/// The attributes of a volume that protocols report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeAttributes {
    /// The volume.
    pub id: VolumeId,
    /// Its size; a multiple of the logical block.
    pub size: SectorCount,
    /// Its logical block.
    pub logical_block: LogicalBlockSize,
    /// Its NAA type 6 (registered extended) designator, big-endian, never reused.
    pub naa: [u8; 16],
    /// Its unit serial number (VPD 80h): ASCII.
    pub serial: String,
    /// Whether writes are acknowledged before they are durable (`durability = "flush"`): WCE.
    pub write_cache: bool,
    /// The offloads in effect: those enabled both for the volume and for the array.
    pub offloads: Offloads,
    /// Its limits, for all hosts together.
    pub limits: VolumeLimits,
    /// Its volume group, if that has limits.
    pub group: Option<LimitedGroup>,
}

/// A volume group with limits that apply to all of its volumes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitedGroup {
    /// The number of the group. It never changes.
    pub number: u64,
    /// Its limits.
    pub limits: VolumeLimits,
}

/// Limits per second of a volume; commands beyond them wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeLimits {
    /// Bytes read and written; offloads do not count.
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Reads, writes and offloads.
    pub iops: Option<u64>,
}

impl VolumeLimits {
    /// No limits.
    pub const NONE: Self = Self { bandwidth_bytes_per_s: None, iops: None };

    /// Returns whether there are no limits.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}

/// The volumes that an initiator may access, by LUN (0..=16383). It can't access any others.
#[derive(Clone, Debug, Default)]
pub struct LunMap {
    /// Increases with every change of the map or of a volume in it, so that a session can cheaply
    /// detect changes that it must report to the host.
    pub generation: u64,
    /// The volumes.
    pub luns: BTreeMap<u16, Arc<VolumeAttributes>>,
}

impl LunMap {
    /// Returns the volume with this NAA designator, if the initiator may access it.
    pub fn by_naa(&self, naa: &[u8; 16]) -> Option<&Arc<VolumeAttributes>> {
        self.luns.values().find(|volume| volume.naa == *naa)
    }
}

/// The INQUIRY data common to all volumes of an array. ESXi offloads copies only between devices
/// with equal product names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayIdentity {
    /// T10 vendor identification, up to 8 ASCII characters.
    pub vendor: String,
    /// Product identification, up to 16 ASCII characters.
    pub product: String,
    /// Product revision level, up to 4 ASCII characters.
    pub revision: String,
    /// The iSCSI name of the target.
    pub target_name: String,
}
