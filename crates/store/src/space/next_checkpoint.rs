//! The room for the next checkpoint, known without examining any page.
//!
//! Invariants:
//! 1. The rest of the open segment is at most a segment.
//! 2. There are at least as many holes as are counted: a checkpoint that relies on them finds them.

/// The room for the next checkpoint; see the module.
pub(crate) struct NextCheckpoint {
    /// The usable blocks of a segment.
    segment_blocks: u32,
    /// The blocks left of the segment in which the next checkpoint continues.
    rest_blocks: u32,
    /// The minimum number of blocks of metadata segments that the next checkpoint may overwrite.
    holes_blocks: u64,
    /// The maximum bytes of the key-value space in a checkpoint.
    config_bytes: u64,
    /// Simulates the code before `room`: changes claim no segments.
    #[cfg(test)]
    pub(crate) claims_nothing: bool,
}

impl NextCheckpoint {
    /// Creates one without an open segment.
    pub(crate) fn new(segment_blocks: u32) -> Self {
        Self {
            segment_blocks,
            rest_blocks: 0,
            holes_blocks: 0,
            config_bytes: 0,
            #[cfg(test)]
            claims_nothing: false,
        }
    }

    /// Returns the usable blocks of a segment.
    pub(crate) fn segment_blocks(&self) -> u32 {
        self.segment_blocks
    }

    /// Sets the usable blocks after an upgrade; the next checkpoint continues in no segment.
    pub(crate) fn upgraded(&mut self, segment_blocks: u32) {
        self.segment_blocks = segment_blocks;
        self.note_open((0, 0));
    }

    /// Sets the usable blocks, because the width of the narrowest segment has changed.
    pub(crate) fn fill_with(&mut self, segment_blocks: u32) {
        let before = std::mem::replace(&mut self.segment_blocks, segment_blocks);
        if self.rest_blocks > 0 {
            self.rest_blocks = (self.rest_blocks + segment_blocks).saturating_sub(before);
        }
    }

    /// Sets where it continues: a segment and a block or, if the block is 0, none. The block may be
    /// beyond the usable ones now.
    pub(crate) fn note_open(&mut self, (segment, block): (u32, u32)) {
        let rest_blocks = self.segment_blocks.saturating_sub(block);
        self.rest_blocks = if segment == 0 { 0 } else { rest_blocks };
    }

    /// Returns the blocks left of the segment in which it continues.
    pub(crate) fn rest_blocks(&self) -> u32 {
        self.rest_blocks
    }

    /// Returns the blocks that it can write without opening a segment.
    pub(crate) fn blocks_in_place(&self) -> u64 {
        u64::from(self.rest_blocks) + self.holes_blocks
    }

    /// Returns the minimum number of blocks of metadata segments that it may overwrite.
    pub(crate) fn holes_blocks(&self) -> u64 {
        self.holes_blocks
    }

    /// Sets the number of blocks that it may overwrite; returns the previous one.
    pub(crate) fn note_holes(&mut self, blocks: u64) -> u64 {
        std::mem::replace(&mut self.holes_blocks, blocks)
    }

    /// Returns the maximum bytes of the key-value space.
    pub(crate) fn config_bytes(&self) -> u64 {
        self.config_bytes
    }

    /// Sets them.
    pub(crate) fn note_config(&mut self, bytes: u64) {
        self.config_bytes = bytes;
    }

    /// Adds to them.
    pub(crate) fn add_config(&mut self, bytes: u64) {
        self.config_bytes += bytes;
    }

    /// Sets the rest of the open segment to nothing.
    #[cfg(test)]
    pub(crate) fn use_up_rest(&mut self) {
        self.rest_blocks = 0;
    }
}
