//! The space of the pool: thresholds for unit attentions to hosts, and growing it.

use block::BLOCK_BYTES;
use store::{PoolStatus, StoreError};

use crate::{Array, Error};

/// The most thresholds.
pub const THRESHOLDS_MAX: usize = 4;

/// The percentages of pool use at which hosts get a unit attention: in ascending order, each from 1
/// to 99, at most four; empty for no unit attentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceThresholds(Vec<u8>);

impl SpaceThresholds {
    /// Checks and sorts them.
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
    /// Early enough to free or add space before writes fail.
    fn default() -> Self {
        Self(vec![80])
    }
}

impl Array {
    /// Makes the pool one of the latest version of the format while hosts use it; durable when it
    /// returns. Does nothing if it is that already. Earlier programs refuse the pool from then on.
    ///
    /// # Errors
    /// Those of the store.
    pub fn upgrade_pool(&self) -> Result<PoolStatus, Error> {
        let _turn = self.turn.lock();
        self.backing.upgrade()?;
        Ok(self.backing.pool_status())
    }

    /// Grows the pool to `capacity_bytes` (including its superblocks, as when it was made) while
    /// hosts use it; durable when it returns.
    ///
    /// # Errors
    /// `invalid_size` if it would not grow, or would be too big; those of the store.
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
