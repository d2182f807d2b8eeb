//! Automatic reclaim of 6.5: blocks that files no longer use are unmapped slowly in the background,
//! and are free after that (002, "Automated UNMAP").
//!
//! VMFS 6 records on disk what is still to be unmapped. Here the host that has freed the blocks
//! keeps them taken until they are unmapped. What it can't unmap (because the datastore gets full
//! meanwhile, is unmounted, or the array refuses) is free nevertheless, and the array learns of it
//! when space is reclaimed manually. A host that dies leaves what it has not processed as a leak.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::Duration;

use futures::lock::Mutex;

use super::detached::ranges_of;
use super::error::DatastoreError;
use super::layout::{BLOCK_BYTES, Pool};
use super::mount::Core;
use crate::engine::Task;

/// The fraction of a second for which blocks are unmapped together.
const BATCHES_A_SECOND: u32 = 4;

/// Why a host does not reclaim automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAutoReclaim {
    /// Not before 6.5 (002).
    #[error("automatic reclaim is off: ESXi before 6.5 does not support it")]
    Version,
    /// It is switched off.
    #[error("automatic reclaim is off: the space reclamation priority is none")]
    Priority,
    /// VMFS 6 unmaps by 1 MB: the array's optimal granularity must divide that.
    #[error("automatic reclaim is off: the UNMAP granularity of {0} bytes does not divide 1 MiB")]
    Granularity(u64),
    /// The array does not unmap, as far as is known.
    #[error("automatic reclaim is off: the array has refused UNMAP")]
    Refused,
}

impl NoAutoReclaim {
    /// Returns an error if VMFS 6 would not unmap automatically on a device with this optimal
    /// granularity in bytes; 0 if the device does not report one.
    pub(super) fn check_granularity(bytes: u64) -> Result<(), Self> {
        // A granularity of over 1 MiB never divides it.
        match bytes == 0 || BLOCK_BYTES.is_multiple_of(bytes) {
            true => Ok(()),
            false => Err(Self::Granularity(bytes)),
        }
    }
}

/// What automatic reclaim has done since the mount, in blocks of the datastore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct AutoReclaimed {
    /// Not unmapped yet, and so not free.
    pub pending_blocks: u64,
    /// Unmapped.
    pub unmapped_blocks: u64,
    /// Free, but not unmapped.
    pub skipped_blocks: u64,
    /// Could not be freed: leaks.
    pub leaked_blocks: u64,
}

/// The state of automatic reclaim in a mount.
#[derive(Default)]
pub(super) struct AutoReclaim {
    pending: RefCell<VecDeque<u32>>,
    /// Locked while some are unmapped and given back.
    turn: Mutex<()>,
    task: RefCell<Option<Task<()>>>,
    is_running: Cell<bool>,
    done: Cell<AutoReclaimed>,
}

impl AutoReclaim {
    pub(super) fn done(&self) -> AutoReclaimed {
        let pending_blocks = self.pending.borrow().len() as u64;
        AutoReclaimed { pending_blocks, ..self.done.get() }
    }

    fn note(&self, change: impl FnOnce(&mut AutoReclaimed)) {
        let mut done = self.done.get();
        change(&mut done);
        self.done.set(done);
    }
}

impl Core {
    /// Handles blocks to which no file refers any longer: they are free, now or after they are
    /// unmapped.
    pub(super) async fn let_go(self: &Rc<Self>, blocks: Vec<u32>) -> Result<(), DatastoreError> {
        if self.disk.medium.auto_reclaim().is_err() {
            return self.give_back(Pool::Data, blocks).await;
        }
        self.auto_reclaim.pending.borrow_mut().extend(blocks);
        if !self.auto_reclaim.is_running.replace(true) {
            let task = self.disk.medium.spawn(Box::pin(reclaim(Rc::downgrade(self))));
            *self.auto_reclaim.task.borrow_mut() = Some(task);
        }
        Ok(())
    }

    /// Unmaps some, and gives them back; returns how long to wait before the next, if there are
    /// any.
    async fn reclaim_some(&self) -> Option<Duration> {
        let _turn = self.auto_reclaim.turn.lock().await;
        // It may have been switched off meanwhile, or been refused.
        let rate = self.disk.medium.auto_reclaim().ok();
        let batch = rate.map_or(u32::MAX, |rate| rate.get().div_ceil(BATCHES_A_SECOND));
        let blocks = self.take_pending(batch);
        if blocks.is_empty() {
            return None;
        }
        let count = blocks.len() as u64;
        let is_unmapped = rate.is_some() && self.unmap(&blocks).await.is_ok();
        let is_free = self.give_back(Pool::Data, blocks).await.is_ok();
        self.auto_reclaim.note(|done| match (is_free, is_unmapped) {
            (false, _) => done.leaked_blocks += count,
            (true, true) => done.unmapped_blocks += count,
            (true, false) => done.skipped_blocks += count,
        });
        Some(rate.map_or(Duration::ZERO, |rate| Duration::from_secs(count) / rate.get()))
    }

    fn take_pending(&self, most: u32) -> Vec<u32> {
        let mut pending = self.auto_reclaim.pending.borrow_mut();
        let count = pending.len().min(most as usize);
        pending.drain(..count).collect()
    }

    async fn unmap(&self, blocks: &[u32]) -> Result<(), DatastoreError> {
        self.disk.may_write()?;
        let ranges = ranges_of(&self.layout, blocks);
        let ranges: Vec<_> = ranges.iter().map(|range| (range.offset_bytes, range.bytes)).collect();
        Ok(self.disk.medium.unmap(&ranges).await?)
    }

    /// Frees everything that is still to be unmapped, without unmapping it; returns whether there
    /// was anything.
    pub(super) async fn skip_pending(&self) -> Result<bool, DatastoreError> {
        let _turn = self.auto_reclaim.turn.lock().await;
        let blocks = self.take_pending(u32::MAX);
        let count = blocks.len() as u64;
        let end = self.give_back(Pool::Data, blocks).await;
        self.auto_reclaim.note(|done| match end.is_ok() {
            true => done.skipped_blocks += count,
            false => done.leaked_blocks += count,
        });
        end.map(|()| count > 0)
    }
}

/// Continues until nothing is left, or the mount is gone.
async fn reclaim(core: Weak<Core>) {
    while let Some(core) = core.upgrade() {
        let Some(pause) = core.reclaim_some().await else {
            core.auto_reclaim.is_running.set(false);
            return;
        };
        let sleep = core.disk.medium.sleep(pause);
        drop(core);
        sleep.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_granularity_must_divide_a_block() {
        for bytes in [0, 512, 4096, 64 << 10, 1 << 20] {
            assert_eq!(NoAutoReclaim::check_granularity(bytes), Ok(()), "{bytes}");
        }
        for bytes in [768 << 10, 1536, 2 << 20, 16 << 20] {
            let wrong = Err(NoAutoReclaim::Granularity(bytes));
            assert_eq!(NoAutoReclaim::check_granularity(bytes), wrong);
        }
    }
}
