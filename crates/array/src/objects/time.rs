//! Times in records.

/// Array time and the wall clock at one point in time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeRecord {
    pub(crate) array_ms: u64,
    /// Since 1970.
    pub(crate) wall_ms: u64,
}

/// The eradication time of an object whose eradication has begun. It can't be recovered, because
/// parts of it may be gone.
pub(crate) const BEGUN_MS: u64 = 0;
