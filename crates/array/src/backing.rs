//! The interface of the store that the array uses. The traits allow tests of the array without a
//! store.

use std::sync::Arc;

use block::VolumeId;
use store::{
    Change, DamageList, Engine, Incarnation, OptimizeStatus, PoolStatus, ScrubStatus, SpaceFigures,
    SpaceStatus, Store, StoreError, VolumeStatus,
};

/// The store that the array uses.
pub trait Backing: Accounted + Optimized + Scrubbed + Send + Sync {
    /// Commits a change completely or not at all; durable when it returns. Blocks.
    fn change(&self, change: Change) -> Result<(), StoreError>;

    /// Returns whether the device refuses writes at the moment, so that a change would wait.
    fn is_device_refusing(&self) -> bool {
        false
    }

    /// Returns the whole key-value space, sorted by key.
    fn config(&self) -> Vec<(Vec<u8>, Vec<u8>)>;

    /// Returns a volume id that was never used before.
    fn allocate_volume_id(&self) -> VolumeId;

    /// Returns the state of the pool.
    fn pool_status(&self) -> PoolStatus;

    /// Grows the pool to this capacity while it is in use; durable when it returns. Blocks.
    fn grow(&self, capacity_bytes: u64) -> Result<(), StoreError>;

    /// Upgrades the pool to the latest version of the format while it is in use; `false` if it has
    /// that version. Durable when it returns. Blocks.
    fn upgrade(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Returns the incarnation of the pool, which begins when the pool is opened for use.
    fn incarnation(&self) -> Incarnation {
        Incarnation { number: 1, is_stored: true }
    }

    /// Returns whether this is a takeover from another controller, and not a power on.
    fn has_taken_over(&self) -> bool {
        false
    }

    /// Raises the incarnation to at least `_least`; durable when it returns, if the pool stores it.
    /// Blocks.
    fn raise_incarnation(&self, _least: u64) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns the state of a volume; `None` if it does not exist.
    fn volume_status(&self, id: VolumeId) -> Option<VolumeStatus>;

    /// Returns whether the store's record of a volume can't be read: its I/O returns MEDIUM ERROR.
    fn is_lost(&self, _id: VolumeId) -> bool {
        false
    }
}

/// The accounting interface of a store. A store in memory can use the defaults.
pub trait Accounted {
    /// Returns the state of accounting.
    fn space_status(&self) -> SpaceStatus {
        SpaceStatus::default()
    }

    /// Returns the figures of the last pass.
    fn space_figures(&self) -> Option<Arc<SpaceFigures>> {
        None
    }

    /// Requests a pass.
    fn ask_for_space_figures(&self) {}
}

/// The scrubbing interface of a store. A store in memory can use the defaults.
pub trait Scrubbed {
    /// Begins a pass; `false` if one is running. The time is in seconds since 1970.
    fn scrub_start(&self, _now_s: u64) -> bool {
        false
    }

    /// Stops the running pass; `false` if there is none.
    fn scrub_stop(&self) -> bool {
        false
    }

    /// Returns the state of scrubbing.
    fn scrub_status(&self) -> ScrubStatus {
        ScrubStatus::default()
    }

    /// Returns the damage that was found.
    fn damage(&self) -> DamageList {
        DamageList::default()
    }
}

/// The background pass of a store. A store in memory can use the defaults.
pub trait Optimized {
    /// Begins a pass; `false` if one is running.
    fn optimize_start(&self) -> bool {
        false
    }

    /// Stops the running pass; `false` if there is none.
    fn optimize_stop(&self) -> bool {
        false
    }

    /// Returns the state of the background pass.
    fn optimize_status(&self) -> OptimizeStatus {
        OptimizeStatus::default()
    }
}

impl Backing for Store {
    fn change(&self, change: Change) -> Result<(), StoreError> {
        Store::change(self, change)
    }

    fn is_device_refusing(&self) -> bool {
        Engine::is_device_refusing(self)
    }

    fn config(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        Engine::config(self)
    }

    fn allocate_volume_id(&self) -> VolumeId {
        Store::allocate_volume_id(self)
    }

    fn pool_status(&self) -> PoolStatus {
        Engine::pool_status(self)
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

    fn has_taken_over(&self) -> bool {
        Store::has_taken_over(self)
    }

    fn raise_incarnation(&self, least: u64) -> Result<(), StoreError> {
        Store::raise_incarnation(self, least)
    }

    fn volume_status(&self, id: VolumeId) -> Option<VolumeStatus> {
        Engine::volume_status(self, id)
    }

    fn is_lost(&self, id: VolumeId) -> bool {
        Store::is_lost(self, id)
    }
}

impl Accounted for Store {
    fn space_status(&self) -> SpaceStatus {
        Store::space_status(self)
    }

    fn space_figures(&self) -> Option<Arc<SpaceFigures>> {
        Store::space_figures(self)
    }

    fn ask_for_space_figures(&self) {
        Store::ask_for_space_figures(self);
    }
}

impl Scrubbed for Store {
    fn scrub_start(&self, now_s: u64) -> bool {
        Store::scrub_start(self, now_s)
    }

    fn scrub_stop(&self) -> bool {
        Store::scrub_stop(self)
    }

    fn scrub_status(&self) -> ScrubStatus {
        Store::scrub_status(self)
    }

    fn damage(&self) -> DamageList {
        Store::damage(self)
    }
}

impl Optimized for Store {
    fn optimize_start(&self) -> bool {
        Store::optimize(self)
    }

    fn optimize_stop(&self) -> bool {
        Store::optimize_stop(self)
    }

    fn optimize_status(&self) -> OptimizeStatus {
        Store::optimize_status(self)
    }
}
