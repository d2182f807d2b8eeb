//! Scrubbing parity, which nobody reads while all is well: it is computed once more from the data.

use format::{LogPosition, SegmentState};

use super::{Repair, Step, What};
use crate::log::log_reader::LogReader;
use crate::log::mend::encode_anew;
use crate::log::replay::Found;

impl Step<'_> {
    /// Reads the records of some segments, from a row on, and says where the next one is. Only
    /// where there are stripes. What of a segment is behind its last record is nobody's.
    pub(super) fn parity(&mut self, mut segment: u32, mut row: u32) -> Option<(u32, u32)> {
        let store = self.store;
        let medium = &store.world.medium;
        if !medium.geometry().has_stripes() {
            return None;
        }
        let mut reader = LogReader::new(medium);
        while segment < medium.geometry().segment_count {
            if self.is_spent() {
                return Some((segment, row));
            }
            let (is_log, end_lsn) = {
                let writer = store.writer.lock();
                let state = writer.state.segments.row(segment).state;
                (state == SegmentState::Log, writer.log.flushed_lsn() + 1)
            };
            let found = is_log.then(|| record_at(&mut reader, segment, row)).flatten();
            let Some(found) = found.filter(|found| found.header.lsn < end_lsn) else {
                (segment, row) = (segment + 1, 0);
                continue;
            };
            self.parity_of(&found);
            row += found.places.rows();
        }
        None
    }

    /// A record whose parity is wrong has it encoded anew, if its data is right.
    fn parity_of(&mut self, found: &Found) {
        let medium = &self.store.world.medium;
        let rows = found.places.rows();
        let shards = u64::from(medium.disk.copies());
        self.count(u64::from(rows) * shards);
        let first = found.at.block;
        let is_wrong = || {
            let verified = medium.disk.verify_rows(found.at.segment, first..first + rows);
            // Where a device is out there is nothing to compare.
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

fn record_at(reader: &mut LogReader<'_>, segment: u32, row: u32) -> Option<Found> {
    let geometry = reader.medium().geometry();
    let record = reader.record_or_copy_at(segment, row).ok().flatten()?;
    let next_segment = record.header.next_segment;
    let at = LogPosition { segment, block: row, next_segment, ..LogPosition::default() };
    Found::at(geometry, at, record).ok()
}
