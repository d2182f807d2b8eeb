//! A store in memory, for tests.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use block::{SectorCount, VolumeId};
use parking_lot::Mutex;
use store::{Change, PoolStatus, StoreError, VolumeChange, VolumeStatus};

use crate::Backing;

type Kept = (BTreeMap<Vec<u8>, Vec<u8>>, HashMap<VolumeId, SectorCount>);

/// A store in memory: applies a change wholly, or refuses it.
#[derive(Default)]
pub(super) struct MemoryStore {
    pub(super) kept: Mutex<Kept>,
    next_id: AtomicU64,
    pub(super) refuses: AtomicBool,
}

impl crate::Scrubbed for MemoryStore {}

impl Backing for MemoryStore {
    fn change(&self, change: Change) -> Result<(), StoreError> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(StoreError::Volume(block::VolumeError::NoSpace));
        }
        let (config, volumes) = &mut *self.kept.lock();
        for change in change.volumes {
            match change {
                VolumeChange::Create { id, size } => {
                    assert!(volumes.insert(id, size).is_none(), "an id was used twice");
                }
                VolumeChange::Resize { id, size } => {
                    volumes.insert(id, size).expect("the volume is there");
                }
                VolumeChange::Destroy { id } => drop(volumes.remove(&id).map(|size| size.0)),
            }
        }
        for (key, value) in change.config {
            match value {
                Some(value) => drop(config.insert(key, value)),
                None => drop(config.remove(&key).expect("what is taken out was there")),
            }
        }
        Ok(())
    }

    fn config(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.kept.lock().0.clone().into_iter().collect()
    }

    fn allocate_volume_id(&self) -> VolumeId {
        VolumeId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    fn pool_status(&self) -> PoolStatus {
        PoolStatus { pool_id: *b"0123456789abcdef", ..PoolStatus::default() }
    }

    fn grow(&self, capacity_bytes: u64) -> Result<(), StoreError> {
        match capacity_bytes {
            0..=0x1_0000_0000 => Err(StoreError::Size("the pool is larger".into())),
            _ => Ok(()),
        }
    }

    fn volume_status(&self, id: VolumeId) -> Option<VolumeStatus> {
        let size = *self.kept.lock().1.get(&id)?;
        Some(VolumeStatus { id, size, mapped_bytes: 0, data_bytes: 0 })
    }
}
