//! Volumes as they are stored.

use std::sync::Arc;

use block::request::limits::VOLUME_BYTES_MAX;
use block::{
    LimitedGroup, LogicalBlockSize, Offloads, SECTOR_BYTES, SectorCount, VolumeAttributes,
    VolumeId, VolumeLimits,
};

use crate::values::identity::{CompanyId, Serial};
use crate::values::name::VolumeName;

/// The maximum number of volumes of an array, destroyed ones included; each costs about 1 KiB of
/// memory.
pub const VOLUMES_MAX: usize = 50_000;

/// The size of the array's own volume: the maximum size of a volume. It takes space only for the
/// data of ROD tokens.
pub(crate) const TOKEN_VOLUME_SIZE: SectorCount = SectorCount(VOLUME_BYTES_MAX / SECTOR_BYTES);

/// A volume as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeRecord {
    pub(crate) id: VolumeId,
    pub(crate) name: VolumeName,
    pub(crate) size: SectorCount,
    pub(crate) logical_block: LogicalBlockSize,
    pub(crate) company_id: CompanyId,
    pub(crate) serial: Serial,
    pub(crate) created_ms: u64,
    /// Its own setting; the array's applies as well.
    pub(crate) offloads: Offloads,
    pub(crate) limits: VolumeLimits,
    /// The object that it was created from.
    pub(crate) source: Option<SourceRecord>,
    /// If it is destroyed: when it is eradicated, in milliseconds since 1970.
    pub(crate) eradicate_ms: Option<u64>,
}

/// The object that a volume was created from, or last overwritten with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceRecord {
    /// The volume or the snapshot, which may be gone.
    pub(crate) id: VolumeId,
    /// Its name at that time.
    pub(crate) name: String,
}

impl VolumeRecord {
    /// Returns the attributes that hosts see. `array` are the offloads that the array allows;
    /// `group` is its volume group, if that has limits.
    pub(crate) fn attributes(
        &self,
        array: Offloads,
        write_cache: bool,
        group: Option<LimitedGroup>,
    ) -> Arc<VolumeAttributes> {
        Arc::new(VolumeAttributes {
            id: self.id,
            size: self.size,
            logical_block: self.logical_block,
            naa: self.serial.naa(self.company_id),
            serial: self.serial.to_string(),
            write_cache,
            offloads: self.offloads.and(array),
            limits: self.limits,
            group,
        })
    }
}
