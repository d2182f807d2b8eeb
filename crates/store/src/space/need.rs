//! What a waiting job needs space for: this determines how much is done to free some.
//!
//! A segment with few dead bytes is expensive to empty: if a fraction `d` is dead, and `h` of what
//! is moved goes to headers, `(1 - d) / (d - h)` bytes are moved for each byte freed. At a
//! sixteenth that is 20, at a thirty-second 60, and at a sixty-fourth almost nothing is freed. So
//! new data, for which a pool may simply be too full, gets the first limit; what a full pool
//! promises to accept nevertheless gets the last.

/// What space is needed for; most is done for the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Data where there was none, or where the old data is shared.
    NewData,
    /// Data that replaces as much, what may create metadata, and ends.
    Upkeep,
}

impl Need {
    pub(crate) const ALL: [Self; 2] = [Self::NewData, Self::Upkeep];

    /// Returns the divisor for the fraction of a segment that must be dead for it to be emptied
    /// when there are no better ones.
    pub(crate) fn least_dead_divisor(self) -> u64 {
        match self {
            Self::NewData => 16,
            Self::Upkeep => 64,
        }
    }

    /// Returns the divisor for how long it waits, as a fraction of
    /// [`crate::Store::work_bytes_max`].
    pub(crate) fn work_divisor(self) -> u64 {
        match self {
            Self::NewData => 4,
            Self::Upkeep => 1,
        }
    }
}

/// A wait for space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// The work done until it began.
    pub(crate) from_work_bytes: u64,
    pub(crate) need: Need,
}
