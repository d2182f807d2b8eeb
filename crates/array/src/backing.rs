//! What the array needs of the store. A seam, so that the model can be tested on its own.

use block::VolumeId;
use store::{Change, Incarnation, PoolStatus, Store, StoreError, VolumeStatus};

use crate::accounting::Accounted;
use crate::integrity::Scrubbed;
use crate::reduction::Optimized;

/// A store, as the array uses it.
pub trait Backing: Accounted + Optimized + Scrubbed + Send + Sync {
    /// Makes a change, wholly or not at all; durable when it returns. Blocks.
    fn change(&self, change: Change) -> Result<(), StoreError>;

    /// Whether the device refuses writes at the moment, so that a change would wait.
    fn is_device_refusing(&self) -> bool {
        false
    }

    /// The whole key-value space, sorted by key.
    fn config(&self) -> Vec<(Vec<u8>, Vec<u8>)>;

    /// A volume id that was never used before.
    fn allocate_volume_id(&self) -> VolumeId;

    /// The state of the pool.
    fn pool_status(&self) -> PoolStatus;

    /// Grows the pool to this capacity while it is in use; durable when it returns. Blocks.
    fn grow(&self, capacity_bytes: u64) -> Result<(), StoreError>;

    /// Makes the pool one of the latest version of the format while it is in use; `false` if it is
    /// that already. Durable when it returns. Blocks.
    fn upgrade(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// The incarnation of the pool: that of the last opening to use it.
    fn incarnation(&self) -> Incarnation {
        Incarnation { number: 1, is_stored: true }
    }

    /// Sees to it that the incarnation has at least this number; durable when it returns, where the
    /// pool stores it. Blocks.
    fn raise_incarnation(&self, _least: u64) -> Result<(), StoreError> {
        Ok(())
    }

    /// The state of a volume; `None` if it does not exist.
    fn volume_status(&self, id: VolumeId) -> Option<VolumeStatus>;

    /// Whether the store's record of a volume can't be read: its I/O returns MEDIUM ERROR.
    fn is_lost(&self, _id: VolumeId) -> bool {
        false
    }
}

impl Backing for Store {
    fn change(&self, change: Change) -> Result<(), StoreError> {
        Store::change(self, change)
    }

    fn is_device_refusing(&self) -> bool {
        Store::is_device_refusing(self)
    }

    fn config(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        Store::config(self)
    }

    fn allocate_volume_id(&self) -> VolumeId {
        Store::allocate_volume_id(self)
    }

    fn pool_status(&self) -> PoolStatus {
        Store::pool_status(self)
    }

    fn grow(&self, capacity_bytes: u64) -> Result<(), StoreError> {
        Store::grow(self, capacity_bytes)
    }

    fn upgrade(&self) -> Result<bool, StoreError> {
        Store::upgrade(self)
    }

    fn incarnation(&self) -> Incarnation {
        Store::incarnation(self)
    }

    fn raise_incarnation(&self, least: u64) -> Result<(), StoreError> {
        Store::raise_incarnation(self, least)
    }

    fn volume_status(&self, id: VolumeId) -> Option<VolumeStatus> {
        Store::volume_status(self, id)
    }

    fn is_lost(&self, id: VolumeId) -> bool {
        Store::is_lost(self, id)
    }
}
