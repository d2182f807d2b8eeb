//! Models: the store's own code, with threads that a scheduler interleaves in any order. Another
//! thread may run at each lock, each atomic that orders something (`sync`), and each block that the
//! disk reads or writes.

mod disk;
mod generations;
mod reclaim;
mod role;
mod schedule;

use std::sync::Arc;

use block::VolumeId;

use crate::tests::{MemoryDisk, distinct, volume};
use crate::{Durability, OpenOptions, Store, Tuning};
use disk::ModelDisk;

/// Sectors in a block.
const BLOCK: u64 = 8;
const SEGMENT_BYTES: u64 = 64 << 10;
/// 64 segments, after the space of superblocks and the like.
const POOL_BYTES: u64 = (16 << 20) + 64 * SEGMENT_BYTES;
/// Sectors of the volume.
const VOLUME: u64 = 1024;

/// Returns the content of the block with a number: all differ from the first byte on.
fn stamp(number: u64) -> Vec<u8> {
    let mut bytes = distinct(BLOCK, number + 1);
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn options(durability: Durability) -> OpenOptions {
    OpenOptions { durability, memory_bytes: 0, tuning: Tuning::SMALL, ..OpenOptions::default() }
}

/// The initial pool of a model, made once.
struct Pool {
    disk: Arc<MemoryDisk>,
    volume: VolumeId,
}

impl Pool {
    /// Makes a pool with a volume; `fill` writes its content.
    fn new(fill: impl FnOnce(&Store, VolumeId)) -> Self {
        let disk = MemoryDisk::new(POOL_BYTES);
        Store::create_with_segments(&*disk, &[7; 64], SEGMENT_BYTES).unwrap();
        let store = Store::open(disk.clone(), options(Durability::Commit)).unwrap();
        let id = volume(&store, VOLUME);
        fill(&store, id);
        store.checkpoint().unwrap();
        Self { disk, volume: id }
    }

    /// Opens a copy of it, for one execution.
    fn open(&self, durability: Durability) -> (Arc<ModelDisk>, Store, VolumeId) {
        let disk = ModelDisk::new(self.disk.copy());
        let store = Store::open(disk.clone(), options(durability)).unwrap();
        (disk, store, self.volume)
    }
}
