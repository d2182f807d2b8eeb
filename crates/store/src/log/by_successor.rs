//! Reading a record with a bad header from the copy in the next record.

use std::ops::Range;

use format::log::LogPosition;
use format::{Place, RecordHeader};

use crate::StoreError;
use crate::log::log_reader::{LogReader, ReadRecord, entry_blocks};

impl LogReader<'_> {
    /// Returns the record at a position, if it is the one that must be there and its header is bad,
    /// from the copy in the next record. That follows it, or begins the next segment. If there are
    /// several, the one of the latest epoch counts.
    ///
    /// Only some devices may have the next record: each mirror is examined, and for stripes all
    /// ways of reconstruction, so that the log has the same end with any set of devices.
    ///
    /// A record that is alone in a segment which the log left because of a bad location is not
    /// found.
    pub(crate) fn record_by_copy(
        &mut self,
        at: &LogPosition,
        names_next: bool,
    ) -> Result<Option<ReadRecord>, StoreError> {
        let copies = self.medium.disk.copies();
        if copies <= 1 || self.is_one_in_all_ways(at, names_next) {
            return self.record_by_next(at, names_next);
        }
        let mut best = None;
        for copy in 0..copies {
            let mut reader = LogReader::new(self.medium);
            reader.copy = Some(copy);
            if self.medium.geometry().has_stripes() && !reader.has_way(at) {
                continue;
            }
            let found = reader.record_by_next(at, names_next)?;
            let epoch = |of: &Option<ReadRecord>| of.as_ref().map(|it| it.header.epoch);
            if epoch(&found) > epoch(&best) {
                best = found;
            }
        }
        Ok(best)
    }

    /// Returns whether the data here can be reconstructed in this way. With devices missing most
    /// ways are impossible, and trying each for each row takes seconds.
    fn has_way(&mut self, at: &LogPosition) -> bool {
        let last = self.medium.geometry().rows() - 1;
        self.frame(Place::of_block(at.segment, at.block.min(last))).is_ok()
    }

    /// Returns whether rows in which the next record can begin are stripes written at one time: all
    /// ways of reconstruction then give the same.
    pub(super) fn is_one_in_all_ways(&self, at: &LogPosition, names_next: bool) -> bool {
        let medium = self.medium;
        let are_one = |segment, rows: Range<u32>| {
            rows.is_empty() || matches!(medium.disk.verify_rows(segment, rows), Ok(true))
        };
        let rows = medium.geometry().rows();
        let header_rows = medium.tuning.header_blocks_max();
        let header_at = |block: u32| block..rows.min(block.saturating_add(header_rows));
        medium.geometry().has_stripes()
            && are_one(at.segment, self.blocks_behind(at.segment, at.block))
            && entry_blocks(rows)
                .filter(|_| names_next)
                .all(|block| are_one(at.next_segment, header_at(block)))
    }

    /// The same, on the device that is being read.
    fn record_by_next(
        &mut self,
        at: &LogPosition,
        names_next: bool,
    ) -> Result<Option<ReadRecord>, StoreError> {
        let mut best: Option<ReadRecord> = None;
        let here = self.blocks_behind(at.segment, at.block).map(|block| (at.segment, block));
        let entries = entry_blocks(self.medium.geometry().rows());
        let next = entries.filter(|_| names_next).map(|block| (at.next_segment, block));
        for place in here.chain(next) {
            if place.0 != at.segment && self.copy.is_some() {
                // The first rows of a record suffice, in each way of reconstruction.
                self.read_headers_only();
            }
            let found = self.record_before(at.block, at.segment, place)?;
            let Some(found) = found else { continue };
            let least = best.as_ref().map_or(0, |best| best.header.epoch);
            let RecordHeader { lsn, previous, epoch, .. } = found.header;
            if lsn == at.lsn && previous == at.previous && epoch >= least {
                best = Some(found);
            }
        }
        Ok(best)
    }
}
