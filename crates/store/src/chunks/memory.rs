//! Memory: one budget, its division, and how metadata stays within its part.
//!
//! Clean table pages and map nodes can be evicted at any time, and are read again when needed. The
//! eviction policy is a clock: each access sets a *used* bit, which costs a load if it is set
//! already; a hand goes around, clears the bits, and evicts what has none. The hand moves when
//! something is added, so the thread that makes room is the one that has waited for the device
//! anyway, and a hit costs nothing.
//!
//! What is **pinned** can't be evicted: pages and nodes that have changed since the last capture,
//! and those that a checkpoint has captured and not yet written. So a checkpoint is due when half
//! of the budget has changed, and when all of it is pinned new jobs wait ([`Memory::is_full`])
//! until a checkpoint is written. The budget can be exceeded temporarily: what has joined the log
//! before is still applied, a checkpoint loads the directories above changed pages (a 256th of
//! them), a recovery may change as much as the log after its checkpoint requires, and metadata with
//! which unapplied changes were planned stays (`plans`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};

use block::BLOCK_BYTES;

use crate::MemoryStatus;
use crate::chunks::pages::GROUP_COST_BYTES;
use crate::chunks::plans::Plans;
use crate::chunks::shards::SHARDS;
use crate::sync::RwLock;
use crate::sync::atomic::AtomicU32;

/// The memory of a page: its frame, and its reference count.
pub(crate) const PAGE_COST_BYTES: u64 = BLOCK_BYTES + 32;
/// The memory of a node: allocators have no size between 2048 and 2560 bytes for its 2064; its slot
/// and its index entry are added.
pub(crate) const NODE_COST_BYTES: u64 = 2560 + 64;
/// The memory of a block in the cache, with its entry.
const CACHED_COST_BYTES: u64 = BLOCK_BYTES + 128;

/// Bytes of the deduplication index per block of the pool.
const INDEX_BYTES_PER_BLOCK: u64 = 12;
/// Bytes of rows and map per block of the pool, if nothing is shared: its row, a 256th of a leaf,
/// and its share of rows, directories and groups above them.
const METADATA_BYTES_PER_BLOCK: u64 = 32 + 10 + 8;
/// The minimum for metadata: what one small write touches, a few times.
const METADATA_BYTES_MIN: u64 = 16 * PAGE_COST_BYTES;
/// The minimum number of cached blocks.
const CACHED_BLOCKS_MIN: u64 = 16;

/// How many shards are searched to make room; the next page that is added continues where this
/// search stopped. Only if the budget is exceeded by a sixteenth are all shards searched, twice.
const SHARDS_SWEPT: usize = 64;
const EXCESS_MAX_DIVISOR: u64 = 16;

/// The division of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budgets {
    /// For data blocks that were read or written.
    data_cache_bytes: u64,
    /// For map nodes and table pages.
    pub(crate) metadata_bytes: u64,
    /// For the deduplication index.
    pub(crate) index_bytes: u64,
}

impl Budgets {
    /// Divides `memory_bytes` for a pool of `capacity_bytes`.
    ///
    /// The index gets what it needs to know every block, and at most 40%: when it samples, it still
    /// finds runs. Metadata gets what all of it needs, but at most three quarters of the rest. That
    /// much, because 4 KiB of rows describe 512 KiB of data: if memory is scarce, a byte of
    /// metadata saves a hundred times as many device reads as a byte of data. And at least a
    /// quarter, because snapshots have maps in addition to those of the pool's blocks.
    pub(crate) fn split(memory_bytes: u64, capacity_bytes: u64) -> Self {
        let blocks = capacity_bytes / BLOCK_BYTES;
        let index_bytes = (blocks * INDEX_BYTES_PER_BLOCK).min(memory_bytes / 5 * 2);
        let rest = memory_bytes - index_bytes;
        let all = blocks * METADATA_BYTES_PER_BLOCK;
        let metadata_bytes = all.clamp(rest / 4, rest / 4 * 3).max(METADATA_BYTES_MIN);
        let data_cache_bytes = rest.saturating_sub(metadata_bytes);
        Self { data_cache_bytes, metadata_bytes, index_bytes }
    }

    /// For users of metadata only.
    pub(crate) fn of_metadata(metadata_bytes: u64) -> Self {
        let metadata_bytes = metadata_bytes.max(METADATA_BYTES_MIN);
        Self { data_cache_bytes: 0, metadata_bytes, index_bytes: 0 }
    }

    /// Returns how many data blocks may be cached.
    pub(crate) fn cached_blocks(&self) -> usize {
        (self.data_cache_bytes / CACHED_COST_BYTES).max(CACHED_BLOCKS_MIN) as usize
    }
}

/// A set of evictable pages or nodes.
pub(crate) trait Sweep: Send + Sync {
    /// Moves the hand of a shard some slots on, and returns how much was evicted. Does nothing if
    /// another thread holds the shard.
    fn sweep(&self, shard: usize, kept: Kept) -> Swept;
    /// Returns how many pages or nodes are in memory, and the number of hits.
    fn count(&self) -> Counted;
}

/// What stays in memory in addition to changed metadata.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// Captures after this one are not written yet.
    pub(crate) written: u32,
    /// Plans from this number on are not applied yet.
    pub(crate) oldest_plan: u64,
}

/// What one move of a hand has evicted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Swept {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
}

/// The number of objects of one kind in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(super) pages: u64,
    pub(crate) nodes: u64,
    pub(crate) hits: u64,
}

/// The metadata in memory, of all tables and nodes together.
pub(crate) struct Memory {
    limit_bytes: u64,
    held_bytes: AtomicU64,
    /// What has changed since the last capture.
    dirty_bytes: AtomicU64,
    /// What was captured and is not written yet.
    writing_bytes: AtomicU64,
    /// Second instances in memory: captured, not written yet, and changed again.
    copied_bytes: AtomicU64,
    /// The number of the last capture, and of the last one that is written.
    captured: AtomicU32,
    written: AtomicU32,
    hand: AtomicUsize,
    /// What planned changes need.
    pub(crate) plans: Arc<Plans>,
    misses: AtomicU64,
    evictions: AtomicU64,
    swept: RwLock<Vec<Arc<dyn Sweep>>>,
}

impl Memory {
    pub(crate) fn new(limit_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            limit_bytes,
            held_bytes: AtomicU64::new(0),
            dirty_bytes: AtomicU64::new(0),
            writing_bytes: AtomicU64::new(0),
            copied_bytes: AtomicU64::new(0),
            captured: AtomicU32::new(0),
            written: AtomicU32::new(0),
            hand: AtomicUsize::new(0),
            plans: Arc::default(),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            swept: RwLock::new(Vec::new()),
        })
    }

    /// Adds `shards` to what is counted and evicted.
    pub(crate) fn join(&self, shards: Arc<dyn Sweep>) {
        self.swept.write().push(shards);
    }

    /// Evicts something if `bytes` more would exceed the budget. Call it without holding a lock of
    /// a shard, because a locked one is skipped; and before something is added, not after, so that
    /// it is not evicted at once.
    pub(crate) fn make_room(&self, bytes: u64) {
        if self.excess_bytes(bytes) == 0 || self.pinned_bytes() >= self.held_bytes.load(Relaxed) {
            return;
        }
        let swept = self.swept.read();
        let written = self.written.load(Ordering::Acquire);
        let kept = Kept { written, oldest_plan: self.plans.oldest() };
        let all = swept.len() * SHARDS;
        // An atomic read-modify-write for each shard would cost more than checking the shard.
        let first = self.hand.load(Relaxed);
        let mut turns = 0;
        while turns < 2 * all {
            let at = (first + turns) % all;
            turns += 1;
            let gone = swept[at % swept.len()].sweep(at / swept.len(), kept);
            if gone.bytes > 0 {
                self.held_bytes.fetch_sub(gone.bytes, Relaxed);
                self.evictions.fetch_add(gone.count, Relaxed);
            }
            let excess = self.excess_bytes(bytes);
            let patient = excess <= self.limit_bytes / EXCESS_MAX_DIVISOR;
            if excess == 0 || patient && turns > SHARDS_SWEPT {
                break;
            }
        }
        if self.excess_bytes(bytes) > 0 {
            self.plans.want();
        }
        self.hand.store((first + turns) % all, Relaxed);
    }

    /// Returns by how much `bytes` more would exceed the budget.
    fn excess_bytes(&self, bytes: u64) -> u64 {
        let held = self.held_bytes.load(Relaxed) + self.copied_bytes.load(Relaxed);
        (held + bytes).saturating_sub(self.limit_bytes)
    }

    /// Makes room for a page that may be the first of its group.
    pub(crate) fn make_room_for_page(&self) {
        self.make_room(PAGE_COST_BYTES + GROUP_COST_BYTES);
    }

    /// Counts what was added.
    pub(crate) fn hold(&self, bytes: u64) {
        self.held_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts what was removed permanently, not evicted.
    pub(crate) fn drop_held(&self, bytes: u64) {
        self.held_bytes.fetch_sub(bytes, Relaxed);
    }

    /// Counts the first change of something since `capture`, the last to capture it.
    pub(crate) fn dirtied(&self, bytes: u64, capture: u32) {
        self.dirty_bytes.fetch_add(bytes, Relaxed);
        if capture > self.written.load(Relaxed) {
            self.copied_bytes.fetch_add(bytes, Relaxed);
        }
    }

    /// Counts the permanent removal of something changed.
    pub(crate) fn drop_dirty(&self, bytes: u64) {
        self.dirty_bytes.fetch_sub(bytes, Relaxed);
    }

    /// Begins a capture by a checkpoint. One at a time, under the writer's lock.
    pub(crate) fn begin_capture(&self) {
        self.captured.fetch_add(1, Relaxed);
    }

    /// Counts the capture of something changed. Returns the capture's number.
    pub(crate) fn capture(&self, bytes: u64) -> u32 {
        self.dirty_bytes.fetch_sub(bytes, Relaxed);
        self.writing_bytes.fetch_add(bytes, Relaxed);
        self.captured.load(Relaxed)
    }

    /// Ends a capture: everything captured is on the medium, and can be read from there.
    pub(crate) fn end_capture(&self) {
        self.written.store(self.captured.load(Relaxed), Ordering::Release);
        self.writing_bytes.store(0, Relaxed);
        self.copied_bytes.store(0, Relaxed);
    }

    fn pinned_bytes(&self) -> u64 {
        self.dirty_bytes.load(Relaxed) + self.writing_bytes.load(Relaxed)
    }

    /// Returns the bytes that have changed since the last capture.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes.load(Relaxed)
    }

    /// Returns whether nothing has changed since the last capture.
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty_bytes.load(Relaxed) == 0
    }

    /// Returns whether so much has changed that it should be written.
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        self.dirty_bytes.load(Relaxed) >= self.limit_bytes / 2
    }

    /// Returns whether nothing more may change before a checkpoint is written.
    pub(crate) fn is_full(&self) -> bool {
        self.pinned_bytes() >= self.limit_bytes
    }

    /// Counts a read from the medium.
    pub(crate) fn missed(&self) {
        self.misses.fetch_add(1, Relaxed);
    }

    /// Returns how often metadata was read from the device.
    pub(crate) fn misses(&self) -> u64 {
        self.misses.load(Relaxed)
    }

    /// Returns the part of the status that is known here.
    pub(crate) fn status(&self, budgets: &Budgets) -> MemoryStatus {
        let counted = self.swept.read().iter().map(|shards| shards.count()).fold(
            Counted::default(),
            |sum, part| Counted {
                pages: sum.pages + part.pages,
                nodes: sum.nodes + part.nodes,
                hits: sum.hits + part.hits,
            },
        );
        MemoryStatus {
            data_cache_limit_bytes: budgets.data_cache_bytes,
            metadata_limit_bytes: self.limit_bytes,
            index_limit_bytes: budgets.index_bytes,
            data_cache_bytes: 0,
            metadata_bytes: self.held_bytes.load(Relaxed) + self.copied_bytes.load(Relaxed),
            dirty_bytes: self.dirty_bytes.load(Relaxed),
            writing_bytes: self.writing_bytes.load(Relaxed),
            page_count: counted.pages,
            node_count: counted.nodes,
            hits: counted.hits,
            misses: self.misses.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
        }
    }
}

/// An approximate counter for many threads: two simultaneous events may count as one, which costs a
/// tenth of an exact count.
#[derive(Debug, Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    pub(crate) fn add(&self) {
        self.0.store(self.0.load(Relaxed).wrapping_add(1), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn metadata_of_a_small_pool_fits_and_the_cache_gets_the_rest() {
        let split = Budgets::split(GIB, 4 * GIB);
        assert_eq!(split.index_bytes, 12 << 20);
        assert_eq!(split.metadata_bytes, (GIB - (12 << 20)) / 4);
        let split = Budgets::split(GIB, 32 * GIB);
        assert_eq!(split.metadata_bytes, 400 << 20);
        assert_eq!(split.data_cache_bytes, GIB - (496 << 20));
    }

    #[test]
    fn a_large_pool_divides_its_budget() {
        // A quarter of a GiB for a TiB.
        let split = Budgets::split(16 * GIB, 64 << 40);
        let total = split.index_bytes + split.metadata_bytes + split.data_cache_bytes;
        assert_eq!(total, 16 * GIB);
        assert_eq!(split.index_bytes, 16 * GIB / 5 * 2);
        assert!(split.metadata_bytes > 7 * GIB && split.data_cache_bytes > 2 * GIB);
    }

    #[test]
    fn the_minimum_is_never_zero() {
        let split = Budgets::split(0, 1 << 50);
        assert_eq!(split.index_bytes, 0);
        assert_eq!(split.metadata_bytes, METADATA_BYTES_MIN);
        assert_eq!(split.cached_blocks(), 16);
    }
}
