//! Placing the compressed groups of a record in the columns of its segment.

use std::num::NonZeroU16;

use block::Frame;
use format::PLACE_UNIT_BYTES;
use format::geometry::UNITS_PER_BLOCK;

use super::Record;
use crate::log::columns::{self, group_start, group_units};

impl Record {
    /// Ends collecting: the compressed groups are placed after the whole blocks, and their entries
    /// refer to them from here on. With several columns no group is in two of them, if the header
    /// has this many blocks.
    pub(crate) fn close(&mut self, columns: u8, header_blocks: u32) {
        self.whole_blocks = self.frames.len() as u32;
        let base = self.frames.len() as u32 * UNITS_PER_BLOCK;
        let mut pad_blocks = 0;
        if columns > 1 && self.packed.len_bytes() > 0 {
            pad_blocks = self.spread(columns, header_blocks * UNITS_PER_BLOCK + base);
            let blocks = u16::try_from(header_blocks).ok().and_then(NonZeroU16::new);
            assert!(blocks.is_some(), "{header_blocks} is no valid number of header blocks");
            self.header_blocks = blocks;
        }
        self.frames.extend(self.packed.take());
        self.frames.extend((0..pad_blocks).map(|_| Frame::zeros()));
        self.entries.iter_mut().filter_map(group_start).for_each(|units| *units += base);
    }

    /// Places the compressed groups of a closed record again, because its segment has another
    /// number of columns than the one it was closed for.
    pub(crate) fn lay_anew(&mut self, columns: u8) {
        let Some(header_blocks) = self.header_blocks else { return };
        for entry in &mut self.entries {
            let Some(units) = group_units(entry).map(u32::from) else { continue };
            let Some(start) = group_start(entry) else { continue };
            let mut at = *start;
            *start = (self.packed.len_bytes() as u64 / PLACE_UNIT_BYTES) as u32;
            let end = at + units;
            while at < end {
                let in_block = at % UNITS_PER_BLOCK;
                let count = (UNITS_PER_BLOCK - in_block).min(end - at);
                let bytes = |units: u32| units as usize * PLACE_UNIT_BYTES as usize;
                let block = &self.frames[(at / UNITS_PER_BLOCK) as usize];
                self.packed.push(&block[bytes(in_block)..bytes(in_block + count)]);
                at += count;
            }
        }
        self.frames.truncate(self.whole_blocks as usize);
        self.close(columns, header_blocks.get().into());
    }

    /// Moves compressed groups apart, so that none is in two columns; returns how many blocks must
    /// follow them. `first_units` units of the record come before them.
    fn spread(&mut self, columns: u8, first_units: u32) -> u32 {
        let groups: Vec<u16> = self.entries.iter().filter_map(group_units).collect();
        let laid = columns::lay(u32::from(columns), first_units, &groups);
        let bytes = |units: u32| units as usize * PLACE_UNIT_BYTES as usize;
        let pieces = laid.starts.iter().zip(&groups);
        self.packed.spread(pieces.map(|(start, units)| (bytes(*start), bytes((*units).into()))));
        let mut starts = laid.starts.into_iter();
        for units in self.entries.iter_mut().filter_map(group_start) {
            *units = starts.next().unwrap_or(*units);
        }
        laid.pad_blocks
    }
}

#[cfg(test)]
mod tests {
    use format::{ChunkId, Entry, Fingerprint, StoreFlags};
    use proptest::prelude::*;

    use super::*;

    /// A record with some whole blocks, and groups of this many units.
    fn record(whole_blocks: usize, groups: &[u16]) -> Record {
        let mut record = Record::default();
        for at in 0..whole_blocks {
            record.frames.push(block::FrameMut::from_bytes(&[at as u8; 4096]).freeze());
        }
        for (at, units) in groups.iter().copied().enumerate() {
            let payload_units = record.packed_units();
            record.packed.push(&vec![100 + at as u8; usize::from(units) * 64]);
            record.entries.push(Entry::StoreGroup {
                first: ChunkId(at as u64),
                payload_units,
                stored_units: units,
                codec: format::Codec::Lz4,
                flags: StoreFlags::default(),
                fingerprints: vec![Fingerprint::default(); 2],
            });
        }
        record
    }

    proptest! {
        /// The record equals one that was closed for its segment's columns from the start.
        #[test]
        fn a_record_is_laid_out_for_the_segment_that_it_goes_to(
            whole_blocks in 0..6usize,
            groups in prop::collection::vec(1..400u16, 1..12),
            widths in prop::collection::vec(2..=16u8, 1..4),
            header_blocks in 1..4u32,
        ) {
            let (first, last) = (widths[0], widths[widths.len() - 1]);
            let mut laid = record(whole_blocks, &groups);
            laid.close(first, header_blocks);
            widths[1..].iter().for_each(|columns| laid.lay_anew(*columns));
            let mut closed = record(whole_blocks, &groups);
            closed.close(last, header_blocks);
            prop_assert_eq!(&laid.entries, &closed.entries);
            let bytes = |record: &Record| {
                record.frames.iter().flat_map(|frame| frame.to_vec()).collect::<Vec<u8>>()
            };
            prop_assert!(bytes(&laid) == bytes(&closed));
        }
    }
}
