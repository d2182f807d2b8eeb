//! An in-memory store for the array's objects.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use array::Backing;
use block::{SectorCount, VolumeError, VolumeId};
use parking_lot::Mutex;
use store::{Change, Handling, PoolStatus, StoreError, VolumeChange, VolumeStatus};

/// Keys and values, and the volumes with their sizes and whether they are snapshots.
#[derive(Default)]
struct Kept {
    config: BTreeMap<Vec<u8>, Vec<u8>>,
    volumes: HashMap<VolumeId, (SectorCount, bool)>,
    /// The handling of volumes and snapshots, if it is not the default.
    handlings: HashMap<VolumeId, Handling>,
}

/// The store.
pub struct MemoryStore {
    kept: Mutex<Kept>,
    next_id: AtomicU64,
    /// How many more changes are accepted before the pool is full.
    room: AtomicU64,
}

impl MemoryStore {
    /// Creates a store with these pairs and volumes, which accepts `room` changes.
    pub fn new(
        config: BTreeMap<Vec<u8>, Vec<u8>>,
        volumes: HashMap<VolumeId, (SectorCount, bool)>,
        room: u64,
    ) -> Self {
        let next = volumes.keys().map(|id| id.0).max().unwrap_or(0).saturating_add(1);
        let kept = Mutex::new(Kept { config, volumes, handlings: HashMap::new() });
        Self { kept, next_id: AtomicU64::new(next), room: AtomicU64::new(room) }
    }
}

impl MemoryStore {
    /// Sets the number of changes that are still accepted.
    pub fn set_room(&self, room: u64) {
        self.room.store(room, Ordering::Relaxed);
    }
}

impl array::Accounted for MemoryStore {}
impl array::Scrubbed for MemoryStore {}
impl array::Optimized for MemoryStore {}

impl Backing for MemoryStore {
    fn change(&self, change: Change) -> Result<(), StoreError> {
        if self.room.load(Ordering::Relaxed) == 0 {
            return Err(StoreError::Volume(VolumeError::NoSpace));
        }
        self.room.fetch_sub(1, Ordering::Relaxed);
        let Kept { config, volumes, handlings } = &mut *self.kept.lock();
        for change in change.volumes {
            match change {
                VolumeChange::Create { id, size } => {
                    assert!(volumes.insert(id, (size, false)).is_none(), "an id was used twice");
                }
                VolumeChange::Resize { id, size } => {
                    let old = volumes.insert(id, (size, false)).expect("what is resized is there");
                    assert!(!old.1, "a snapshot is resized");
                }
                VolumeChange::Clone { source, id, snapshot } => {
                    let (size, _) = volumes[&source];
                    assert!(volumes.insert(id, (size, snapshot)).is_none(), "an id, twice");
                    if let Some(handling) = handlings.get(&source).copied() {
                        handlings.insert(id, handling);
                    }
                }
                VolumeChange::Overwrite { source, destination } => {
                    let (size, _) = volumes[&source];
                    let old = volumes.insert(destination, (size, false)).expect("it is there");
                    assert!(!old.1, "a snapshot is overwritten");
                }
                VolumeChange::Handling { id, handling } => {
                    assert!(!volumes[&id].1, "a snapshot is handled in another way");
                    handlings.insert(id, handling);
                }
                VolumeChange::Destroy { id } => {
                    volumes.remove(&id).expect("what is destroyed is there");
                }
            }
        }
        for (key, value) in change.config {
            assert!(key.len() <= 255, "a key that is too long");
            match value {
                Some(value) => {
                    assert!(value.len() <= format::entry::CONFIG_VALUE_BYTES_MAX);
                    config.insert(key, value);
                }
                None => drop(config.remove(&key).expect("what is taken out was there")),
            }
        }
        Ok(())
    }

    fn config(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.kept.lock().config.clone().into_iter().collect()
    }

    fn allocate_volume_id(&self) -> VolumeId {
        VolumeId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    fn pool_status(&self) -> PoolStatus {
        PoolStatus { pool_id: *b"0123456789abcdef", ..PoolStatus::default() }
    }

    fn grow(&self, _: u64) -> Result<(), StoreError> {
        Err(StoreError::Size("a store in memory does not grow".into()))
    }

    fn volume_status(&self, id: VolumeId) -> Option<VolumeStatus> {
        let kept = self.kept.lock();
        let (size, snapshot) = *kept.volumes.get(&id)?;
        let handling = kept.handlings.get(&id).copied().unwrap_or_default();
        Some(VolumeStatus { id, size, mapped_bytes: 0, data_bytes: 0, snapshot, handling })
    }
}
