//! The general statistics and performance log page (SPC-4, 7.3.9).

use block::{VolumeAttributes, VolumeId};

/// Counters of a volume over all ports since the start of the array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitStatistics {
    /// Successful reads.
    pub reads: u64,
    /// Successful writes.
    pub writes: u64,
    /// Bytes sent by these reads.
    pub read_bytes: u64,
    /// Bytes received by these writes.
    pub written_bytes: u64,
    /// Total time of these reads, in microseconds.
    pub read_us: u64,
    /// Total time of these writes, in microseconds.
    pub write_us: u64,
}

/// A source of command counters.
pub trait Statistics: Send + Sync + std::fmt::Debug {
    /// Returns the counters of a volume.
    fn of(&self, volume: VolumeId) -> UnitStatistics;
}

/// The page code.
pub(crate) const PAGE: u8 = 0x19;

/// Returns the page. Times are in microseconds, as its third parameter says; the weighted counts
/// are not supported and 0.
pub(crate) fn page(volume: &VolumeAttributes, done: UnitStatistics) -> Vec<u8> {
    let block = volume.logical_block.bytes();
    let mut out = vec![PAGE, 0, 0, 0];
    let counts = [
        done.reads,
        done.writes,
        done.written_bytes / block,
        done.read_bytes / block,
        done.read_us,
        done.write_us,
        0,
        0,
    ];
    out.extend([0, 1, 0x03, 64]); // parameter 1, a binary list
    counts.iter().for_each(|count| out.extend(count.to_be_bytes()));
    out.extend([0, 3, 0x03, 8]); // parameter 3: an interval is 1 * 10^-6 s
    out.extend(6_u32.to_be_bytes());
    out.extend(1_u32.to_be_bytes());
    let length = (out.len() - 4) as u16;
    out[2..4].copy_from_slice(&length.to_be_bytes());
    out
}
