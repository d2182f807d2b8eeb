//! Chunks that move to another location in the log.

use block::{FRAME_BYTES, Frame};
use format::Entry;

use crate::chunks::plans::Held;
use crate::log::record::Originals;

/// Chunks that move.
#[derive(Debug, Default)]
pub(crate) struct Relocation {
    /// Locations are relative to the start of `frames` or, for groups, of `packed`.
    pub(crate) entries: Vec<Entry>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) packed: Vec<u8>,
    pub(crate) originals: Originals,
    /// Keeps the rows that it changes in memory; set when it is submitted.
    pub(crate) plan: Option<Held>,
}

impl Relocation {
    /// Returns how many 4 KiB blocks it takes in a record.
    pub(crate) fn payload_blocks(&self) -> usize {
        self.frames.len() + self.packed.len().div_ceil(FRAME_BYTES)
    }
}
