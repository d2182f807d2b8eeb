//! Rows of the segment table: the use of each segment, and its location.
//!
//! ```text
//! segment row, 128 bytes (all zero: free)    segment row of the stream, 16 bytes
//!   0  1  state: 1 log, 2 metadata             0  1  state: 0 free, 1 log, 2 metadata
//!   1  1  1: all in it has two copies          1  1  1: all in it has two copies
//!   2  1  zero                                 2  2  zero
//!   3  1  one                                  4  4  live units of 64 bytes, each once
//!   4  4  zero                                 8  8  LSN at which it was opened
//!   8  4  live units of 64 bytes, each once
//!  12  4  zero
//!  16  8  LSN at which it was opened
//!  24  8  epoch in which it was opened, 0 if that is not known
//!  32 20  zero
//!  52  4  the number of the segment
//!  56 72  zero
//! ```
//!
//! The row does not contain the location of a segment on the devices: if there are several, a [map
//! of parts](#the-map-of-parts) does. A row with nonzero bytes in a zero field is of an unknown
//! format, and is refused.
//!
//! The table has the same structure as the others ([tables](#pages-and-streams)), with 32 rows to a
//! page. Without the feature the rows are a stream, in the form of 16 bytes, one for each segment.

use crate::FormatError;
use crate::codec::{put, u32_at, u64_at};
use crate::page::PAGE_BYTES;

/// Bytes of a row of the segment table.
pub const SEGMENT_ROW_BYTES: usize = 128;
/// Rows of the segment table in a page.
pub const SEGMENT_ROWS_PER_PAGE: u32 = (PAGE_BYTES / SEGMENT_ROW_BYTES) as u32;
/// Bytes of a row in the stream of a pool without the table.
pub const SHORT_SEGMENT_ROW_BYTES: usize = 16;

const COLUMNS_AT: usize = 2;
const LIVE_AT: usize = 8;
const LSN_AT: usize = 16;
const EPOCH_AT: usize = 24;
const NUMBER_AT: usize = 52;
/// Bytes that are zero.
const ZEROS: [std::ops::Range<usize>; 3] =
    [12..LSN_AT, 32..NUMBER_AT, NUMBER_AT + 4..SEGMENT_ROW_BYTES];
/// The bytes after the copies: one column, as each segment has in its row.
const COLUMNS: [u8; LIVE_AT - COLUMNS_AT] = [0, 1, 0, 0, 0, 0];

/// The use of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SegmentState {
    /// Free: it can be written.
    #[default]
    Free,
    /// Log records, and the data in them.
    Log,
    /// Nodes, pages and streams of checkpoints.
    Metadata,
}

/// The use of a segment, and how much of it is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentRow {
    /// Its use.
    pub state: SegmentState,
    /// Its live units of 64 bytes.
    pub live_units: u32,
    /// The LSN at which it was opened.
    pub opened_lsn: u64,
    /// The epoch in which it was opened; 0 if that is not known.
    pub opened_epoch: u64,
    /// Whether all of it has two copies, one in each half ([`crate::Geometry::copy_of`]).
    pub mirrored: bool,
}

impl SegmentState {
    fn code(self) -> u8 {
        match self {
            Self::Free => 0,
            Self::Log => 1,
            Self::Metadata => 2,
        }
    }

    fn decode(raw: u8) -> Option<Self> {
        [Self::Free, Self::Log, Self::Metadata].into_iter().find(|state| state.code() == raw)
    }
}

/// Decodes whether all of a segment has two copies, which only metadata can have.
fn decode_mirrored(raw: u8, state: SegmentState) -> Option<bool> {
    match raw {
        0 => Some(false),
        1 if state == SegmentState::Metadata => Some(true),
        _ => None,
    }
}

fn error<T>(what: &'static str, offset: usize) -> Result<T, FormatError> {
    Err(FormatError { what, offset })
}

impl SegmentRow {
    /// Decodes the row of a segment.
    ///
    /// # Errors
    /// If it is impossible, is that of another segment, or has unknown bytes.
    ///
    /// # Panics
    /// If `raw` is shorter than [`SEGMENT_ROW_BYTES`].
    pub fn decode(raw: &[u8], segment: u32) -> Result<Self, FormatError> {
        let raw = &raw[..SEGMENT_ROW_BYTES];
        if raw.iter().all(|byte| *byte == 0) {
            return Ok(Self::default());
        }
        let state = SegmentState::decode(raw[0]).filter(|state| *state != SegmentState::Free);
        let Some(state) = state else { return error("a segment in an impossible state", 0) };
        let Some(mirrored) = decode_mirrored(raw[1], state) else {
            return error("a segment with impossible copies", 1);
        };
        if raw[COLUMNS_AT..LIVE_AT] != COLUMNS {
            return error("a segment in an unknown layout", COLUMNS_AT);
        }
        for zeros in ZEROS {
            if raw[zeros.clone()].iter().any(|byte| *byte != 0) {
                return error("a segment row with unknown bytes", zeros.start);
            }
        }
        if u32_at(raw, NUMBER_AT) != segment {
            return error("the row of another segment", NUMBER_AT);
        }
        Ok(Self {
            state,
            live_units: u32_at(raw, LIVE_AT),
            opened_lsn: u64_at(raw, LSN_AT),
            opened_epoch: u64_at(raw, EPOCH_AT),
            mirrored,
        })
    }

    /// Encodes the row of a segment into `out`, which has [`SEGMENT_ROW_BYTES`].
    pub fn encode(&self, segment: u32, out: &mut [u8]) {
        out[..SEGMENT_ROW_BYTES].fill(0);
        if self.state == SegmentState::Free {
            return;
        }
        out[0] = self.state.code();
        out[1] = u8::from(self.mirrored);
        put(out, COLUMNS_AT, &COLUMNS);
        put(out, LIVE_AT, &self.live_units.to_le_bytes());
        put(out, LSN_AT, &self.opened_lsn.to_le_bytes());
        put(out, EPOCH_AT, &self.opened_epoch.to_le_bytes());
        put(out, NUMBER_AT, &segment.to_le_bytes());
    }

    /// Decodes a row in the form of the stream; `None` if it is impossible.
    ///
    /// # Panics
    /// If `raw` is shorter than [`SHORT_SEGMENT_ROW_BYTES`].
    pub fn decode_short(raw: &[u8]) -> Option<Self> {
        let state = SegmentState::decode(raw[0])?;
        Some(Self {
            state,
            live_units: u32_at(raw, 4),
            opened_lsn: u64_at(raw, 8),
            opened_epoch: 0,
            mirrored: decode_mirrored(raw[1], state)?,
        })
    }

    /// Encodes the row in the form of the stream.
    pub fn encode_short(&self) -> [u8; SHORT_SEGMENT_ROW_BYTES] {
        let mut out = [0; SHORT_SEGMENT_ROW_BYTES];
        out[0] = self.state.code();
        out[1] = u8::from(self.mirrored);
        put(&mut out, 4, &self.live_units.to_le_bytes());
        put(&mut out, 8, &self.opened_lsn.to_le_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: SegmentRow = SegmentRow {
        state: SegmentState::Metadata,
        live_units: 5,
        opened_lsn: 6,
        opened_epoch: 7,
        mirrored: true,
    };

    fn encoded(row: SegmentRow, segment: u32) -> [u8; SEGMENT_ROW_BYTES] {
        let mut raw = [9; SEGMENT_ROW_BYTES];
        row.encode(segment, &mut raw);
        raw
    }

    #[test]
    fn rows_survive_and_a_free_one_is_zeros() {
        let log = SegmentRow { state: SegmentState::Log, mirrored: false, ..ROW };
        for row in [ROW, log, SegmentRow::default()] {
            assert_eq!(SegmentRow::decode(&encoded(row, 0x0102_0304), 0x0102_0304), Ok(row));
        }
        let freed = SegmentRow { state: SegmentState::Free, mirrored: false, ..ROW };
        assert_eq!(encoded(freed, 3), [0; SEGMENT_ROW_BYTES]);
        assert_eq!(SegmentRow::decode_short(&ROW.encode_short()).unwrap().opened_epoch, 0);
        assert_eq!(SegmentRow::decode_short(&log.encode_short()).unwrap().live_units, 5);
        let both = SegmentRow { mirrored: true, ..log };
        assert_eq!(SegmentRow::decode_short(&both.encode_short()), None);
        assert!(SegmentRow::decode(&encoded(both, 1), 1).is_err());
    }

    #[test]
    fn golden_offsets() {
        let raw = encoded(ROW, 0x0102_0304);
        assert_eq!(raw[..12], [2, 1, 0, 1, 0, 0, 0, 0, 5, 0, 0, 0]);
        assert_eq!((raw[16], raw[24]), (6, 7));
        assert_eq!(raw[52..56], [4, 3, 2, 1]);
        assert_eq!(raw.iter().filter(|byte| **byte != 0).count(), 10);
    }

    /// Everything unknown is refused: each byte that is not part of a number.
    #[test]
    fn unknown_values_are_refused() {
        let raw = encoded(ROW, 3);
        let numbers = (LIVE_AT..LIVE_AT + 4).chain(LSN_AT..EPOCH_AT + 8);
        let numbers: Vec<usize> = numbers.collect();
        for at in (0..SEGMENT_ROW_BYTES).filter(|at| !numbers.contains(at)) {
            // Other values are other states, or other numbers of copies.
            for bit in if at < 2 { 2..8 } else { 0..8 } {
                let mut other = raw;
                other[at] ^= 1 << bit;
                assert!(SegmentRow::decode(&other, 3).is_err(), "bit {bit} of byte {at}");
            }
        }
        assert!(SegmentRow::decode(&raw, 4).is_err(), "the row is of another segment");
        let offset = |at: usize| {
            let mut other = raw;
            other[at] ^= 2;
            SegmentRow::decode(&other, 3).unwrap_err().offset
        };
        assert_eq!([2, 7, 13, 50, 53, 60].map(offset), [2, 2, 12, 32, 52, 56]);
    }
}
