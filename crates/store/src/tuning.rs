//! Sizes that decide where boundaries are, and that a simulator makes small, so that it meets each
//! boundary thousands of times a second.

use format::map::Fanout;

/// Sizes of a store. Every pool has the default; another is for a simulator, and a pool that was
/// made with one must always be opened with the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// How many entries of a map's node are used.
    pub fanout: Fanout,
}

impl Tuning {
    /// That of every pool.
    pub const DEFAULT: Self = Self { fanout: Fanout::DEFAULT };
}

impl Default for Tuning {
    fn default() -> Self {
        Self::DEFAULT
    }
}
