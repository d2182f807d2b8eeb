//! Memory: one budget, what it is split into, and how metadata stays within its part.
//!
//! Table pages and map nodes that are as they are on the medium can leave memory at any time: who
//! wants one again reads it again. They leave in the order of a clock: each look at one sets its
//! *used* bit, which costs a load where it is set already; a hand goes round, clears the bits, and
//! takes what has none. The hand moves when something is put in, so that what makes the room is the
//! thread that has waited for the device anyway, and a look-up that finds its page pays nothing.
//!
//! What is **pinned** can't leave: pages and nodes that have changed since the last capture, and
//! those that a checkpoint has captured and not yet written. So a checkpoint is due when half of
//! the budget has changed, and when all of it is pinned new jobs wait ([`Memory::is_full`]) until a
//! checkpoint is written. What has joined the log before is still applied, a checkpoint loads the
//! directories above what has changed (a 256th of it), and a recovery may change as much as the log
//! behind its checkpoint says: by so much the budget can be exceeded for a while. So it can by what
//! changes were planned with that are not applied yet (`plans`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};

use block::BLOCK_BYTES;

use crate::MemoryStatus;
use crate::chunks::pages::GROUP_COST_BYTES;
use crate::chunks::plans::Plans;
use crate::chunks::shards::SHARDS;
use crate::sync::RwLock;
use crate::sync::atomic::AtomicU32;

/// Memory that a page takes: its frame, and what counts the references to that.
pub(crate) const PAGE_COST_BYTES: u64 = BLOCK_BYTES + 32;
/// Memory that a node takes: allocators have no size between 2048 and 2560 bytes for its 2064, and
/// its slot and its place in the index take some too.
pub(crate) const NODE_COST_BYTES: u64 = 2560 + 64;
/// Memory that a block in the cache takes, with its place in there.
const CACHED_COST_BYTES: u64 = BLOCK_BYTES + 128;

/// Bytes of the deduplication index that a block of the pool is worth.
const INDEX_BYTES_PER_BLOCK: u64 = 12;
/// Bytes of rows and map that a block of the pool may have, where nothing is shared: its row, a
/// 256th of a leaf, and the share of each in rows, directories and groups above them.
const METADATA_BYTES_PER_BLOCK: u64 = 32 + 10 + 8;
/// Metadata that is always allowed: what one small write touches, a few times.
const METADATA_BYTES_MIN: u64 = 16 * PAGE_COST_BYTES;
/// Blocks that are always kept.
const CACHED_BLOCKS_MIN: u64 = 16;

/// How many shards are looked at to make room: the next page that comes in goes on where this one
/// has stopped. It looks everywhere, twice, only if memory is exceeded by a sixteenth.
const SHARDS_SWEPT: usize = 64;
const EXCESS_MAX_DIVISOR: u64 = 16;

/// What the budget is split into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budgets {
    /// For blocks of data that were read or written.
    data_cache_bytes: u64,
    /// For map nodes and the pages of tables.
    pub(crate) metadata_bytes: u64,
    /// For the deduplication index.
    pub(crate) index_bytes: u64,
}

impl Budgets {
    /// Splits `memory_bytes` for a pool of `capacity_bytes`.
    ///
    /// The index gets what it takes to know every block, and no more than 40%: sampled, it still
    /// finds runs. Metadata gets what all of it takes, and no more than three quarters of the rest.
    /// That much, because 4 KiB of rows stand for 512 KiB of data: where the budget is scarce, a
    /// byte of metadata spares a hundred times the device reads that a byte of data does. And no
    /// less than a quarter, because snapshots have maps that no block of the pool stands for.
    pub(crate) fn split(memory_bytes: u64, capacity_bytes: u64) -> Self {
        let blocks = capacity_bytes / BLOCK_BYTES;
        let index_bytes = (blocks * INDEX_BYTES_PER_BLOCK).min(memory_bytes / 5 * 2);
        let rest = memory_bytes - index_bytes;
        let all = blocks * METADATA_BYTES_PER_BLOCK;
        let metadata_bytes = all.clamp(rest / 4, rest / 4 * 3).max(METADATA_BYTES_MIN);
        let data_cache_bytes = rest.saturating_sub(metadata_bytes);
        Self { data_cache_bytes, metadata_bytes, index_bytes }
    }

    /// For who looks at metadata only.
    pub(crate) fn of_metadata(metadata_bytes: u64) -> Self {
        let metadata_bytes = metadata_bytes.max(METADATA_BYTES_MIN);
        Self { data_cache_bytes: 0, metadata_bytes, index_bytes: 0 }
    }

    /// How many blocks of data may be kept.
    pub(crate) fn cached_blocks(&self) -> usize {
        (self.data_cache_bytes / CACHED_COST_BYTES).max(CACHED_BLOCKS_MIN) as usize
    }
}

/// Whose pages or nodes can leave memory.
pub(crate) trait Sweep: Send + Sync {
    /// Moves the hand of a shard some slots on, and returns how much has left. Does nothing where
    /// somebody else holds the shard just now.
    fn sweep(&self, shard: usize, kept: Kept) -> Swept;
    /// How many pages or nodes are in memory, and how often one was found there.
    fn count(&self) -> Counted;
}

/// What stays in memory beside what has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// Captures behind this one are not written yet.
    pub(crate) written: u32,
    /// Plans from this number on are not applied yet.
    pub(crate) oldest_plan: u64,
}

/// What one move of a hand has let go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Swept {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
}

/// What is in memory of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(super) pages: u64,
    pub(crate) nodes: u64,
    pub(crate) hits: u64,
}

/// What metadata is in memory, of all tables and nodes together.
pub(crate) struct Memory {
    limit_bytes: u64,
    held_bytes: AtomicU64,
    /// What has changed since the last capture.
    dirty_bytes: AtomicU64,
    /// What was captured and is not written yet.
    writing_bytes: AtomicU64,
    /// Second copies: what was captured, is not written yet, and has changed again.
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

    /// From here on what is in `shards` counts, and leaves when room is wanted.
    pub(crate) fn join(&self, shards: Arc<dyn Sweep>) {
        self.swept.write().push(shards);
    }

    /// Lets something go, if `bytes` more would be too much. Hold no lock of a shard: one that is
    /// held is passed over. Call it before something is put in, not after, so that what was put
    /// in is there for who wants it.
    pub(crate) fn make_room(&self, bytes: u64) {
        if self.excess_bytes(bytes) == 0 || self.pinned_bytes() >= self.held_bytes.load(Relaxed) {
            return;
        }
        let swept = self.swept.read();
        let written = self.written.load(Ordering::Acquire);
        let kept = Kept { written, oldest_plan: self.plans.oldest() };
        let all = swept.len() * SHARDS;
        // A locked instruction for each shard would cost more than the look at it.
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

    /// By how much `bytes` more would be too much.
    fn excess_bytes(&self, bytes: u64) -> u64 {
        let held = self.held_bytes.load(Relaxed) + self.copied_bytes.load(Relaxed);
        (held + bytes).saturating_sub(self.limit_bytes)
    }

    /// Room for a page that may be the first of its group.
    pub(crate) fn make_room_for_page(&self) {
        self.make_room(PAGE_COST_BYTES + GROUP_COST_BYTES);
    }

    /// So much was put in.
    pub(crate) fn hold(&self, bytes: u64) {
        self.held_bytes.fetch_add(bytes, Relaxed);
    }

    /// So much was taken out for good, and not to make room.
    pub(crate) fn drop_held(&self, bytes: u64) {
        self.held_bytes.fetch_sub(bytes, Relaxed);
    }

    /// Something that `capture` was the last to capture has changed for the first time since.
    pub(crate) fn dirtied(&self, bytes: u64, capture: u32) {
        self.dirty_bytes.fetch_add(bytes, Relaxed);
        if capture > self.written.load(Relaxed) {
            self.copied_bytes.fetch_add(bytes, Relaxed);
        }
    }

    /// Something that has changed was taken out for good.
    pub(crate) fn drop_dirty(&self, bytes: u64) {
        self.dirty_bytes.fetch_sub(bytes, Relaxed);
    }

    /// A checkpoint begins to capture. One at a time, under the writer's lock.
    pub(crate) fn begin_capture(&self) {
        self.captured.fetch_add(1, Relaxed);
    }

    /// Something that has changed was captured. Returns the capture's number.
    pub(crate) fn capture(&self, bytes: u64) -> u32 {
        self.dirty_bytes.fetch_sub(bytes, Relaxed);
        self.writing_bytes.fetch_add(bytes, Relaxed);
        self.captured.load(Relaxed)
    }

    /// All that was captured is on the medium, and can be read from there.
    pub(crate) fn end_capture(&self) {
        self.written.store(self.captured.load(Relaxed), Ordering::Release);
        self.writing_bytes.store(0, Relaxed);
        self.copied_bytes.store(0, Relaxed);
    }

    fn pinned_bytes(&self) -> u64 {
        self.dirty_bytes.load(Relaxed) + self.writing_bytes.load(Relaxed)
    }

    /// What has changed since the last capture.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes.load(Relaxed)
    }

    /// Whether nothing has changed since the last capture.
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty_bytes.load(Relaxed) == 0
    }

    /// Whether so much has changed that it should be written.
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        self.dirty_bytes.load(Relaxed) >= self.limit_bytes / 2
    }

    /// Whether nothing more may change before a checkpoint is written.
    pub(crate) fn is_full(&self) -> bool {
        self.pinned_bytes() >= self.limit_bytes
    }

    /// Something was read from the medium.
    pub(crate) fn missed(&self) {
        self.misses.fetch_add(1, Relaxed);
    }

    /// How often something was read from the device.
    pub(crate) fn misses(&self) -> u64 {
        self.misses.load(Relaxed)
    }

    /// The part of the status that is known here.
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

/// Counts events that many threads see, nearly: two at the same moment may count as one, which
/// costs a tenth of what an exact count would.
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
    fn a_small_pool_gets_what_it_takes_and_the_cache_the_rest() {
        let split = Budgets::split(GIB, 4 * GIB);
        assert_eq!(split.index_bytes, 12 << 20);
        assert_eq!(split.metadata_bytes, (GIB - (12 << 20)) / 4);
        let split = Budgets::split(GIB, 32 * GIB);
        assert_eq!(split.metadata_bytes, 400 << 20);
        assert_eq!(split.data_cache_bytes, GIB - (496 << 20));
    }

    #[test]
    fn a_large_pool_shares_what_there_is() {
        // A quarter of a GiB for a TiB.
        let split = Budgets::split(16 * GIB, 64 << 40);
        let total = split.index_bytes + split.metadata_bytes + split.data_cache_bytes;
        assert_eq!(total, 16 * GIB);
        assert_eq!(split.index_bytes, 16 * GIB / 5 * 2);
        assert!(split.metadata_bytes > 7 * GIB && split.data_cache_bytes > 2 * GIB);
    }

    #[test]
    fn there_is_always_something() {
        let split = Budgets::split(0, 1 << 50);
        assert_eq!(split.index_bytes, 0);
        assert_eq!(split.metadata_bytes, METADATA_BYTES_MIN);
        assert_eq!(split.cached_blocks(), 16);
    }
}
