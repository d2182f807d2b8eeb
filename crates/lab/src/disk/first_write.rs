//! The first write to a block: zeroes it once, for any number of concurrent writes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use futures::lock::Mutex;

use super::{DiskError, VirtualDisk, zero};
use crate::datastore::{AllocateAs, BLOCK_BYTES, BlockState, Placement};

/// The blocks that are being zeroed.
#[derive(Debug, Default)]
pub(super) struct BlockLocks(RefCell<HashMap<u64, Rc<Mutex<()>>>>);

impl BlockLocks {
    fn of(&self, block: u64) -> Rc<Mutex<()>> {
        self.0.borrow_mut().entry(block).or_default().clone()
    }

    /// Drops a lock that no task waits for.
    fn forget(&self, block: u64) {
        let mut locks = self.0.borrow_mut();
        if locks.get(&block).is_some_and(|lock| Rc::strong_count(lock) == 1) {
            locks.remove(&block);
        }
    }
}

impl VirtualDisk {
    /// Makes sure that a block is present and zeroed; returns its location on the device.
    pub(super) async fn begin_block(&self, block: u64) -> Result<u64, DiskError> {
        let lock = self.0.first_writes.of(block);
        let guard = lock.lock().await;
        let begun = self.begin_locked_block(block).await;
        drop(guard);
        drop(lock);
        self.0.first_writes.forget(block);
        begun
    }

    async fn begin_locked_block(&self, block: u64) -> Result<u64, DiskError> {
        let file = self.file();
        let mut state = self.state(block).await?;
        if state == BlockState::Absent {
            let as_it_comes = Placement::AsItComes;
            file.allocate(block, 1, AllocateAs::ToBeZeroed, as_it_comes).await?;
            state = self.state(block).await?;
        }
        match state {
            BlockState::Present(offset) => Ok(offset),
            BlockState::ToBeZeroed(offset) => {
                zero(&self.place().device, offset, BLOCK_BYTES).await?;
                // Before the guest's write: if that were acknowledged before this is recorded, and
                // the host died, it would read as zeros again.
                file.mark_present(block, 1).await?;
                Ok(offset)
            }
            BlockState::Absent => Err(DiskError::OutOfRange {
                offset: block * BLOCK_BYTES,
                end: (block + 1) * BLOCK_BYTES,
                disk_bytes: self.bytes(),
            }),
        }
    }

    async fn state(&self, block: u64) -> Result<BlockState, DiskError> {
        let extents = self.file().extents(block, 1).await?;
        Ok(extents.first().map_or(BlockState::Absent, |extent| extent.state))
    }
}
