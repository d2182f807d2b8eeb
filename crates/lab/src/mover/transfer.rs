//! How a copy is divided into commands.

use crate::datastore::BLOCK_BYTES;
use crate::host::{EsxVersion, Extent, Settings};

/// Logical blocks of 512 bytes that a segment's 16 bits hold, in whole MiB.
const SEGMENT_BYTES_MAX: u64 = 31 << 20;

/// What one EXTENDED COPY moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Its segments.
    pub extents: Vec<Extent>,
}

impl Transfer {
    /// How much that is.
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.bytes).sum()
    }
}

/// The commands that copy `extents`. `array_bytes` is the longest segment that the array says it
/// takes, 0 if it does not say.
pub fn transfers(
    settings: &Settings,
    array_bytes: u64,
    extents: &[Extent],
    is_thin: bool,
) -> Vec<Transfer> {
    // 5.x copies thin disks by the extents of its file system, whatever is set (000, 002).
    let by_extent = is_thin && settings.version == EsxVersion::V5;
    let count = if by_extent { 1 } else { settings.transfer_segments.max(1) };
    let wanted = if by_extent { BLOCK_BYTES } else { settings.transfer_bytes / count };
    let array = if array_bytes == 0 { u64::MAX } else { array_bytes };
    let longest = wanted.min(array).clamp(BLOCK_BYTES, SEGMENT_BYTES_MAX);
    let longest = longest - longest % BLOCK_BYTES;
    let pieces = extents.iter().flat_map(|extent| {
        (0..extent.bytes.div_ceil(longest)).map(move |index| {
            let done = index * longest;
            Extent {
                source: extent.source + done,
                destination: extent.destination + done,
                bytes: longest.min(extent.bytes - done),
            }
        })
    });
    let pieces: Vec<Extent> = pieces.collect();
    pieces.chunks(count as usize).map(|part| Transfer { extents: part.to_vec() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn extent(source: u64, destination: u64, mib: u64) -> Extent {
        Extent { source: source * MIB, destination: destination * MIB, bytes: mib * MIB }
    }

    #[test]
    fn transfers_are_as_long_as_is_set_and_cover_all() {
        let set = |mib, segments| Settings {
            transfer_bytes: mib * MIB,
            transfer_segments: segments,
            ..Settings::default()
        };
        let source = [extent(100, 5000, 500), extent(900, 6000, 7)];
        for (settings, commands) in [(set(4, 1), 127), (set(16, 1), 33), (set(240, 8), 3)] {
            let parts = transfers(&settings, 0, &source, false);
            assert_eq!(parts.len(), commands);
            assert_eq!(parts.iter().map(Transfer::bytes).sum::<u64>(), 507 * MIB);
        }
        let parts = transfers(&set(16, 1), 0, &[extent(0, 10, 20)], true);
        assert_eq!(parts[1].extents, [extent(16, 26, 4)]);
    }

    #[test]
    fn five_copies_thin_disks_by_the_block() {
        let settings =
            Settings { version: EsxVersion::V5, transfer_bytes: 16 * MIB, ..Settings::default() };
        assert_eq!(transfers(&settings, 0, &[extent(0, 64, 32)], true).len(), 32);
        assert_eq!(transfers(&settings, 0, &[extent(0, 64, 32)], false).len(), 2);
    }

    #[test]
    fn the_array_has_the_last_word() {
        let settings = Settings { transfer_bytes: 16 * MIB, ..Settings::default() };
        let parts = transfers(&settings, 5 * MIB + 512, &[extent(0, 64, 16)], false);
        assert!(parts.iter().all(|part| part.bytes() <= 5 * MIB));
        assert_eq!(parts.len(), 4);
    }
}
