//! Metadata in memory under several locks, so that readers of different parts do not contend.

use crate::chunks::memory::{Counted, Kept, Sweep, Swept};
use crate::sync::RwLock;

/// The number of locks. In models readers and writers must contend.
pub(crate) const SHARDS: usize = if cfg!(feature = "models") { 4 } else { 64 };

/// What is under one lock.
pub(crate) trait Sweepable: Default + Send + Sync {
    /// Moves the hand some slots on, and returns how much was evicted.
    fn sweep(&mut self, kept: Kept) -> Swept;
    /// Adds its objects to a count.
    fn add_to(&self, counted: &mut Counted);
}

/// All shards, each with its own lock.
pub(crate) struct Shards<S>(Vec<RwLock<S>>);

impl<S: Sweepable> Shards<S> {
    pub(crate) fn new() -> Self {
        Self((0..SHARDS).map(|_| RwLock::default()).collect())
    }

    /// Returns a shard; the number is below [`SHARDS`].
    pub(crate) fn at(&self, shard: usize) -> &RwLock<S> {
        &self.0[shard]
    }
}

impl<S: Sweepable> Sweep for Shards<S> {
    fn sweep(&self, shard: usize, kept: Kept) -> Swept {
        let shard = self.0[shard].try_write();
        shard.map_or_else(Swept::default, |mut shard| shard.sweep(kept))
    }

    fn count(&self) -> Counted {
        let mut counted = Counted::default();
        self.0.iter().for_each(|shard| shard.read().add_to(&mut counted));
        counted
    }
}
