//! The array's own volume, in which the data of ROD tokens stands. No host sees it, no verb names
//! it, and the numbers that are shown leave it out; the space that it keeps alive is part of what
//! the pool uses.

use block::request::limits::VOLUME_BYTES_MAX;
use block::{SECTOR_BYTES, SectorCount, VolumeId};
use store::{Change, VolumeChange};

use crate::{Array, Backing, Error, PoolStatus, record};

/// As large as a volume can be: it takes space only for what tokens stand for.
const SIZE: SectorCount = SectorCount(VOLUME_BYTES_MAX / SECTOR_BYTES);

/// Makes the volume, in a pool that has none yet.
pub(crate) fn make(backing: &dyn Backing) -> Result<VolumeId, Error> {
    let id = backing.allocate_volume_id();
    backing.change(Change {
        volumes: vec![VolumeChange::Create { id, size: SIZE }],
        config: vec![(record::token_volume_key(), Some(record::token_volume(id)?))],
    })?;
    Ok(id)
}

impl Array {
    /// The volume and its size. What an earlier run has left in it is of no use to anybody.
    pub fn token_volume(&self) -> (VolumeId, SectorCount) {
        (self.token_volume, SIZE)
    }

    /// How the pool stands, without that volume.
    pub fn pool(&self) -> PoolStatus {
        let mut pool = self.backing.pool_status();
        if let Some(own) = self.backing.volume_status(self.token_volume) {
            // The two were asked one after the other: a token may have come between.
            let less = |sum: &mut u64, part: u64| *sum = sum.saturating_sub(part);
            less(&mut pool.provisioned_bytes, own.size.0 * SECTOR_BYTES);
            less(&mut pool.mapped_bytes, own.mapped_bytes);
            less(&mut pool.mapped_data_bytes, own.data_bytes);
            less(&mut pool.volume_count, 1);
        }
        pool
    }
}
