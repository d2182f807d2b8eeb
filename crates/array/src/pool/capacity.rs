//! The state of the pool, and growing and upgrading it.

use std::io::ErrorKind;

use block::{BLOCK_BYTES, SECTOR_BYTES};
use store::{PoolStatus, StoreError};

use crate::array::Array;
use crate::error::Error;

impl Array {
    /// Returns the state of the pool, without the array's own volume.
    pub fn pool(&self) -> PoolStatus {
        let mut pool = self.backing().pool_status();
        if let Some(own) = self.backing().volume_status(self.token_volume().0) {
            // The pool and the volume are read one after the other: a token may be created in
            // between.
            let less = |sum: &mut u64, part: u64| *sum = sum.saturating_sub(part);
            less(&mut pool.provisioned_bytes, own.size.0 * SECTOR_BYTES);
            less(&mut pool.mapped_bytes, own.mapped_bytes);
            less(&mut pool.mapped_data_bytes, own.data_bytes);
            less(&mut pool.volume_count, 1);
        }
        pool
    }

    /// Upgrades the pool to the latest version of the format while hosts use it; durable when it
    /// returns. Does nothing if it has that version. Earlier programs refuse the pool from then on.
    ///
    /// # Errors
    /// Those of the store.
    pub fn upgrade_pool(&self) -> Result<PoolStatus, Error> {
        let _turn = self.turn();
        self.backing().upgrade()?;
        Ok(self.backing().pool_status())
    }

    /// Grows the pool to `capacity_bytes` (including its superblocks, as at its creation) while
    /// hosts use it; durable when it returns.
    ///
    /// # Errors
    /// `invalid_size` if it would not grow, or would be too big for a pool or for its device;
    /// `device_full` if its filesystem has no room; those of the store.
    pub fn grow_pool(&self, capacity_bytes: u64) -> Result<PoolStatus, Error> {
        let _turn = self.turn();
        let whole = capacity_bytes / BLOCK_BYTES * BLOCK_BYTES;
        let invalid = |why: String| {
            let text = format!("The pool can't grow to {capacity_bytes} bytes: {why}.");
            Error::invalid("invalid_size", text)
        };
        self.backing().grow(whole).map_err(|error| match error {
            StoreError::Size(why) => invalid(why),
            StoreError::Io(error) => match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    Error::DeviceFull(error.to_string())
                }
                // Longer than the maximum of a file, or than the device.
                ErrorKind::FileTooLarge | ErrorKind::InvalidInput => invalid(error.to_string()),
                _ => StoreError::Io(error).into(),
            },
            other => other.into(),
        })?;
        Ok(self.backing().pool_status())
    }
}
