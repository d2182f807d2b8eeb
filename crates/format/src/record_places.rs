//! Where the blocks of a log record are in its segment.

use crate::geometry::{Geometry, Place, UNITS_PER_BLOCK};
use crate::log::LogPosition;

/// The locations of a record's blocks: it has its own rows of its segment, and fills them column by
/// column. With one column its blocks are contiguous.
///
/// ```text
/// 3 columns of 8 rows, a record of 8 blocks in 3 rows from row 2 on:
///
///      column 0   1   2
/// row 2       0   3   6       block 3 is at 1 x 8 + 2 = 10
/// row 3       1   4   7
/// row 4       2   5   zeros
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlaces {
    segment: u32,
    row: u32,
    rows: u32,
    segment_rows: u32,
    header_blocks: u32,
}

impl RecordPlaces {
    /// Returns the places of a record at a position, which is within its segment.
    pub fn new(
        geometry: Geometry,
        at: &LogPosition,
        (header_blocks, payload_blocks): (u32, u32),
    ) -> Self {
        let rows = geometry.rows_for(u64::from(header_blocks) + u64::from(payload_blocks)) as u32;
        let LogPosition { segment, block: row, .. } = *at;
        let segment_rows = geometry.rows();
        let end = u64::from(row) + u64::from(rows);
        assert!(rows > 0 && end <= u64::from(segment_rows), "a record never crosses a segment");
        Self { segment, row, rows, segment_rows, header_blocks }
    }

    /// Returns how many rows it has, which is also how many of its first blocks are contiguous.
    pub fn rows(self) -> u32 {
        self.rows
    }

    /// Returns the place of one of its blocks, by its number.
    pub fn block(self, number: u32) -> Place {
        let (column, row) = (number / self.rows, self.row + number % self.rows);
        Place::of_block(self.segment, column * self.segment_rows + row)
    }

    /// Returns the place of a part of its payload, by the offset in the payload, in units of 64
    /// bytes.
    pub fn payload(self, units: u32) -> Place {
        let block = self.block(self.header_blocks + units / UNITS_PER_BLOCK);
        Place { offset_units: block.offset_units + units % UNITS_PER_BLOCK, ..block }
    }

    /// Returns how many blocks of payload, from that offset on, are contiguous.
    pub fn in_a_row(self, units: u32) -> u32 {
        self.rows - (self.header_blocks + units / UNITS_PER_BLOCK) % self.rows
    }
}

/// The maximum number of blocks that contain a group: eight blocks that were not shortened, from
/// the middle of a block on.
const GROUP_COVERS_MAX: u32 = 9;

/// Returns the maximum number of rows of a record with this many blocks, for any groups among them.
pub fn rows_max(columns: u32, blocks: u32) -> u32 {
    if columns == 1 {
        return blocks;
    }
    let gaps = (columns - 1) * (GROUP_COVERS_MAX - 1);
    (blocks + gaps).div_ceil(columns).max(GROUP_COVERS_MAX)
}

/// Returns the maximum number of blocks of a record that fits this many rows, for any groups among
/// them.
pub fn blocks_that_fit(columns: u32, rows: u32) -> u32 {
    if columns == 1 {
        return rows;
    }
    if rows < GROUP_COVERS_MAX {
        return 0;
    }
    (columns * rows).saturating_sub((columns - 1) * (GROUP_COVERS_MAX - 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places(columns: u8, row: u32, blocks: (u32, u32)) -> RecordPlaces {
        let geometry = Geometry { part_bytes: 64 << 10, segment_count: 16, columns };
        let at = LogPosition { segment: 7, block: row, ..LogPosition::default() };
        RecordPlaces::new(geometry, &at, blocks)
    }

    #[test]
    fn a_record_fills_its_rows_column_by_column() {
        let places = places(3, 2, (1, 7));
        assert_eq!(places.rows(), 3);
        let blocks: Vec<u32> =
            (0..9).map(|number| places.block(number).offset_units / 64).collect();
        assert_eq!(blocks, [2, 3, 4, 18, 19, 20, 34, 35, 36]);
        // Its payload begins after the header.
        assert_eq!(places.payload(0), Place::of_block(7, 3));
        assert_eq!(places.payload(2 * 64 + 5), Place { segment: 7, offset_units: 18 * 64 + 5 });
        assert_eq!([0, 64, 128, 192].map(|units| places.in_a_row(units)), [2, 1, 3, 2]);
    }

    #[test]
    fn with_one_column_blocks_are_contiguous() {
        let places = places(1, 4, (2, 5));
        assert_eq!((places.rows(), places.block(6)), (7, Place::of_block(7, 10)));
        assert_eq!(places.payload(70), Place { segment: 7, offset_units: 6 * 64 + 70 });
        assert_eq!(places.in_a_row(64), 4);
    }

    #[test]
    fn a_record_across_the_end_of_its_segment_panics() {
        assert!(std::panic::catch_unwind(|| places(3, 14, (1, 6))).is_err());
        assert_eq!(places(3, 14, (1, 5)).rows(), 2);
    }

    proptest! {
        /// No two blocks of a record are at the same place, and all are in its own rows.
        #[test]
        fn blocks_are_each_in_a_row_of_the_record(
            columns in 1..=16u8,
            row in 0..16u32,
            payload_blocks in 0..256u32,
        ) {
            let (k, room) = (u32::from(columns), 16 - row);
            let payload_blocks = payload_blocks.min(k * room - 1);
            let places = places(columns, row, (1, payload_blocks));
            let rows = places.rows();
            // As few rows as possible.
            prop_assert!(rows * k > payload_blocks && (rows - 1) * k <= payload_blocks);
            let mut seen = std::collections::BTreeSet::new();
            for number in 0..k * rows {
                let block = places.block(number).offset_units / UNITS_PER_BLOCK;
                prop_assert_eq!(block / 16, number / rows);
                prop_assert!((row..row + rows).contains(&(block % 16)) && seen.insert(block));
                // Its successor in the record is below it, except at the end of a column.
                if !(number + 1).is_multiple_of(rows) {
                    prop_assert_eq!(places.block(number + 1), places.block(number).plus_blocks(1));
                }
            }
        }

        #[test]
        fn records_that_fit_take_at_most_all_rows(columns in 1..=16u32, rows in 0..5000u32) {
            let blocks = blocks_that_fit(columns, rows);
            prop_assert!(blocks == 0 || rows_max(columns, blocks) <= rows);
            prop_assert!(rows < 9 || rows_max(columns, blocks + 1) > rows);
        }
    }
}
