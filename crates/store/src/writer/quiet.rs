//! The record that is written when the log becomes idle.
//!
//! The next record has a copy of a record's header and entries, and says that it is durable. The
//! last record has neither: one bad block would silently lose it and what it acknowledged, because
//! recovery could not distinguish it from a record torn by a crash. So if nothing has followed from
//! one turn of maintenance to the next, a record without entries is written. If a crash tears that
//! one, nothing is lost.

use format::RecordVersion;

use crate::log::record::Record;
use crate::world::World;
use crate::writer::Writer;

impl Writer {
    /// Returns whether a record without entries must follow the last record of the log.
    fn is_rest_due(&self, world: &World) -> bool {
        // With early answers nothing is promised before a flush, which is part of a record.
        self.log.bytes() > 0
            && self.log.ends_with_entries()
            && world.medium.version().records() > RecordVersion::V2
            && !self.early()
            && !self.failed
    }

    /// Seals one, if it is due and there is room for it.
    pub(crate) fn begin_rest(&mut self, world: &World) -> bool {
        self.is_rest_due(world) && self.begin_mark(world)
    }

    /// Seals a record without entries, if nothing else is in flight and there is room for it.
    pub(crate) fn begin_mark(&mut self, world: &World) -> bool {
        // At the beginning of a segment it would be mistaken for a link.
        let is_inside = self.log.end().block > 0 && self.log.segment_rest_rows() > 0;
        if self.failed || self.early() || !self.is_idle() || !is_inside {
            return false;
        }
        let blocks = Record::default().header_blocks(self.log.end_own());
        let geometry = world.medium.geometry_of(self.log.end().segment);
        let rows = geometry.rows_for(blocks.into());
        if rows > u64::from(self.log.segment_rest_rows()) {
            return false;
        }
        let rest = self.link(world, self.log.end(), self.log.end_own());
        self.log.sealed(&rest);
        self.sealed.push_back(rest);
        true
    }
}
