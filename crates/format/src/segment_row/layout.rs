//! Where a striped segment is: its columns, and the parts that they are.

use std::fmt;

use block::BLOCK_BYTES;

use super::{DEVICES_AT, DEVICES_MAX, LAYOUT_AT, PARTS_AT, ROWS_AT, error};
use crate::FormatError;
use crate::codec::{put, u32_at};
use crate::geometry::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_TEST_MIN};

const DATA_AT: usize = LAYOUT_AT + 1;
const PARITY_AT: usize = LAYOUT_AT + 2;
const SIZE_AT: usize = LAYOUT_AT + 3;

/// The most columns of data.
const DATA_MAX: u8 = 16;
/// The most columns of parity.
const PARITY_MAX: u8 = 2;
const _: () = assert!((DATA_MAX + PARITY_MAX) as usize == DEVICES_MAX);

/// A part of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// The number of the device.
    pub device: u8,
    /// The number of the part, from 1 on: what is before part 1 is for roots and labels.
    pub number: u32,
}

/// How a segment is laid out over devices: one part of each for each of its columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    data: u8,
    parity: u8,
    part_bytes: u64,
    rows_written: u32,
    /// Those of the columns; all zero behind them.
    parts: [Part; DEVICES_MAX],
}

impl Layout {
    /// Of so many columns of data (1 to 16), and parity in those of the `parts` behind them (0 to
    /// 2). Parts have a power of two from 16 MiB (64 KiB in tests) to 4 GiB. Rows of 4 KiB of each
    /// column are counted in `rows_written` once the segment is closed, and before that none.
    ///
    /// # Errors
    /// Of what is impossible, with its offset in a row: any of these numbers, a part 0, and two
    /// parts of one device.
    pub fn new(
        data: usize,
        parts: &[Part],
        part_bytes: u64,
        rows_written: u32,
    ) -> Result<Self, FormatError> {
        let data = u8::try_from(data).ok().filter(|data| (1..=DATA_MAX).contains(data));
        let Some(data) = data else {
            return error("a striped segment with an impossible number of data columns", DATA_AT);
        };
        let parity = parts.len().checked_sub(usize::from(data));
        let Some(parity) = parity.filter(|parity| *parity <= usize::from(PARITY_MAX)) else {
            let what = "a striped segment with an impossible number of parity columns";
            return error(what, PARITY_AT);
        };
        let sizes = SEGMENT_BYTES_TEST_MIN..=SEGMENT_BYTES_MAX;
        if !part_bytes.is_power_of_two() || !sizes.contains(&part_bytes) {
            return error("a striped segment with parts of an impossible size", SIZE_AT);
        }
        if u64::from(rows_written) > part_bytes / BLOCK_BYTES {
            return error("a striped segment with more rows than it has", ROWS_AT);
        }
        for (column, part) in parts.iter().enumerate() {
            if parts[..column].iter().any(|other| other.device == part.device) {
                return error("a striped segment twice on one device", DEVICES_AT + column);
            }
            if part.number == 0 {
                let what = "a striped segment in the part of the superblocks";
                return error(what, PARTS_AT + 4 * column);
            }
        }
        let mut all = [Part::default(); DEVICES_MAX];
        all[..parts.len()].copy_from_slice(parts);
        Ok(Self { data, parity: parity as u8, part_bytes, rows_written, parts: all })
    }

    /// How many columns of data it has.
    pub fn data(&self) -> usize {
        usize::from(self.data)
    }

    /// How many columns of parity it has.
    pub fn parity(&self) -> usize {
        usize::from(self.parity)
    }

    /// The parts of its columns: of data, then of parity.
    pub fn parts(&self) -> &[Part] {
        &self.parts[..self.data() + self.parity()]
    }

    /// Bytes of a part.
    pub fn part_bytes(&self) -> u64 {
        self.part_bytes
    }

    /// How many of its rows are written, if it is closed; otherwise 0.
    pub fn rows_written(&self) -> u32 {
        self.rows_written
    }

    /// The layout that a row of this kind has.
    pub(super) fn decode(raw: &[u8]) -> Result<Self, FormatError> {
        let [data, parity, size] = [DATA_AT, PARITY_AT, SIZE_AT].map(|at| raw[at]);
        if parity > PARITY_MAX {
            let what = "a striped segment with an impossible number of parity columns";
            return error(what, PARITY_AT);
        }
        // More columns than there can be are refused before they are counted.
        let columns = usize::from(data.min(DATA_MAX)) + usize::from(parity);
        let part = |column| Part {
            device: raw[DEVICES_AT + column],
            number: u32_at(raw, PARTS_AT + 4 * column),
        };
        let parts: [Part; DEVICES_MAX] = std::array::from_fn(part);
        let part_bytes = BLOCK_BYTES.checked_shl(size.into()).unwrap_or(0);
        let rows_written = u32_at(raw, ROWS_AT);
        let layout = Self::new(data.into(), &parts[..columns], part_bytes, rows_written)?;
        match parts[columns..].iter().position(|part| *part != Part::default()) {
            Some(behind) => {
                error("a striped segment in more parts than it has", DEVICES_AT + columns + behind)
            }
            None => Ok(layout),
        }
    }

    /// Writes it into a row.
    pub(super) fn encode(&self, out: &mut [u8]) {
        let size = (self.part_bytes / BLOCK_BYTES).trailing_zeros() as u8;
        put(out, DATA_AT, &[self.data, self.parity, size]);
        put(out, ROWS_AT, &self.rows_written.to_le_bytes());
        for (column, part) in self.parts().iter().enumerate() {
            out[DEVICES_AT + column] = part.device;
            put(out, PARTS_AT + 4 * column, &part.number.to_le_bytes());
        }
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {} parts of {} bytes:", self.data, self.parity, self.part_bytes)?;
        self.parts().iter().try_for_each(|part| write!(f, " {}.{}", part.device, part.number))?;
        write!(f, ", {} rows", self.rows_written)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{SEGMENT_ROW_BYTES, SegmentKind, SegmentRow, SegmentState};
    use super::*;
    use crate::Features;

    const DEVICES: Features = Features { incompatible: Features::DEVICES, ..Features::KNOWN };
    const ROW: SegmentRow = SegmentRow {
        state: SegmentState::Log,
        live_units: 5,
        opened_lsn: 6,
        opened_epoch: 7,
        mirrored: false,
    };
    const SEGMENT: u32 = 0x0102_0304;

    fn parts(count: usize) -> Vec<Part> {
        let part = |column: usize| Part { device: 40 + column as u8, number: 1 + column as u32 };
        (0..count).map(part).collect()
    }

    fn layout(data: usize, parity: usize) -> Layout {
        Layout::new(data, &parts(data + parity), 16 << 20, 9).unwrap()
    }

    fn encoded(row: SegmentRow, layout: Layout) -> [u8; SEGMENT_ROW_BYTES] {
        let mut raw = [9; SEGMENT_ROW_BYTES];
        row.encode_as(SEGMENT, &SegmentKind::Striped(layout), &mut raw);
        raw
    }

    fn decoded(raw: &[u8]) -> Result<(SegmentRow, SegmentKind), FormatError> {
        SegmentRow::decode_as(raw, SEGMENT, DEVICES)
    }

    #[test]
    fn golden_offsets() {
        let raw = encoded(ROW, layout(3, 2));
        assert_eq!(raw[..16], [1, 0, 1, 3, 2, 12, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!((raw[16], raw[24]), (6, 7));
        assert_eq!(raw[32..38], [40, 41, 42, 43, 44, 0]);
        assert_eq!(raw[52..60], [1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(raw[68..76], [5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(raw.iter().filter(|byte| **byte != 0).count(), 9 + 2 * 5);
        assert_eq!(decoded(&raw), Ok((ROW, SegmentKind::Striped(layout(3, 2)))));
    }

    /// It is known which feature it needs before any pool has it.
    #[test]
    fn a_pool_without_the_feature_refuses_it() {
        let raw = encoded(ROW, layout(1, 2));
        let refused = FormatError { what: "a segment of a kind that is not known", offset: 2 };
        assert_eq!(SegmentRow::decode(&raw, SEGMENT), Err(refused.clone()));
        for features in [Features::default(), Features::KNOWN] {
            assert_eq!(SegmentRow::decode_as(&raw, SEGMENT, features), Err(refused.clone()));
        }
        assert_eq!(DEVICES.unknown().incompatible, Features::DEVICES);
        // Plain ones stay what they are.
        let mut raw = [9; SEGMENT_ROW_BYTES];
        ROW.encode(SEGMENT, &mut raw);
        assert_eq!(decoded(&raw), Ok((ROW, SegmentKind::Plain)));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let of = |data, count, part_bytes, rows| {
            Layout::new(data, &parts(count), part_bytes, rows).map_err(|error| error.offset)
        };
        for (data, count) in [(0, 2), (17, 18), (256, 18), (257, 18)] {
            assert_eq!(of(data, count, 16 << 20, 0), Err(3));
        }
        for (data, count) in [(4, 3), (4, 7), (16, 19), (1, 18), (1, 0)] {
            assert_eq!(of(data, count, 16 << 20, 0), Err(4));
        }
        for part_bytes in [0, 32 << 10, 48 << 20, 8 << 30] {
            assert_eq!(of(4, 6, part_bytes, 0), Err(5));
        }
        assert!(of(4, 6, 4 << 30, 1 << 20).is_ok());
        assert_eq!(of(4, 6, 4 << 30, (1 << 20) + 1), Err(12));
        let raw = encoded(ROW, layout(3, 2));
        let refused = |at: usize, byte: u8| {
            let mut other = raw;
            other[at] = byte;
            decoded(&other).unwrap_err().to_string()
        };
        let data = "a striped segment with an impossible number of data columns at byte 3";
        assert_eq!([refused(3, 0), refused(3, 17), refused(3, 255)], [data; 3]);
        let parity = "a striped segment with an impossible number of parity columns at byte 4";
        assert_eq!([refused(4, 3), refused(4, 255)], [parity; 2]);
        let size = "a striped segment with parts of an impossible size at byte 5";
        assert_eq!([refused(5, 3), refused(5, 21), refused(5, 63), refused(5, 255)], [size; 4]);
        let twice = "a striped segment twice on one device at byte 36";
        assert_eq!(refused(36, 40), twice);
        let roots = "a striped segment in the part of the superblocks at byte 56";
        assert_eq!(refused(56, 0), roots);
        let rows = "a striped segment with more rows than it has at byte 12";
        assert_eq!(refused(13, 16), rows);
        let behind =
            |at: usize| format!("a striped segment in more parts than it has at byte {at}");
        assert_eq!([refused(37, 1), refused(49, 1)], [behind(37), behind(49)]);
        assert_eq!([refused(72, 1), refused(123, 1)], [behind(37), behind(49)]);
        assert_eq!(refused(2, 2), "a segment of a kind that is not known at byte 2");
        let columns = "a striped segment of metadata in columns at byte 0";
        assert_eq!(refused(0, 2), columns);
        let copies = "a segment with impossible copies at byte 1";
        assert_eq!(refused(1, 1), copies);
        for at in [6, 7, 50, 51, 124, 127] {
            assert!(refused(at, 1).starts_with("a segment row with bytes that are not known"));
        }
    }

    /// Mirrors are what metadata is in, and have it once in each part.
    #[test]
    fn metadata_is_in_mirrors_only() {
        let row = SegmentRow { state: SegmentState::Metadata, ..ROW };
        for parity in 0..=2 {
            let raw = encoded(row, layout(1, parity));
            assert_eq!(decoded(&raw), Ok((row, SegmentKind::Striped(layout(1, parity)))));
            let mut twice = raw;
            twice[1] = 1;
            assert_eq!(decoded(&twice).unwrap_err().offset, 1);
        }
        assert!(decoded(&encoded(row, layout(2, 2))).is_err());
    }

    fn any_layout() -> impl Strategy<Value = Layout> {
        let parts = prop::collection::btree_map(any::<u8>(), 1..=u32::MAX, 18);
        (1..=16usize, 0..=2usize, 4..=20u32, any::<u32>(), parts, 0..18usize).prop_map(
            |(data, parity, size, rows, parts, first)| {
                let mut parts: Vec<Part> =
                    parts.into_iter().map(|(device, number)| Part { device, number }).collect();
                parts.rotate_left(first);
                parts.truncate(data + parity);
                Layout::new(data, &parts, 4096 << size, rows % ((1 << size) + 1)).unwrap()
            },
        )
    }

    proptest! {
        #[test]
        fn striped_rows_survive(
            layout in any_layout(),
            live_units: u32,
            opened_lsn: u64,
            opened_epoch: u64,
        ) {
            let row = SegmentRow { live_units, opened_lsn, opened_epoch, ..ROW };
            let raw = encoded(row, layout);
            prop_assert_eq!(decoded(&raw), Ok((row, SegmentKind::Striped(layout))));
        }

        /// Whatever is decoded is encoded to the same bytes, so that no byte is ignored; and
        /// nothing panics.
        #[test]
        fn no_byte_is_ignored(
            layout in any_layout(),
            changes in prop::collection::vec((0..SEGMENT_ROW_BYTES, any::<u8>()), 0..4),
        ) {
            let mut raw = encoded(ROW, layout);
            changes.into_iter().for_each(|(at, byte)| raw[at] = byte);
            if let Ok((row, kind)) = decoded(&raw) {
                let mut again = [9; SEGMENT_ROW_BYTES];
                row.encode_as(SEGMENT, &kind, &mut again);
                prop_assert_eq!(again, raw);
            }
        }
    }
}
