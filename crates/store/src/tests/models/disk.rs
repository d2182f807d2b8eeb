//! The disk of the models: in memory, yielding to other threads before and after each block.

use std::io;
use std::sync::Arc;

use block::{Frame, FrameMut};

use super::options;
use crate::sync::yield_now;
use crate::tests::MemoryDisk;
use crate::{Durability, Store};

pub(super) struct ModelDisk {
    below: Arc<MemoryDisk>,
}

impl ModelDisk {
    pub(super) fn new(below: Arc<MemoryDisk>) -> Arc<Self> {
        Arc::new(Self { below })
    }

    /// Returns a copy, and the store opened from it.
    pub(super) fn reopen(&self, durability: Durability) -> (Arc<Self>, Arc<Store>) {
        let disk = Self::new(self.below.copy());
        let store = Store::open(disk.clone(), options(durability)).unwrap();
        (disk, Arc::new(store))
    }

    /// Returns a block's content.
    pub(super) fn block(&self, block: u64) -> Frame {
        self.below.block(block)
    }
}

impl sys::Disk for ModelDisk {
    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        for (offset, frame) in (offset_bytes..).step_by(4096).zip(frames.chunks_mut(1)) {
            yield_now();
            self.below.read(offset, frame)?;
        }
        yield_now();
        Ok(())
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        for (offset, frame) in (offset_bytes..).step_by(4096).zip(frames.chunks(1)) {
            yield_now();
            self.below.write(offset, frame)?;
        }
        yield_now();
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        yield_now();
        Ok(())
    }

    fn flush_failures(&self) -> u64 {
        0
    }
}
