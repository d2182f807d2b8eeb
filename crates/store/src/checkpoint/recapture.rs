//! A checkpoint of which the device refuses a part is captured anew, and goes elsewhere.
//!
//! Its pages and nodes have the places of the one that was not written, and each names those below
//! it. So none can be moved alone: all of it is given back, and is where it was at the checkpoint
//! before, which recovery would read. What was opened for it is free again, so that the next try
//! has as much room as this one, but for the segment that has refused: that is nobody's until a
//! checkpoint was written, or none is tried any more. No write is on its way to any of them: what
//! is written of a checkpoint is waited for.

use crate::StoreError;
use crate::checkpoint::Capture;
use crate::chunks::table::Table;
use crate::chunks::table_name::TableName;
use crate::log::checkpointer::Checkpointer;
use crate::log::tail::Since;
use crate::world::World;
use crate::writer::Writer;

impl World {
    /// All tables, in the order in which a checkpoint has them.
    pub(crate) fn tables(&self) -> [&Table; 5] {
        TableName::ALL.map(|name| self.table(name))
    }
}

/// A checkpoint of which the device has refused a part.
pub(crate) struct Refused {
    pub(super) capture: Capture,
    /// Where that part should have gone.
    pub(super) segment: u32,
}

/// What a checkpoint that was captured has changed in the writer, as it was.
pub(crate) struct Before {
    pub(super) log: Since,
    pub(super) holes_blocks: u64,
}

impl Before {
    /// The log has gone on meanwhile.
    fn restore(self, writer: &mut Writer) {
        writer.log.undo_checkpoint(self.log);
        writer.next_checkpoint.note_holes(self.holes_blocks);
    }
}

/// A segment that has refused a part of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) segment: u32,
    /// Whether it was opened for that checkpoint, and holds nothing.
    pub(crate) is_retired: bool,
}

impl Refused {
    /// Nothing of it was captured.
    ///
    /// # Errors
    /// If memory and medium differ by now.
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
