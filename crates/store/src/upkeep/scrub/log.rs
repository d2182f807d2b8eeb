//! The records that recovery would read if the store ended now.

use format::LogPosition;

use super::{Repair, Step, What};
use crate::log::log_reader::LogReader;
use crate::log::mend::mend_header;
use crate::log::replay::next_of_log;

impl Step<'_> {
    /// Reads some records from `at` on, or from where recovery would begin; returns the next one.
    /// Their entries were applied: a checkpoint makes the records unnecessary.
    pub(super) fn log(&mut self, at: Option<LogPosition>) -> Option<LogPosition> {
        let begin = self.checkpointer.superblock().log;
        // After a checkpoint recovery begins later than before it.
        let mut at = at.filter(|at| at.lsn >= begin.lsn).unwrap_or(begin);
        let end = {
            let writer = self.store.writer.lock();
            // What no flush has covered may be lost by one that fails: it is written again.
            writer.log.position().lsn.min(writer.log.flushed_lsn() + 1)
        };
        let mut reader = LogReader::new(&self.store.world.medium);
        while at.lsn < end {
            if self.is_spent() {
                return Some(at);
            }
            let found = next_of_log(&mut reader, &at).ok().flatten();
            let Some((found, is_intact)) = found else {
                // Nothing refers to the records after a missing one.
                self.find_record(&at, Repair::Underway);
                break;
            };
            // Its live data is scrubbed with the chunks.
            if mend_header(&self.store.world.medium, &found) > 0 {
                self.find_record(&found.at, Repair::Done);
            }
            let by_header = reader.record(&found.at, 0).is_ok_and(|record| record.is_some());
            if !is_intact || !by_header {
                self.find_record(&found.at, Repair::Underway);
            }
            self.count(found.header.total_blocks());
            at = found.behind();
        }
        None
    }

    fn find_record(&mut self, at: &LogPosition, repair: Repair) {
        let offset_units = at.block.saturating_mul(format::geometry::UNITS_PER_BLOCK);
        let place = format::Place { segment: at.segment, offset_units };
        let offset_bytes = self.offset_bytes(place);
        self.find(What::Record(at.lsn), offset_bytes, repair);
    }
}
