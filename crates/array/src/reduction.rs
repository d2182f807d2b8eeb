//! Reduction: what it does with a volume, and the background pass that finds what was missed.

use store::{Handling, OptimizeStatus, Store, VolumeStatus};

use crate::{Array, Error};

/// What reduction does with what is written to a volume. What is stored already stays as it is, and
/// copies share it whatever this says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// Blocks that are stored already are named, not stored again.
    pub deduplication: bool,
    /// What compresses is compressed.
    pub compression: bool,
}

impl Default for Reduction {
    fn default() -> Self {
        Self { deduplication: true, compression: true }
    }
}

impl Reduction {
    /// That of a volume, as the store has it.
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

/// What to change of a volume's [`Reduction`]; `None` leaves it as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReductionChange {
    /// See [`Reduction::deduplication`].
    pub deduplication: Option<bool>,
    /// See [`Reduction::compression`].
    pub compression: Option<bool>,
}

impl ReductionChange {
    /// What it makes of a setting.
    pub fn of(self, old: Reduction) -> Reduction {
        Reduction {
            deduplication: self.deduplication.unwrap_or(old.deduplication),
            compression: self.compression.unwrap_or(old.compression),
        }
    }
}

/// What is needed of a store for the background pass. A store in memory needs nothing of it.
pub trait Optimized {
    /// Begins a pass; `false` if one is under way.
    fn optimize_start(&self) -> bool {
        false
    }

    /// Ends the pass that is under way; `false` if none is.
    fn optimize_stop(&self) -> bool {
        false
    }

    /// How the background pass stands.
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
    /// Begins a background pass of reduction: what was stored twice is stored once from then on,
    /// and what was compressed quickly is compressed well.
    ///
    /// # Errors
    /// `optimize_running` if one is under way.
    pub fn start_optimize(&self) -> Result<OptimizeStatus, Error> {
        if !self.backing.optimize_start() {
            return Err(Error::OptimizeRunning);
        }
        Ok(self.backing.optimize_status())
    }

    /// Ends the background pass that is under way, if one is; what it has done stays done.
    pub fn stop_optimize(&self) -> OptimizeStatus {
        self.backing.optimize_stop();
        self.backing.optimize_status()
    }

    /// How the background pass of reduction stands.
    pub fn optimize(&self) -> OptimizeStatus {
        self.backing.optimize_status()
    }
}
