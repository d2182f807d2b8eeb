//! Reduction: the settings of a volume, and the background pass that finds what was missed.

use store::{Handling, OptimizeStatus, Store, VolumeStatus};

use crate::{Array, Error};

/// How data written to a volume is reduced. Data that is already stored stays as it is, and copies
/// share it whatever the setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// Blocks that are already stored are shared instead of stored again.
    pub deduplication: bool,
    /// Data that compresses is compressed.
    pub compression: bool,
}

impl Default for Reduction {
    fn default() -> Self {
        Self { deduplication: true, compression: true }
    }
}

impl Reduction {
    /// The setting of a volume in the store.
    pub(crate) fn of(status: Option<VolumeStatus>) -> Self {
        status.map_or_else(Self::default, |status| status.handling.into())
    }
}

impl From<Handling> for Reduction {
    fn from(handling: Handling) -> Self {
        Self { deduplication: !handling.unshared, compression: !handling.uncompressed }
    }
}

impl From<Reduction> for Handling {
    fn from(reduction: Reduction) -> Self {
        Self { unshared: !reduction.deduplication, uncompressed: !reduction.compression }
    }
}

/// A change to a volume's [`Reduction`]; `None` leaves a field as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReductionChange {
    /// See [`Reduction::deduplication`].
    pub deduplication: Option<bool>,
    /// See [`Reduction::compression`].
    pub compression: Option<bool>,
}

impl ReductionChange {
    /// The setting after the change.
    pub fn of(self, old: Reduction) -> Reduction {
        Reduction {
            deduplication: self.deduplication.unwrap_or(old.deduplication),
            compression: self.compression.unwrap_or(old.compression),
        }
    }
}

/// The background pass of a store. A store in memory can use the defaults.
pub trait Optimized {
    /// Begins a pass; `false` if one is running.
    fn optimize_start(&self) -> bool {
        false
    }

    /// Stops the running pass; `false` if there is none.
    fn optimize_stop(&self) -> bool {
        false
    }

    /// The state of the background pass.
    fn optimize_status(&self) -> OptimizeStatus {
        OptimizeStatus::default()
    }
}

impl Optimized for Store {
    fn optimize_start(&self) -> bool {
        Store::optimize(self)
    }

    fn optimize_stop(&self) -> bool {
        Store::optimize_stop(self)
    }

    fn optimize_status(&self) -> OptimizeStatus {
        Store::optimize_status(self)
    }
}

impl Array {
    /// Begins a background pass of reduction. It merges blocks that are stored twice, and
    /// recompresses better what was compressed quickly.
    ///
    /// # Errors
    /// `optimize_running` if one is running.
    pub fn start_optimize(&self) -> Result<OptimizeStatus, Error> {
        if !self.backing.optimize_start() {
            return Err(Error::OptimizeRunning);
        }
        Ok(self.backing.optimize_status())
    }

    /// Stops the running background pass, if any; what it has done is kept.
    pub fn stop_optimize(&self) -> OptimizeStatus {
        self.backing.optimize_stop();
        self.backing.optimize_status()
    }

    /// The state of the background pass of reduction.
    pub fn optimize(&self) -> OptimizeStatus {
        self.backing.optimize_status()
    }
}
