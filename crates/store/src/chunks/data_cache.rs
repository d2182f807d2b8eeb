//! The cache of data.

use block::Frame;
use format::ChunkId;
use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::chunks::pages::FastState;

/// The content of chunks. The hash seed is fixed, so that the same requests evict the same blocks:
/// a world of the simulator is the same in each run and process.
pub(crate) type DataCache = Cache<ChunkId, Frame, UnitWeighter, FastState>;

/// Creates a cache of this many blocks.
pub(crate) fn data_cache(blocks: usize) -> DataCache {
    let lifecycle = DefaultLifecycle::default();
    Cache::with(blocks, blocks as u64, UnitWeighter, FastState::default(), lifecycle)
}
