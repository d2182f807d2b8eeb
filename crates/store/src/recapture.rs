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
    /// All that it would have written is to be written by the next one, elsewhere. Until that has
    /// captured it, it stays in memory: nothing is read from a place that holds nothing.
    pub(crate) fn take_back(
        self,
        world: &World,
        writer: &mut Writer,
        checkpointer: &mut Checkpointer,
    ) {
        let Self { capture, segment } = self;
        for (table, keys) in world.tables().into_iter().zip(&capture.pages) {
            for key in keys {
                let is_held = table.write_anew(*key);
                debug_assert!(is_held, "a page that is not on the medium has left memory");
            }
        }
        for id in &capture.nodes {
            // It may have been removed since.
            world.nodes.write_anew(&world.medium, *id);
        }
        world.memory.end_capture();
        // The last checkpoint's are released already, and stay what recovery would read.
        checkpointer.streams = capture.streams;
        checkpointer.refused.insert(segment);
        writer.metadata_rest_blocks = 0;
        writer.moved_count += 1;
    }
}
