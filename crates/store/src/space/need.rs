//! What a job that waits for space needs it for: that decides how much is done to win some.
//!
//! A segment of which little is dead costs much to empty: with a share `d` dead, and `h` of what is
//! moved going to headers, `(1 - d) / (d - h)` bytes are moved for one that is won. At a sixteenth
//! that is 20, at a thirty-second 60, and at a sixty-fourth nothing is won any more but by chance.
//! So new data, for which a pool may just be too full, gets the first of these; what a full pool
//! promises to take all the same gets the last.

/// What space is needed for: for the last most is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Data where there was none, or where others share what was there.
    NewData,
    /// Data that takes the place of as much, what may make metadata, and ends.
    Upkeep,
}

impl Need {
    pub(crate) const ALL: [Self; 2] = [Self::NewData, Self::Upkeep];

    /// The share of a segment that must be dead for it to be emptied, where nothing else is left:
    /// one of so many parts.
    pub(crate) fn least_dead_divisor(self) -> u64 {
        match self {
            Self::NewData => 16,
            Self::Upkeep => 64,
        }
    }

    /// How long it waits for that: one of so many parts of [`crate::Store::work_bytes_max`].
    pub(crate) fn work_divisor(self) -> u64 {
        match self {
            Self::NewData => 4,
            Self::Upkeep => 1,
        }
    }
}

/// That a job waits for space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    /// The work that had been done when it began.
    pub(crate) from_work_bytes: u64,
    pub(crate) need: Need,
}
