//! The disk of the models: one in memory, where others go on between any two blocks.

use std::io;
use std::sync::Arc;

use block::{Frame, FrameMut};

use super::options;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::tests::MemoryDisk;
use crate::{Durability, Store};

pub(super) struct ModelDisk {
    below: Arc<MemoryDisk>,
    /// How many blocks were moved: a look at it is where the scheduler lets others go on.
    moved: AtomicU64,
}

impl ModelDisk {
    pub(super) fn new(below: Arc<MemoryDisk>) -> Arc<Self> {
        Arc::new(Self { below, moved: AtomicU64::new(0) })
    }

    /// A copy, and the store that is found on it.
    pub(super) fn reopen(&self, durability: Durability) -> (Arc<Self>, Arc<Store>) {
        let disk = Self::new(self.below.copy());
        let store = Store::open(disk.clone(), options(durability)).unwrap();
        (disk, Arc::new(store))
    }

    /// A block as it is.
    pub(super) fn block(&self, block: u64) -> Frame {
        self.below.block(block)
    }

    fn give_way(&self) {
        self.moved.fetch_add(1, Ordering::Relaxed);
    }
}

impl sys::Disk for ModelDisk {
    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        for (offset, frame) in (offset_bytes..).step_by(4096).zip(frames.chunks_mut(1)) {
            self.give_way();
            self.below.read(offset, frame)?;
        }
        self.give_way();
        Ok(())
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        for (offset, frame) in (offset_bytes..).step_by(4096).zip(frames.chunks(1)) {
            self.give_way();
            self.below.write(offset, frame)?;
        }
        self.give_way();
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.give_way();
        Ok(())
    }

    fn flush_failures(&self) -> u64 {
        0
    }
}
