//! The possible faults of a device, and counts of their effects.

use std::time::Duration;

/// Whether calls of one kind are refused with EIO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refusal {
    /// None is refused.
    #[default]
    Never,
    /// This many are refused, then no more.
    Times(u32),
    /// All are refused.
    Always,
}

impl Refusal {
    /// Returns whether the current call is refused; counts it.
    pub fn refuses(&mut self) -> bool {
        match self {
            Self::Never | Self::Times(0) => false,
            Self::Times(left) => {
                *left -= 1;
                true
            }
            Self::Always => true,
        }
    }
}

/// The faults of a device; none by default.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// The additional latency of each read, write and flush.
    pub delay: Duration,
    /// No call ends, until this is over or the device is gone.
    pub hangs: bool,
    /// Reads that end with EIO.
    pub reads: Refusal,
    /// Writes that end with EIO, and do nothing.
    pub writes: Refusal,
    /// Flushes that end with EIO, and lose the data they should have kept, as on Linux.
    pub flushes: Refusal,
    /// Writes end with ENOSPC.
    pub is_full: bool,
    /// Each read has one wrong bit.
    pub lies: bool,
    /// All calls end with ENODEV.
    pub is_gone: bool,
}

/// Counts of a device's calls, by fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads, writes and flushes executed.
    pub calls: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Delayed calls.
    pub delayed: u64,
    /// Calls that hung for a while.
    pub hung: u64,
    /// Reads, writes and flushes that ended with EIO.
    pub refused: u64,
    /// Writes that ended with ENOSPC.
    pub full: u64,
    /// Reads with a wrong bit.
    pub lies: u64,
    /// Calls that ended with ENODEV.
    pub gone: u64,
    /// Blocks of 4 KiB that were written, not flushed, and lost.
    pub lost_blocks: u64,
    /// How often it was set back to what it had before.
    pub set_back: u64,
}

impl Counts {
    /// Adds the counts of another device.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.delayed += other.delayed;
        self.hung += other.hung;
        self.refused += other.refused;
        self.full += other.full;
        self.lies += other.lies;
        self.gone += other.gone;
        self.lost_blocks += other.lost_blocks;
        self.set_back += other.set_back;
    }
}
