//! The array's own volume, which holds the data of ROD tokens. No host sees it, no command names
//! it, and no figure shown includes it; but the space that it keeps alive counts as used in the
//! pool.

use block::request::limits::VOLUME_BYTES_MAX;
use block::{SECTOR_BYTES, SectorCount, VolumeId};
use store::{Change, VolumeChange};

use crate::{Array, Backing, Error, PoolStatus, record};

/// The largest size of a volume: it takes space only for the data of tokens.
const SIZE: SectorCount = SectorCount(VOLUME_BYTES_MAX / SECTOR_BYTES);

/// Makes the volume in a pool that has none yet.
pub(crate) fn make(backing: &dyn Backing) -> Result<VolumeId, Error> {
    let id = backing.allocate_volume_id();
    backing.change(Change {
        volumes: vec![VolumeChange::Create { id, size: SIZE }],
        config: vec![(record::token_volume_key(), Some(record::token_volume(id)?))],
    })?;
    Ok(id)
}

impl Array {
    /// The volume and its size. What is in it after a power on is worthless.
    pub fn token_volume(&self) -> (VolumeId, SectorCount) {
        (self.token_volume, SIZE)
    }

    /// The state of the pool, without that volume.
    pub fn pool(&self) -> PoolStatus {
        let mut pool = self.backing.pool_status();
        if let Some(own) = self.backing.volume_status(self.token_volume) {
            // The two are read one after the other: a token may be created in between.
            let less = |sum: &mut u64, part: u64| *sum = sum.saturating_sub(part);
            less(&mut pool.provisioned_bytes, own.size.0 * SECTOR_BYTES);
            less(&mut pool.mapped_bytes, own.mapped_bytes);
            less(&mut pool.mapped_data_bytes, own.data_bytes);
            less(&mut pool.volume_count, 1);
        }
        pool
    }
}
