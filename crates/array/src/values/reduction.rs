//! How a volume's data is reduced: the setting of a volume.

use store::{Handling, VolumeStatus};

/// How data written to a volume is reduced. Data that is already stored stays as it is, and copies
/// share it regardless of the setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// Blocks that are already stored are shared instead of stored again.
    pub deduplication: bool,
    /// Compressible data is compressed.
    pub compression: bool,
}

impl Default for Reduction {
    fn default() -> Self {
        Self { deduplication: true, compression: true }
    }
}

impl Reduction {
    /// Returns the setting of a volume in the store.
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
    /// Returns the setting after the change.
    pub fn of(self, old: Reduction) -> Reduction {
        Reduction {
            deduplication: self.deduplication.unwrap_or(old.deduplication),
            compression: self.compression.unwrap_or(old.compression),
        }
    }
}
