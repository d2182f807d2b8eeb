//! A checkpoint of which the device refuses a part is captured again, for other locations.
//!
//! Its pages and nodes have their locations in the checkpoint that was not written, and each refers
//! to those below it. So none can be moved alone: the whole capture is undone, and everything
//! returns to its location of the previous checkpoint, which recovery would read. The segments
//! opened for it become free again, so that the next try has as much room as this one, except the
//! segment that refused: it is not used before a checkpoint was written, or until no further one is
//! tried. No write to any of them is in flight, because a checkpoint waits for its writes.

use crate::StoreError;
use crate::checkpoint::Capture;
use crate::chunks::table::Table;
use crate::chunks::table_name::TableName;
use crate::log::checkpointer::Checkpointer;
use crate::log::tail::Since;
use crate::world::World;
use crate::writer::Writer;

impl World {
    /// Returns all tables, in the order in which a checkpoint has them.
    pub(crate) fn tables(&self) -> [&Table; 5] {
        TableName::ALL.map(|name| self.table(name))
    }
}

/// A checkpoint of which the device has refused a part.
pub(crate) struct Refused {
    pub(super) capture: Capture,
    /// The segment of that part.
    pub(super) segment: u32,
}

/// The state of the writer before a capture changed it.
pub(crate) struct Before {
    pub(super) log: Since,
    pub(super) holes_blocks: u64,
}

impl Before {
    /// The log has continued meanwhile.
    fn restore(self, writer: &mut Writer) {
        writer.log.undo_checkpoint(self.log);
        writer.next_checkpoint.note_holes(self.holes_blocks);
    }
}

/// A segment that has refused a part of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) segment: u32,
    /// Whether it was opened for that checkpoint, and is empty.
    pub(crate) is_retired: bool,
}

impl Refused {
    /// Undoes a capture.
    ///
    /// # Errors
    /// If memory and medium differ now.
    pub(crate) fn take_back(
        self,
        world: &World,
        writer: &mut Writer,
        checkpointer: &mut Checkpointer,
    ) -> Result<Bad, StoreError> {
        let Self { capture: Capture { captured, streams, before, .. }, segment } = self;
        checkpointer.refused.insert(segment);
        writer.log.count_move();
        let segments = &mut writer.state.segments;
        for (place, units) in streams.into_iter().flatten() {
            segments.sub_live(place, units)?;
        }
        for (place, units) in checkpointer.streams.iter().flatten() {
            segments.add_live(*place, *units)?;
        }
        let is_retired = captured.opened.contains(&segment);
        captured.give_back(world, writer, checkpointer, Some(segment))?;
        before.restore(writer);
        Ok(Bad { segment, is_retired })
    }
}
