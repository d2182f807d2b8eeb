//! A store in memory, for tests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use block::{SectorCount, VolumeId};
use parking_lot::Mutex;
use store::{Change, Handling, Incarnation, PoolStatus, StoreError, VolumeChange, VolumeStatus};

use crate::Backing;

/// The key-value space, and the volumes: their sizes, and whether they are snapshots.
type Kept = (BTreeMap<Vec<u8>, Vec<u8>>, HashMap<VolumeId, (SectorCount, bool)>);

/// A store in memory: applies a change wholly, or refuses it.
#[derive(Default)]
pub(super) struct MemoryStore {
    pub(super) kept: Mutex<Kept>,
    /// Volumes and snapshots with settings of reduction other than the default.
    handlings: Mutex<HashMap<VolumeId, Handling>>,
    next_id: AtomicU64,
    pub(super) refuses: AtomicBool,
    /// Whether only changes are refused that add to the configuration.
    pub(super) refuses_additions: AtomicBool,
    /// While a test holds this lock, changes wait, like those for a device that refuses writes.
    pub(super) device: Mutex<()>,
    /// Volumes whose records can't be read.
    lost: Mutex<BTreeSet<VolumeId>>,
    /// The number of openings: the number of its incarnation.
    pub(super) openings: AtomicU64,
    /// Whether it is a pool of version 2, which does not store the incarnation.
    pub(super) is_old: AtomicBool,
    /// The keys of each change, in their order.
    pub(super) changes: Mutex<Vec<Vec<Vec<u8>>>>,
}

impl MemoryStore {
    /// Makes the store's record of a volume unreadable.
    pub(super) fn lose(&self, id: VolumeId) {
        self.kept.lock().1.remove(&id).expect("the volume is there");
        self.lost.lock().insert(id);
    }
}

impl crate::Accounted for MemoryStore {}
impl crate::Scrubbed for MemoryStore {}
impl crate::Optimized for MemoryStore {}

impl Backing for MemoryStore {
    fn incarnation(&self) -> Incarnation {
        let is_stored = !self.is_old.load(Ordering::Relaxed);
        Incarnation { number: self.openings.load(Ordering::Relaxed), is_stored }
    }

    fn raise_incarnation(&self, least: u64) -> Result<(), StoreError> {
        self.openings.fetch_max(least, Ordering::Relaxed);
        Ok(())
    }

    fn change(&self, change: Change) -> Result<(), StoreError> {
        drop(self.device.lock());
        if self.refuses.load(Ordering::Relaxed) {
            return Err(StoreError::Volume(block::VolumeError::NoSpace));
        }
        let adds = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| {
            value.is_some() && !self.kept.lock().0.contains_key(key)
        };
        if self.refuses_additions.load(Ordering::Relaxed) && change.config.iter().any(adds) {
            return Err(StoreError::Volume(block::VolumeError::NoSpace));
        }
        let rows = change.config.iter().chain(&change.notes);
        let keys = rows.map(|(key, _)| key.clone()).collect();
        self.changes.lock().push(keys);
        let (config, volumes) = &mut *self.kept.lock();
        let mut handlings = self.handlings.lock();
        for change in change.volumes {
            match change {
                VolumeChange::Create { id, size } => {
                    assert!(volumes.insert(id, (size, false)).is_none(), "an id was used twice");
                }
                VolumeChange::Resize { id, size } => {
                    let old = volumes.insert(id, (size, false)).expect("the volume is there");
                    assert!(!old.1, "a snapshot was resized");
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
                    let old = volumes.insert(destination, (size, false));
                    assert!(source != destination && old.is_some_and(|(_, snapshot)| !snapshot));
                }
                VolumeChange::Handling { id, handling } => {
                    assert!(!volumes[&id].1, "a snapshot is handled in another way");
                    handlings.insert(id, handling);
                }
                VolumeChange::Destroy { id } => {
                    assert!(volumes.remove(&id).is_some(), "destroyed twice");
                }
            }
        }
        for (key, value) in change.config.into_iter().chain(change.notes) {
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
        let (size, snapshot) = *self.kept.lock().1.get(&id)?;
        let handling = self.handlings.lock().get(&id).copied().unwrap_or_default();
        Some(VolumeStatus { id, size, mapped_bytes: 0, data_bytes: 0, snapshot, handling })
    }

    fn is_lost(&self, id: VolumeId) -> bool {
        self.lost.lock().contains(&id)
    }
}
