//! The commands that a host sends to an in-memory disk.

/// Commands of a host, by their kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commands {
    pub reads: u64,
    pub writes: u64,
    pub swaps: u64,
    pub reserves: u64,
    pub releases: u64,
}
