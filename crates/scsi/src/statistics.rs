//! The general statistics and performance log page (SPC-4, 7.3.9).

use block::{VolumeAttributes, VolumeId};

/// What was done on a volume over all ports since the array was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitStatistics {
    /// Reads that ended well.
    pub reads: u64,
    /// Writes that ended well.
    pub writes: u64,
    /// Bytes that these reads have sent.
    pub read_bytes: u64,
    /// Bytes that these writes have received.
    pub written_bytes: u64,
    /// How long these reads took, together, in microseconds.
    pub read_us: u64,
    /// How long these writes took, together.
    pub write_us: u64,
}

/// A counter of executed commands.
pub trait Statistics: Send + Sync + std::fmt::Debug {
    /// What was done on a volume.
    fn of(&self, volume: VolumeId) -> UnitStatistics;
}

/// The page's code.
pub(crate) const PAGE: u8 = 0x19;

/// The page. Times are in microseconds, as its third parameter says; the weighted counts are not
/// kept, and so are 0.
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
