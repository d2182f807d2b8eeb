//! Rows and columns of a segment: which block of which part a place is.
//!
//! A segment has k columns of data and p of parity, each of which is one part of a device. A row is
//! a block of each. The address of a block of data in its segment is column x rows + row, so that a
//! column is in one piece, and a segment of one column is addressed as ever. A record has rows for
//! itself, which it fills column by column: what is next to each other in it is on one device.
//!
//! ```text
//! k = 3, 8 rows, a record of 8 blocks in 3 rows from row 2 on:
//!
//!      column 0   1   2
//! row 2      r0  r3  r6      r3 is at 1 x 8 + 2 = 10
//! row 3      r1  r4  r7
//! row 4      r2  r5  zeros
//! ```

use block::BLOCK_BYTES;
use format::geometry::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_TEST_MIN, UNITS_PER_BLOCK};
use format::{Geometry, Place};
use parity::{DATA_SHARDS_MAX, Stripe};

/// How a segment is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    stripe: Stripe,
    rows: u32,
}

/// Rows of a segment that a record has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The segment.
    pub segment: u32,
    /// The first row.
    pub row: u32,
    /// How many rows.
    pub rows: u32,
}

/// Blocks of one column, one below the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The column: data from 0 on, and parity behind it.
    pub column: u8,
    /// The row of the first block.
    pub row: u32,
    /// How many blocks.
    pub blocks: u32,
}

// All units of the largest segment can be addressed.
const _: () = assert!(
    DATA_SHARDS_MAX as u64 * SEGMENT_BYTES_MAX / BLOCK_BYTES * UNITS_PER_BLOCK as u64
        <= u32::MAX as u64
);

impl Shape {
    /// A segment with such a part for each shard of the stripe.
    ///
    /// # Panics
    /// If parts have no such size: a power of two from 16 MiB (64 KiB in tests) to 4 GiB.
    pub const fn new(stripe: Stripe, part_bytes: u64) -> Self {
        assert!(
            part_bytes.is_power_of_two()
                && part_bytes >= SEGMENT_BYTES_TEST_MIN
                && part_bytes <= SEGMENT_BYTES_MAX,
            "parts have no such size"
        );
        Self { stripe, rows: (part_bytes / BLOCK_BYTES) as u32 }
    }

    /// How many columns it has of each kind.
    pub const fn stripe(self) -> Stripe {
        self.stripe
    }

    /// How many rows it has: the blocks of a part.
    pub const fn rows(self) -> u32 {
        self.rows
    }

    /// How many blocks of data there is room for.
    pub const fn data_blocks(self) -> u32 {
        self.stripe.data() as u32 * self.rows
    }

    /// How many bytes of data there is room for.
    pub const fn data_bytes(self) -> u64 {
        self.data_blocks() as u64 * BLOCK_BYTES
    }

    /// How many rows it takes to hold so many frames, if none of them has to be in the same column
    /// as another.
    pub const fn rows_for(self, frames: u32) -> u32 {
        frames.div_ceil(self.stripe.data() as u32)
    }

    /// Where the frame with this number of a record is that has these rows.
    ///
    /// # Panics
    /// If the segment has no such rows, or these have no room for it.
    pub fn place_of(self, span: Span, frame: u32) -> Place {
        self.check(span);
        assert!(
            u64::from(frame) < self.stripe.data() as u64 * u64::from(span.rows),
            "frame {frame} is none of {} columns of {span:?}",
            self.stripe.data()
        );
        let (column, row) = (frame / span.rows, span.row + frame % span.rows);
        Place::of_block(span.segment, column * self.rows + row)
    }

    /// The number of the frame at a place in the record that has these rows: what
    /// [`Shape::place_of`] says, the other way round. `None` if the place is elsewhere.
    ///
    /// # Panics
    /// If the segment has no such rows.
    pub fn frame_at(self, span: Span, place: Place) -> Option<u32> {
        self.check(span);
        if place.segment != span.segment {
            return None;
        }
        let (column, row) = self.column_and_row(place)?;
        let below = row.checked_sub(span.row).filter(|below| *below < span.rows)?;
        Some(u32::from(column) * span.rows + below)
    }

    /// The column and the row of the block in which a place is; `None` if the segment has no such
    /// block.
    pub fn column_and_row(self, place: Place) -> Option<(u8, u32)> {
        let block = place.offset_units / UNITS_PER_BLOCK;
        (block < self.data_blocks()).then(|| ((block / self.rows) as u8, block % self.rows))
    }

    /// Which block of its device a row is, in the part with this number. Parts lie on a device as
    /// segments do on the only one of a pool, so that part 0 is what is before them.
    ///
    /// # Panics
    /// If there is no such part or row.
    pub fn block_on_device(self, part: u32, row: u32) -> u64 {
        assert!(part > 0 && row < self.rows, "row {row} of part {part} is none of {self:?}");
        let part_bytes = u64::from(self.rows) * BLOCK_BYTES;
        let device = Geometry { part_bytes, segment_count: u32::MAX, columns: 1 };
        device.offset_bytes(Place::of_block(part, row)) / BLOCK_BYTES
    }

    /// The blocks from `place` on, by columns: a run for each in which there are some of them, in
    /// order. What is below the last row of a column goes on in the first of the next.
    ///
    /// # Panics
    /// If they are not whole blocks of data of one segment.
    pub fn cut(self, place: Place, blocks: u32) -> impl Iterator<Item = Run> {
        let first = place.offset_units / UNITS_PER_BLOCK;
        assert!(
            place.offset_units.is_multiple_of(UNITS_PER_BLOCK)
                && u64::from(first) + u64::from(blocks) <= u64::from(self.data_blocks()),
            "{blocks} blocks at {place:?} are not inside of {self:?}"
        );
        let end = first + blocks;
        let mut at = first;
        std::iter::from_fn(move || {
            let (column, row) = (at / self.rows, at % self.rows);
            let blocks = (self.rows - row).min(end - at);
            at += blocks;
            (blocks > 0).then_some(Run { column: column as u8, row, blocks })
        })
    }

    fn check(self, span: Span) {
        let end = u64::from(span.row) + u64::from(span.rows);
        assert!(span.rows > 0 && end <= u64::from(self.rows), "{span:?} is not inside of {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape(data: usize, parity: usize, part_bytes: u64) -> Shape {
        Shape::new(Stripe::new(data, parity).unwrap(), part_bytes)
    }

    fn shapes() -> impl Strategy<Value = Shape> {
        (1..=16usize, 0..=2usize, 16..=32u32).prop_map(|(k, p, bits)| shape(k, p, 1 << bits))
    }

    /// Rows of a segment of such a shape: at its beginning, its end and in between.
    fn span_of(shape: Shape, row: u32, rows: u32) -> Span {
        let row = row % shape.rows();
        Span { segment: 7, row, rows: 1 + rows % (shape.rows() - row) }
    }

    #[test]
    fn a_record_lies_column_by_column() {
        let shape = shape(3, 2, 64 << 10);
        assert_eq!((shape.rows(), shape.data_bytes()), (16, 3 * 65_536));
        let span = Span { segment: 9, row: 2, rows: shape.rows_for(8) };
        let blocks: Vec<u32> =
            (0..9).map(|frame| shape.place_of(span, frame).offset_units / 64).collect();
        assert_eq!(blocks, [2, 3, 4, 18, 19, 20, 34, 35, 36]);
        assert_eq!(shape.column_and_row(Place::of_block(9, 19)), Some((1, 3)));
        assert_eq!(
            shape.column_and_row(Place { segment: 9, offset_units: 48 * 64 - 1 }),
            Some((2, 15))
        );
        assert_eq!(shape.column_and_row(Place::of_block(9, 48)), None);
        assert_eq!(shape.block_on_device(1, 0), 4096);
        assert_eq!(shape.block_on_device(3, 5), 4096 + 32 + 5);
    }

    /// With one column a span is what a position in blocks and a length were.
    #[test]
    fn one_column_is_addressed_as_ever() {
        let shape = shape(1, 2, 16 << 20);
        let span = Span { segment: 4, row: 100, rows: 20 };
        for frame in 0..20 {
            assert_eq!(shape.place_of(span, frame), Place::of_block(4, 100 + frame));
        }
        let geometry = Geometry { part_bytes: 16 << 20, segment_count: 64, columns: 1 };
        let offset_bytes = geometry.offset_bytes(Place::of_block(4, 119));
        assert_eq!(shape.block_on_device(4, 119) * BLOCK_BYTES, offset_bytes);
    }

    #[test]
    fn a_read_is_cut_where_a_column_ends() {
        let shape = shape(4, 2, 64 << 10);
        let cut = |block, blocks| -> Vec<(u8, u32, u32)> {
            let runs = shape.cut(Place::of_block(1, block), blocks);
            runs.map(|run| (run.column, run.row, run.blocks)).collect()
        };
        assert_eq!(cut(0, 16), [(0, 0, 16)]);
        assert_eq!(cut(15, 2), [(0, 15, 1), (1, 0, 1)]);
        assert_eq!(cut(20, 40), [(1, 4, 12), (2, 0, 16), (3, 0, 12)]);
        assert_eq!(cut(63, 1), [(3, 15, 1)]);
        assert_eq!(cut(64, 0), []);
    }

    #[test]
    fn what_is_outside_is_stopped() {
        let shape = shape(3, 2, 64 << 10);
        let span = Span { segment: 1, row: 14, rows: 2 };
        let stopped = |call: &dyn Fn()| {
            let call = std::panic::AssertUnwindSafe(call);
            assert!(std::panic::catch_unwind(call).is_err());
        };
        stopped(&|| _ = shape.place_of(span, 6));
        stopped(&|| _ = shape.place_of(Span { rows: 3, ..span }, 0));
        stopped(&|| _ = shape.place_of(Span { rows: 0, ..span }, 0));
        stopped(&|| _ = shape.place_of(Span { row: u32::MAX, ..span }, 0));
        stopped(&|| _ = shape.block_on_device(0, 0));
        stopped(&|| _ = shape.block_on_device(1, 16));
        stopped(&|| _ = shape.cut(Place::of_block(1, 40), 9).count());
        stopped(&|| _ = shape.cut(Place { segment: 1, offset_units: 1 }, 1).count());
        stopped(&|| _ = Shape::new(shape.stripe(), 3 << 20));
        stopped(&|| _ = Shape::new(shape.stripe(), 8 << 30));
    }

    proptest! {
        #[test]
        fn frames_and_places_are_each_other_s(
            shape in shapes(),
            (row, rows) in any::<(u32, u32)>(),
            frame: u32,
        ) {
            let span = span_of(shape, row, rows);
            let k = shape.stripe().data() as u32;
            let frame = frame % (k * span.rows);
            let place = shape.place_of(span, frame);
            prop_assert_eq!(shape.frame_at(span, place), Some(frame));
            let (column, row) = shape.column_and_row(place).unwrap();
            prop_assert!((span.row..span.row + span.rows).contains(&row));
            prop_assert_eq!(u32::from(column), frame / span.rows);
            prop_assert_eq!(Place::of_block(7, u32::from(column) * shape.rows() + row), place);
            prop_assert_eq!(shape.frame_at(Span { segment: 8, ..span }, place), None);
            if row > 0 {
                let above = Span { row: 0, rows: row, ..span };
                prop_assert_eq!(shape.frame_at(above, place), None);
            }
            // What is next to it in the record is below it, but at the end of a column.
            if !(frame + 1).is_multiple_of(span.rows) {
                prop_assert_eq!(shape.place_of(span, frame + 1), place.plus_blocks(1));
            }
        }

        /// Rows are as few as they can be, and all frames have one.
        #[test]
        fn frames_fit_the_rows_that_they_take(shape in shapes(), frames in 1..5000u32) {
            let (k, rows) = (shape.stripe().data() as u32, shape.rows_for(frames));
            prop_assert!(rows * k >= frames && (rows - 1) * k < frames);
        }

        /// No two rows of any parts are the same block of a device, and none is before them.
        #[test]
        fn parts_lie_one_behind_the_other(shape in shapes(), part in 1..1_000_000u32, row: u32) {
            let row = row % shape.rows();
            let first_bytes = (16u64 << 20).max(u64::from(shape.rows()) * BLOCK_BYTES);
            let behind = u64::from(part - 1) * u64::from(shape.rows()) + u64::from(row);
            let block = shape.block_on_device(part, row);
            prop_assert_eq!(block, first_bytes / BLOCK_BYTES + behind);
        }

        #[test]
        fn runs_are_all_blocks_once_and_in_order(
            shape in shapes(),
            first: u32,
            blocks in 0..100_000u32,
        ) {
            let first = first % shape.data_blocks();
            let blocks = blocks.min(shape.data_blocks() - first);
            let mut at = first;
            for run in shape.cut(Place::of_block(3, first), blocks) {
                prop_assert!(run.blocks > 0 && run.row + run.blocks <= shape.rows());
                prop_assert_eq!(u32::from(run.column) * shape.rows() + run.row, at);
                at += run.blocks;
                // It ends where it has to, and nowhere else.
                prop_assert!(at == first + blocks || at.is_multiple_of(shape.rows()));
            }
            prop_assert_eq!(at, first + blocks);
        }
    }
}
