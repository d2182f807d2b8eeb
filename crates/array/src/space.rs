//! The space of the pool: when hosts are told that it runs short, and making it bigger.

use block::BLOCK_BYTES;
use store::{PoolStatus, StoreError};

use crate::{Array, Error};

/// The most thresholds.
pub const THRESHOLDS_MAX: usize = 4;

/// At how many percent of the pool in use hosts are told of it: in ascending order, each from 1 to
/// 99, at most four; none where hosts shall not be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceThresholds(Vec<u8>);

impl SpaceThresholds {
    /// Checks them, and brings them in order.
    ///
    /// # Errors
    /// `invalid_threshold`.
    pub fn new(mut percents: Vec<u8>) -> Result<Self, Error> {
        let refuse = |text: String| Err(Error::invalid("invalid_threshold", text));
        percents.sort_unstable();
        percents.dedup();
        if percents.len() > THRESHOLDS_MAX {
            let text =
                format!("A pool has up to {THRESHOLDS_MAX} thresholds, not {}.", percents.len());
            return refuse(text);
        }
        if let Some(wrong) = percents.iter().find(|percent| !(1..=99).contains(*percent)) {
            return refuse(format!(
                "A threshold is from 1 to 99 percent of the pool, not {wrong}."
            ));
        }
        Ok(Self(percents))
    }

    /// In ascending order.
    pub fn percents(&self) -> &[u8] {
        &self.0
    }
}

impl Default for SpaceThresholds {
    /// Early enough to free or to add space before hosts are stopped.
    fn default() -> Self {
        Self(vec![80])
    }
}

impl Array {
    /// Makes the pool hold `capacity_bytes` (its superblocks included, as when it was made), while
    /// hosts use it; durable when it returns.
    ///
    /// # Errors
    /// `invalid_size` where it would not become bigger, or too big; those of the store.
    pub fn grow_pool(&self, capacity_bytes: u64) -> Result<PoolStatus, Error> {
        let _turn = self.turn.lock();
        let whole = capacity_bytes / BLOCK_BYTES * BLOCK_BYTES;
        self.backing.grow(whole).map_err(|error| match error {
            StoreError::Size(why) => {
                let text = format!("The pool can't become {capacity_bytes} bytes big: {why}.");
                Error::invalid("invalid_size", text)
            }
            other => other.into(),
        })?;
        Ok(self.backing.pool_status())
    }
}
