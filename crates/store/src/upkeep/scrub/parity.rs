//! Scrubbing parity, which is not read in normal operation: it is recomputed from the data.

use std::ops::Range;

use format::{LogPosition, RecordHeader, SegmentState};

use super::{Repair, Step, What};
use crate::log::log_reader::LogReader;
use crate::log::mend::{encode_anew, mend_record};
use crate::log::replay::Found;
use crate::upkeep::Store;

impl Step<'_> {
    /// Reads the records of some segments, from a row on; returns where the next one is. Only for
    /// striped pools.
    ///
    /// What a segment has after its last record is unused, and may look like records: those of its
    /// earlier use, and others that were given up. They are not touched, because the next record
    /// may be written there at this moment.
    pub(super) fn parity(&mut self, mut segment: u32, mut row: u32) -> Option<(u32, u32)> {
        let store = self.store;
        let medium = &store.world.medium;
        if !medium.geometry().has_stripes() {
            return None;
        }
        let mut reader = LogReader::new(medium);
        let mut before: Option<RecordHeader> = None;
        while segment < medium.geometry().segment_count {
            if self.is_spent() {
                return Some((segment, row));
            }
            let limits = limits_of(self.store, segment);
            let found = limits.filter(|limits| row < limits.end_row);
            let found = found.and_then(|limits| {
                let found = record_at(&mut reader, segment, row)?;
                limits.has(&found.header, before.as_ref()).then_some(found)
            });
            let Some(found) = found else {
                (segment, row, before) = (segment + 1, 0, None);
                continue;
            };
            self.parity_of(&found);
            row += found.places.rows();
            before = Some(found.header);
        }
        None
    }

    /// Encodes the parity of a record again if it is wrong and the data is right.
    fn parity_of(&mut self, found: &Found) {
        let medium = &self.store.world.medium;
        let rows = found.places.rows();
        let shards = u64::from(medium.disk.copies());
        self.count(u64::from(rows) * shards);
        let first = found.at.block;
        let is_wrong = || {
            let verified = medium.disk.verify_rows(found.at.segment, first..first + rows);
            // If a device is out there is nothing to compare.
            matches!(verified, Ok(false))
        };
        if !is_wrong() {
            return;
        }
        let is_mended = encode_anew(medium, found) && !is_wrong();
        let repair = if is_mended { Repair::Done } else { Repair::Impossible };
        let offset_bytes = self.offset_bytes(found.places.block(0));
        self.find(What::Record(found.header.lsn), offset_bytes, repair);
    }
}

/// Returns which records a segment has; `None` if it is not a log segment.
fn limits_of(store: &Store, segment: u32) -> Option<Limits> {
    let writer = store.writer.lock();
    let (row, end) = (writer.state.segments.row(segment), writer.log.end());
    let end_row = match segment {
        segment if segment == end.segment => end.block,
        segment if segment == end.next_segment => 0,
        _ => store.world.medium.geometry().rows(),
    };
    let (opened_lsn, opened_epoch) = (row.opened_lsn, row.opened_epoch);
    let end_lsn = writer.log.flushed_lsn() + 1;
    let limits = Limits { opened_lsn, opened_epoch, end_lsn, end_row };
    (row.state == SegmentState::Log).then_some(limits)
}

impl Store {
    /// Encodes all records again that have some of these rows of a segment, from data that matches
    /// its checksums. The caller keeps the segment from being reused.
    pub(crate) fn encode_rows_anew(&self, segment: u32, rows: &Range<u32>) {
        // What no copy has right is lost, and stays as it was rebuilt.
        self.records_of(segment, rows, |found| _ = encode_anew(&self.world.medium, found));
    }

    /// Does the same in mirrors: makes all copies alike that are in.
    pub(crate) fn mend_rows(&self, segment: u32, rows: &Range<u32>) {
        self.records_of(segment, rows, |found| mend_record(&self.world.medium, found, &[]));
    }

    /// Visits the records that have some of these rows of a segment.
    fn records_of(&self, segment: u32, rows: &Range<u32>, visit: impl Fn(&Found)) {
        let Some(limits) = limits_of(self, segment) else { return };
        let mut reader = LogReader::new(&self.world.medium);
        let (mut row, mut before): (u32, Option<RecordHeader>) = (0, None);
        while row < rows.end.min(limits.end_row) {
            let Some(found) = record_at(&mut reader, segment, row) else { return };
            if !limits.has(&found.header, before.as_ref()) {
                return;
            }
            row += found.places.rows();
            if row > rows.start {
                visit(&found);
            }
            before = Some(found.header);
        }
    }
}

/// The records of a segment.
struct Limits {
    opened_lsn: u64,
    opened_epoch: u64,
    end_lsn: u64,
    end_row: u32,
}

impl Limits {
    /// Returns whether this is one of them, after the previous one, if that is known.
    fn has(&self, header: &RecordHeader, before: Option<&RecordHeader>) -> bool {
        (self.opened_lsn..self.end_lsn).contains(&header.lsn)
            && header.epoch >= self.opened_epoch
            && before
                .is_none_or(|before| header.lsn == before.lsn + 1 && header.previous == before.seal)
    }
}

fn record_at(reader: &mut LogReader<'_>, segment: u32, row: u32) -> Option<Found> {
    let medium = reader.medium();
    let record = reader.record_or_copy_at(segment, row).ok().flatten()?;
    let next_segment = record.header.next_segment;
    let at = LogPosition { segment, block: row, next_segment, ..LogPosition::default() };
    Found::at(medium, at, record).ok()
}
