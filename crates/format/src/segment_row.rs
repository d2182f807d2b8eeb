//! Rows of the segment table: what each segment is used for, and where it is.
//!
//! ```text
//! segment row, 128 bytes (all zero: free)    segment row of the stream, 16 bytes
//!   0  1  state: 1 log, 2 metadata             0  1  state: 0 free, 1 log, 2 metadata
//!   1  1  1: all in it stands twice            1  1  1: all in it stands twice
//!   2  1  kind: 0 plain, 1 striped             2  2  zero
//!   3  1  columns of data                      4  4  live units of 64 bytes, each once
//!   4  1  columns of parity                    8  8  LSN at which it was opened
//!   5  1  size of a part: 4 KiB << n
//!   6  2  zero
//!   8  4  live units of 64 bytes, each once
//!  12  4  rows that are written, once closed
//!  16  8  LSN at which it was opened
//!  24  8  epoch in which it was opened, 0 where that is not known
//!  32 18  devices that it is on, a byte for each column
//!  50  2  zero
//!  52 72  which part of each of these devices: its number, 4 bytes each
//! 124  4  zero
//! ```
//!
//! A segment of the plain kind is a part of the one device that there is, and has no stripes: one
//! column of data, none of parity, of size 0; device 0, of which it is the part with its own
//! number; all else is zero.
//!
//! One of the striped kind is on as many devices as it has columns: 1 to 16 of data, and 0 to 2 of
//! parity behind them. Each is a part of another device, with a number from 1 on, of 64 KiB to 4
//! GiB. A row of it is a block of 4 KiB of each column. It does not hold anything twice, and
//! metadata has one column of data only. What stands behind the last column is zero. There are
//! none in a pool without the incompatible feature `devices` (bit 2), which no pool has yet.
//!
//! A row of any other kind or layout is not known, and is refused.
//!
//! The table is as the others are ([tables](#pages-and-streams)), with 32 rows to a page. Without
//! the feature the rows are a stream, in the form of 16 bytes, one for each segment.

mod layout;

pub use layout::{Layout, Part};

use crate::codec::{put, u32_at, u64_at};
use crate::page::PAGE_BYTES;
use crate::{Features, FormatError};

/// Bytes of a row of the segment table.
pub const SEGMENT_ROW_BYTES: usize = 128;
/// Rows of the segment table in a page.
pub const SEGMENT_ROWS_PER_PAGE: u32 = (PAGE_BYTES / SEGMENT_ROW_BYTES) as u32;
/// Bytes of a row in the stream of a pool without the table.
pub const SHORT_SEGMENT_ROW_BYTES: usize = 16;

const LAYOUT_AT: usize = 2;
const LIVE_AT: usize = 8;
const ROWS_AT: usize = 12;
const LSN_AT: usize = 16;
const EPOCH_AT: usize = 24;
const DEVICES_AT: usize = 32;
const DEVICES_MAX: usize = 18;
const PARTS_AT: usize = 52;
/// Behind the parts.
const END_AT: usize = PARTS_AT + 4 * DEVICES_MAX;
/// Bytes that are zero, whatever the kind is.
const ZEROS: [std::ops::Range<usize>; 3] =
    [6..LIVE_AT, DEVICES_AT + DEVICES_MAX..PARTS_AT, END_AT..SEGMENT_ROW_BYTES];
const _: () = assert!(END_AT + 4 == SEGMENT_ROW_BYTES);

/// What a segment is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// A range of the one device that there is.
    Plain,
    /// Parts of several devices.
    Striped(Layout),
}

impl SegmentKind {
    const STRIPED: u8 = 1;

    /// Its number in a row of the segment table.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Striped(_) => Self::STRIPED,
        }
    }

    /// What a row says, but for bytes that are zero whatever it is.
    fn decode(raw: &[u8], segment: u32, features: Features) -> Result<Self, FormatError> {
        if raw[LAYOUT_AT] == Self::STRIPED && features.has_devices() {
            return Ok(Self::Striped(Layout::decode(raw)?));
        }
        if raw[LAYOUT_AT] != Self::Plain.code() {
            return error("a segment of a kind that is not known", LAYOUT_AT);
        }
        if raw[LAYOUT_AT..LAYOUT_AT + PLAIN.len()] != PLAIN {
            return error("a segment in a layout that is not known", LAYOUT_AT + 1);
        }
        if raw[ROWS_AT..LSN_AT].iter().any(|byte| *byte != 0) {
            return error("a segment row with bytes that are not known", ROWS_AT);
        }
        let others = [DEVICES_AT..DEVICES_AT + DEVICES_MAX, PARTS_AT + 4..END_AT];
        let is_elsewhere = others.into_iter().flatten().any(|at| raw[at] != 0);
        if is_elsewhere || u32_at(raw, PARTS_AT) != segment {
            return error("a segment on devices where its kind is not", DEVICES_AT);
        }
        Ok(Self::Plain)
    }

    fn encode(&self, segment: u32, out: &mut [u8]) {
        out[LAYOUT_AT] = self.code();
        match self {
            Self::Plain => {
                put(out, LAYOUT_AT, &PLAIN);
                put(out, PARTS_AT, &segment.to_le_bytes());
            }
            Self::Striped(layout) => layout.encode(out),
        }
    }
}

/// Kind, columns of data and of parity, and the size of a part.
const PLAIN: [u8; 4] = [SegmentKind::Plain.code(), 1, 0, 0];

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
    /// How much of it is live, in units of 64 bytes.
    pub live_units: u32,
    /// The LSN at which it was opened.
    pub opened_lsn: u64,
    /// The epoch in which it was opened; 0 where that is not known.
    pub opened_epoch: u64,
    /// Whether all that it holds stands twice, in either half ([`crate::Geometry::copy_of`]).
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

/// Whether all in a segment stands twice, which only metadata does.
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
    /// The row of a segment, in a pool on one device.
    ///
    /// # Errors
    /// If it is impossible, or of a kind or layout that is not known or that such a pool has not.
    ///
    /// # Panics
    /// If `raw` is shorter than [`SEGMENT_ROW_BYTES`].
    pub fn decode(raw: &[u8], segment: u32) -> Result<Self, FormatError> {
        Ok(Self::decode_as(raw, segment, Features::default())?.0)
    }

    /// The row of a segment and what that is made of, in a pool with these features. A free one is
    /// [`SegmentKind::Plain`].
    ///
    /// # Errors
    /// If it is impossible, or of a kind or layout that is not known, or that such a pool has not.
    ///
    /// # Panics
    /// If `raw` is shorter than [`SEGMENT_ROW_BYTES`].
    pub fn decode_as(
        raw: &[u8],
        segment: u32,
        features: Features,
    ) -> Result<(Self, SegmentKind), FormatError> {
        let raw = &raw[..SEGMENT_ROW_BYTES];
        if raw.iter().all(|byte| *byte == 0) {
            return Ok((Self::default(), SegmentKind::Plain));
        }
        let state = SegmentState::decode(raw[0]).filter(|state| *state != SegmentState::Free);
        let Some(state) = state else { return error("a segment in an impossible state", 0) };
        let Some(mirrored) = decode_mirrored(raw[1], state) else {
            return error("a segment with impossible copies", 1);
        };
        let kind = SegmentKind::decode(raw, segment, features)?;
        for zeros in ZEROS {
            if raw[zeros.clone()].iter().any(|byte| *byte != 0) {
                return error("a segment row with bytes that are not known", zeros.start);
            }
        }
        if let SegmentKind::Striped(layout) = kind {
            if mirrored {
                return error("a striped segment that holds all twice", 1);
            }
            // Metadata is written over block by block, which leaves parity behind (a write hole).
            if state == SegmentState::Metadata && layout.data() > 1 {
                return error("a striped segment of metadata in columns", 0);
            }
        }
        let row = Self {
            state,
            live_units: u32_at(raw, LIVE_AT),
            opened_lsn: u64_at(raw, LSN_AT),
            opened_epoch: u64_at(raw, EPOCH_AT),
            mirrored,
        };
        Ok((row, kind))
    }

    /// Writes the row of a plain segment to `out`, which has [`SEGMENT_ROW_BYTES`].
    pub fn encode(&self, segment: u32, out: &mut [u8]) {
        self.encode_as(segment, &SegmentKind::Plain, out);
    }

    /// Writes the row of a segment that is made of this to `out`, which has [`SEGMENT_ROW_BYTES`].
    pub fn encode_as(&self, segment: u32, kind: &SegmentKind, out: &mut [u8]) {
        out[..SEGMENT_ROW_BYTES].fill(0);
        if self.state == SegmentState::Free {
            return;
        }
        out[0] = self.state.code();
        out[1] = u8::from(self.mirrored);
        kind.encode(segment, out);
        put(out, LIVE_AT, &self.live_units.to_le_bytes());
        put(out, LSN_AT, &self.opened_lsn.to_le_bytes());
        put(out, EPOCH_AT, &self.opened_epoch.to_le_bytes());
    }

    /// The row in the form of the stream; `None` if it is impossible.
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

    /// The row in the form of the stream.
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

    /// Whatever is not known is refused: each byte that is not one of a number.
    #[test]
    fn what_is_not_known_is_refused() {
        let raw = encoded(ROW, 3);
        let numbers = (LIVE_AT..LIVE_AT + 4).chain(LSN_AT..DEVICES_AT);
        let numbers: Vec<usize> = numbers.collect();
        for at in (0..SEGMENT_ROW_BYTES).filter(|at| !numbers.contains(at)) {
            // There are other states, and as many copies are those of another one.
            for bit in if at < 2 { 2..8 } else { 0..8 } {
                let mut other = raw;
                other[at] ^= 1 << bit;
                assert!(SegmentRow::decode(&other, 3).is_err(), "bit {bit} of byte {at}");
            }
        }
        assert!(SegmentRow::decode(&raw, 4).is_err(), "it is the row of another segment");
        let offset = |at: usize| {
            let mut other = raw;
            other[at] ^= 2;
            SegmentRow::decode(&other, 3).unwrap_err().offset
        };
        assert_eq!([2, 3, 4, 5, 7, 50].map(offset), [2, 3, 3, 3, 6, 50]);
    }
}
