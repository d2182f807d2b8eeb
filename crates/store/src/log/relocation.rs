//! Chunks that move to another place in the log.

use block::{FRAME_BYTES, Frame};
use format::Entry;

use crate::chunks::plans::Held;
use crate::log::record::Originals;

/// Chunks that move.
#[derive(Debug, Default)]
pub(crate) struct Relocation {
    /// Places are from the start of `frames`, or of `packed` where they are groups.
    pub(crate) entries: Vec<Entry>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) packed: Vec<u8>,
    pub(crate) originals: Originals,
    /// Keeps the rows that it changes in memory; set when it is submitted.
    pub(crate) plan: Option<Held>,
}

impl Relocation {
    /// 4 KiB blocks that it takes in a record.
    pub(crate) fn payload_blocks(&self) -> usize {
        self.frames.len() + self.packed.len().div_ceil(FRAME_BYTES)
    }
}
