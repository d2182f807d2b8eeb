//! A store in memory, for tests.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use array::Backing;
use block::{SectorCount, VolumeError, VolumeId};
use store::{Change, Handling, PoolStatus, StoreError, VolumeStatus};

/// The size of a volume, whether it is a snapshot, and how reduction handles it.
type StoredVolume = (SectorCount, bool, Handling);
type Kept = (BTreeMap<Vec<u8>, Vec<u8>>, HashMap<VolumeId, StoredVolume>);

#[derive(Default)]
pub(super) struct MemoryStore {
    kept: Mutex<Kept>,
    next_id: AtomicU64,
    pub(super) is_full: AtomicBool,
    /// The device refuses writes: a change would wait.
    pub(super) is_refusing: AtomicBool,
    is_optimizing: AtomicBool,
}

impl array::Accounted for MemoryStore {}
impl array::Scrubbed for MemoryStore {}
impl array::Optimized for MemoryStore {
    fn optimize_start(&self) -> bool {
        !self.is_optimizing.swap(true, Ordering::Relaxed)
    }

    fn optimize_stop(&self) -> bool {
        self.is_optimizing.swap(false, Ordering::Relaxed)
    }

    fn optimize_status(&self) -> store::OptimizeStatus {
        let running = self.is_optimizing.load(Ordering::Relaxed);
        let failure = (!running).then(|| "the pool is full".to_owned());
        store::OptimizeStatus { running, failure, rows_total: 256, ..Default::default() }
    }
}

impl Backing for MemoryStore {
    fn is_device_refusing(&self) -> bool {
        self.is_refusing.load(Ordering::Relaxed)
    }

    fn change(&self, change: Change) -> Result<(), StoreError> {
        assert!(!self.is_device_refusing(), "it would wait");
        if self.is_full.load(Ordering::Relaxed) {
            return Err(StoreError::Volume(VolumeError::NoSpace));
        }
        let mut kept = self.kept.lock().unwrap();
        for change in change.volumes {
            match change {
                store::VolumeChange::Create { id, size } => {
                    kept.1.insert(id, (size, false, Handling::default()))
                }
                store::VolumeChange::Resize { id, size } => {
                    let (_, snapshot, handling) = kept.1[&id];
                    kept.1.insert(id, (size, snapshot, handling))
                }
                store::VolumeChange::Clone { source, id, snapshot } => {
                    let (size, _, handling) = kept.1[&source];
                    kept.1.insert(id, (size, snapshot, handling))
                }
                store::VolumeChange::Overwrite { source, destination } => {
                    let ((size, ..), (.., handling)) = (kept.1[&source], kept.1[&destination]);
                    kept.1.insert(destination, (size, false, handling))
                }
                store::VolumeChange::Handling { id, handling } => {
                    let (size, snapshot, _) = kept.1[&id];
                    kept.1.insert(id, (size, snapshot, handling))
                }
                store::VolumeChange::Destroy { id } => kept.1.remove(&id),
            };
        }
        for (key, value) in change.config.into_iter().chain(change.notes) {
            match value {
                Some(value) => kept.0.insert(key, value),
                None => kept.0.remove(&key),
            };
        }
        Ok(())
    }

    fn config(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.kept.lock().unwrap().0.clone().into_iter().collect()
    }

    fn allocate_volume_id(&self) -> VolumeId {
        VolumeId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    fn pool_status(&self) -> PoolStatus {
        PoolStatus { pool_id: [7; 16], capacity_bytes: 1 << 40, ..PoolStatus::default() }
    }

    fn grow(&self, capacity_bytes: u64) -> Result<(), StoreError> {
        match capacity_bytes {
            0..=0x1_0000_0000 => Err(StoreError::Size("the pool is larger".into())),
            0x1_0000_0001..=0x1000_0000_0000 => Ok(()),
            0x1000_0000_0001..=0x2000_0000_0000 => {
                Err(StoreError::Io(std::io::ErrorKind::StorageFull.into()))
            }
            0x2000_0000_0001..=0x3000_0000_0000 => {
                Err(StoreError::Io(std::io::ErrorKind::InvalidInput.into()))
            }
            0x3000_0000_0001..=0x4000_0000_0000 => {
                Err(StoreError::NoRoom { needed_bytes: 2, free_bytes: 1 })
            }
            _ => Err(StoreError::Io(std::io::Error::other("broken"))),
        }
    }

    fn volume_status(&self, id: VolumeId) -> Option<VolumeStatus> {
        let (size, snapshot, handling) = *self.kept.lock().unwrap().1.get(&id)?;
        Some(VolumeStatus { id, size, mapped_bytes: 4096, data_bytes: 0, snapshot, handling })
    }
}
