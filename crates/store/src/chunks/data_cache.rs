//! The cache of data.

use block::Frame;
use format::ChunkId;
use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use crate::chunks::pages::FastState;

/// The content of chunks. It hashes by a fixed seed, so that the same requests evict the same
/// blocks: a world of the simulator is the same each time it is run, in another process too.
pub(crate) type DataCache = Cache<ChunkId, Frame, UnitWeighter, FastState>;

/// One that holds so many blocks.
pub(crate) fn data_cache(blocks: usize) -> DataCache {
    let lifecycle = DefaultLifecycle::default();
    Cache::with(blocks, blocks as u64, UnitWeighter, FastState::default(), lifecycle)
}
