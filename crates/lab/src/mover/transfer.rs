//! The division of a copy into commands.

use crate::datastore::BLOCK_BYTES;
use crate::host::{EsxVersion, Extent, Settings};

/// The maximum of a segment's 16 bits of logical blocks of 512 bytes, in whole MiB.
const SEGMENT_BYTES_MAX: u64 = 31 << 20;

/// What one EXTENDED COPY moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Its segments.
    pub extents: Vec<Extent>,
}

impl Transfer {
    /// Returns its length.
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|extent| extent.bytes).sum()
    }
}

/// What an array accepts in one EXTENDED COPY, as it reports (SPC-4, 6.24); 0: it does not report
/// it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyLimits {
    /// The longest segment, in bytes.
    pub segment_bytes: u64,
    /// The maximum number of segments.
    pub segment_count: u64,
}

/// The length of segments, and the bytes and segments of a command.
struct Shape {
    segment_bytes: u64,
    bytes: u64,
    segments: u64,
}

fn shape(settings: &Settings, limits: CopyLimits, is_thin: bool) -> Shape {
    let or_all = |limit: u64| if limit == 0 { u64::MAX } else { limit };
    let (most, segments) = (or_all(limits.segment_bytes), settings.transfer_segments.max(1));
    let whole = |bytes: u64| {
        let bytes = bytes.min(most).clamp(BLOCK_BYTES, SEGMENT_BYTES_MAX);
        bytes - bytes % BLOCK_BYTES
    };
    let bytes = settings.transfer_bytes.max(BLOCK_BYTES);
    match (is_thin, settings.version) {
        // By the extents of the file system, regardless of the setting (000, 002).
        (true, version) if version < EsxVersion::V6 => {
            Shape { segment_bytes: BLOCK_BYTES, bytes: BLOCK_BYTES, segments: 1 }
        }
        // Consolidated: scattered extents as segments of one command, up to the transfer size.
        (true, _) => {
            let segments = (bytes / BLOCK_BYTES).min(or_all(limits.segment_count)).max(segments);
            Shape { segment_bytes: whole(bytes), bytes, segments }
        }
        (false, _) => Shape { segment_bytes: whole(bytes / segments), bytes, segments },
    }
}

/// Returns the commands that copy `extents`.
pub fn transfers(
    settings: &Settings,
    limits: CopyLimits,
    extents: &[Extent],
    is_thin: bool,
) -> Vec<Transfer> {
    let Shape { segment_bytes, bytes, segments } = shape(settings, limits, is_thin);
    let pieces = extents.iter().flat_map(|extent| {
        (0..extent.bytes.div_ceil(segment_bytes)).map(move |index| {
            let done = index * segment_bytes;
            Extent {
                source: extent.source + done,
                destination: extent.destination + done,
                bytes: segment_bytes.min(extent.bytes - done),
            }
        })
    });
    let mut transfers: Vec<Transfer> = Vec::new();
    for piece in pieces {
        match transfers.last_mut() {
            Some(last)
                if (last.extents.len() as u64) < segments
                    && last.bytes() + piece.bytes <= bytes =>
            {
                last.extents.push(piece);
            }
            _ => transfers.push(Transfer { extents: vec![piece] }),
        }
    }
    transfers
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn extent(source: u64, destination: u64, mib: u64) -> Extent {
        Extent { source: source * MIB, destination: destination * MIB, bytes: mib * MIB }
    }

    #[test]
    fn transfers_have_the_configured_length_and_cover_everything() {
        let set = |mib, segments| Settings {
            transfer_bytes: mib * MIB,
            transfer_segments: segments,
            ..Settings::default()
        };
        let source = [extent(100, 5000, 500), extent(900, 6000, 7)];
        for (settings, commands) in [(set(4, 1), 127), (set(16, 1), 33), (set(240, 8), 3)] {
            let parts = transfers(&settings, CopyLimits::default(), &source, false);
            assert_eq!(parts.len(), commands);
            assert_eq!(parts.iter().map(Transfer::bytes).sum::<u64>(), 507 * MIB);
        }
        let parts = transfers(&set(16, 1), CopyLimits::default(), &[extent(0, 10, 20)], true);
        assert_eq!(parts[1].extents, [extent(16, 26, 4)]);
    }

    #[test]
    fn esxi_5_copies_thin_disks_block_by_block() {
        for version in [EsxVersion::V5_0, EsxVersion::V5] {
            let settings = Settings { version, transfer_bytes: 16 * MIB, ..Settings::default() };
            let commands = |is_thin| {
                transfers(&settings, CopyLimits::default(), &[extent(0, 64, 32)], is_thin).len()
            };
            assert_eq!((commands(true), commands(false)), (32, 2));
        }
    }

    #[test]
    fn the_limits_of_the_array_apply() {
        let settings = Settings { transfer_bytes: 16 * MIB, ..Settings::default() };
        let limits = CopyLimits { segment_bytes: 5 * MIB + 512, segment_count: 3 };
        let parts = transfers(&settings, limits, &[extent(0, 64, 16)], false);
        assert!(parts.iter().all(|part| part.bytes() <= 5 * MIB));
        assert_eq!(parts.len(), 4);
        let scattered: Vec<_> = (0..8).map(|at| extent(at * 2, 64 + at, 1)).collect();
        let parts = transfers(&settings, limits, &scattered, true);
        assert_eq!(parts.iter().map(|part| part.extents.len()).collect::<Vec<_>>(), [3, 3, 2]);
    }

    #[test]
    fn esxi_6_merges_scattered_extents() {
        let settings = Settings { transfer_bytes: 4 * MIB, ..Settings::default() };
        let scattered: Vec<_> = (0..10).map(|at| extent(at * 2, 64 + at, 1)).collect();
        let parts = transfers(&settings, CopyLimits::default(), &scattered, true);
        assert_eq!(parts.iter().map(|part| part.extents.len()).collect::<Vec<_>>(), [4, 4, 2]);
    }
}
