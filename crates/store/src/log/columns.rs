//! The placement of compressed groups in the columns of a record.
//!
//! A group is read from one device, so no group is in two columns: one that would be begins the
//! next. The length of a column depends on the number of rows of the record, and that on the gaps.
//! So the layout is tried, beginning with the minimum number of rows.

use format::Entry;
use format::geometry::UNITS_PER_BLOCK;
use format::record_places::rows_max;

/// The location of groups.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Laid {
    /// The offset of each, in units of 64 bytes after the whole blocks of the payload.
    pub(crate) starts: Vec<u32>,
    /// Blocks to append after the last, so that the record has as many rows as were assumed.
    pub(crate) pad_blocks: u32,
}

/// Places groups of this many units after the first units of a record, which are header and whole
/// blocks.
pub(crate) fn lay(columns: u32, first_units: u32, groups: &[u16]) -> Laid {
    let units: u32 = groups.iter().copied().map(u32::from).sum();
    let blocks = (first_units + units).div_ceil(UNITS_PER_BLOCK);
    let mut rows = blocks.div_ceil(columns);
    loop {
        if let Some(laid) = lay_in(rows, columns, first_units, groups) {
            debug_assert!(rows <= rows_max(columns, blocks));
            return laid;
        }
        rows += 1;
    }
}

fn lay_in(rows: u32, columns: u32, first_units: u32, groups: &[u16]) -> Option<Laid> {
    let column_units = rows * UNITS_PER_BLOCK;
    let (mut at, mut starts) = (first_units, Vec::with_capacity(groups.len()));
    for units in groups.iter().copied().map(u32::from) {
        if at / column_units != (at + units - 1) / column_units {
            at = at.next_multiple_of(column_units);
        }
        if units > column_units || at + units > columns * column_units {
            return None;
        }
        starts.push(at - first_units);
        at += units;
    }
    let blocks = at.div_ceil(UNITS_PER_BLOCK);
    // With fewer blocks a reader would compute fewer rows.
    let pad_blocks = ((rows - 1) * columns + 1).saturating_sub(blocks);
    Some(Laid { starts, pad_blocks })
}

/// Returns the units of the compressed group of an entry.
pub(crate) fn group_units(entry: &Entry) -> Option<u16> {
    match entry {
        Entry::StoreGroup { stored_units, .. } | Entry::RelocateGroup { stored_units, .. } => {
            Some(*stored_units)
        }
        _ => None,
    }
}

/// Returns its location in the entry.
pub(crate) fn group_start(entry: &mut Entry) -> Option<&mut u32> {
    match entry {
        Entry::StoreGroup { payload_units, .. } | Entry::RelocateGroup { payload_units, .. } => {
            Some(payload_units)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_group_that_would_span_two_columns_begins_the_next() {
        // A header of a block, and a group of three blocks: two columns of three rows.
        assert_eq!(lay(2, 64, &[192]), Laid { starts: vec![128], pad_blocks: 0 });
        // One that fits beside it stays there.
        assert_eq!(lay(2, 64, &[64, 128]), Laid { starts: vec![0, 64], pad_blocks: 0 });
        // A group of two blocks after a header needs two rows in four columns.
        assert_eq!(lay(4, 64, &[100]), Laid { starts: vec![64], pad_blocks: 1 });
    }

    proptest! {
        #[test]
        fn no_group_spans_columns_and_readers_count_the_same_rows(
            columns in 2..=16u32,
            first_blocks in 1..300u32,
            groups in prop::collection::vec(1..=512u16, 1..200),
        ) {
            let first_units = first_blocks * UNITS_PER_BLOCK;
            let laid = lay(columns, first_units, &groups);
            let pieces = laid.starts.iter().zip(&groups);
            let ends = pieces.map(|(start, units)| start + u32::from(*units));
            let end = first_units + ends.clone().next_back().unwrap();
            let blocks = end.div_ceil(UNITS_PER_BLOCK) + laid.pad_blocks;
            let rows = blocks.div_ceil(columns);
            let units: u32 = groups.iter().copied().map(u32::from).sum();
            let least = (first_units + units).div_ceil(UNITS_PER_BLOCK);
            prop_assert!(rows <= rows_max(columns, least));
            let column = |units: u32| (first_units + units) / UNITS_PER_BLOCK / rows;
            let mut before = 0;
            for (start, end) in laid.starts.iter().copied().zip(ends) {
                prop_assert!(start >= before && column(start) == column(end - 1));
                before = end;
            }
        }
    }
}
