//! A checkpoint of which the device refuses a part is captured anew, and goes elsewhere.
//!
//! Its pages and nodes have the places of the one that was not written, and each names those below
//! it. So none can be moved alone: all of them count as changed once more, and the next capture
//! takes back those places and gives others, from a segment of its own on. What the last checkpoint
//! that was written needs is freed by none that was not.

use crate::checkpoint::{Capture, Checkpointer};
use crate::scrub::TableName;
use crate::table::Table;
use crate::world::World;
use crate::writer::Writer;

impl World {
    /// All tables, in the order in which a checkpoint has them.
    pub(crate) fn tables(&self) -> [&Table; 3] {
        TableName::ALL.map(|name| self.table(name))
    }
}

/// A checkpoint of which the device has refused a part.
pub(crate) struct Refused {
    pub(crate) capture: Capture,
    /// Where that part should have gone.
    pub(crate) segment: u32,
}

impl Refused {
    /// All that it would have written is to be written by the next one, elsewhere.
    pub(crate) fn take_back(
        self,
        world: &World,
        writer: &mut Writer,
        checkpointer: &mut Checkpointer,
    ) {
        let Self { capture, segment } = self;
        capture.captured.refused(world, writer);
        // The last checkpoint's are released already, and stay what recovery would read.
        checkpointer.streams = capture.streams;
        checkpointer.refused.insert(segment);
        writer.moved_count += 1;
    }
}
