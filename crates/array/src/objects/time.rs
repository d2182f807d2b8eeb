//! Times in records.

/// Array time and the wall clock at one moment, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRecord {
    pub(crate) array_ms: u64,
    /// Since 1970.
    pub(crate) wall_ms: u64,
}

/// The time at which an object is eradicated, if that has begun. It can't be recovered, as parts of
/// it may be gone.
pub(crate) const BEGUN_MS: u64 = 0;
