//! What is known of the room for the next checkpoint, without looking at any page.
//!
//! Invariants:
//! 1. What is left of the open segment is at most a segment.
//! 2. The holes are at least as many as are counted: a checkpoint that counts on them finds them.

/// See the module.
pub(crate) struct NextCheckpoint {
    /// Blocks of a segment that a checkpoint can fill.
    segment_blocks: u32,
    /// Blocks that are left of the segment in which the next checkpoint goes on.
    rest_blocks: u32,
    /// Blocks of metadata segments that the next checkpoint may write over, at least.
    holes_blocks: u64,
    /// Bytes of the key-value space in a checkpoint, at most.
    config_bytes: u64,
    /// Stands in for the code before `room`: what has changed claims no segments.
    #[cfg(test)]
    pub(crate) claims_nothing: bool,
}

impl NextCheckpoint {
    /// One for which nothing is open.
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

    /// Blocks of a segment that a checkpoint can fill.
    pub(crate) fn segment_blocks(&self) -> u32 {
        self.segment_blocks
    }

    /// In a pool that was upgraded it can fill so many, and goes on in none.
    pub(crate) fn upgraded(&mut self, segment_blocks: u32) {
        self.segment_blocks = segment_blocks;
        self.note_open((0, 0));
    }

    /// It can fill so many blocks of a segment from here on, as the narrowest has another width.
    pub(crate) fn fill_with(&mut self, segment_blocks: u32) {
        let before = std::mem::replace(&mut self.segment_blocks, segment_blocks);
        if self.rest_blocks > 0 {
            self.rest_blocks = (self.rest_blocks + segment_blocks).saturating_sub(before);
        }
    }

    /// It goes on in a segment at a block, or, where that is 0, in none. The block may be behind
    /// what it can fill by now.
    pub(crate) fn note_open(&mut self, (segment, block): (u32, u32)) {
        let rest_blocks = self.segment_blocks.saturating_sub(block);
        self.rest_blocks = if segment == 0 { 0 } else { rest_blocks };
    }

    /// Blocks that are left of the segment in which it goes on.
    pub(crate) fn rest_blocks(&self) -> u32 {
        self.rest_blocks
    }

    /// Blocks that it can fill without opening a segment.
    pub(crate) fn blocks_in_place(&self) -> u64 {
        u64::from(self.rest_blocks) + self.holes_blocks
    }

    /// Blocks of metadata segments that it may write over, at least.
    pub(crate) fn holes_blocks(&self) -> u64 {
        self.holes_blocks
    }

    /// It may write over so many. How many it might before.
    pub(crate) fn note_holes(&mut self, blocks: u64) -> u64 {
        std::mem::replace(&mut self.holes_blocks, blocks)
    }

    /// Bytes of the key-value space that it has, at most.
    pub(crate) fn config_bytes(&self) -> u64 {
        self.config_bytes
    }

    /// It has so many.
    pub(crate) fn note_config(&mut self, bytes: u64) {
        self.config_bytes = bytes;
    }

    /// And so many more.
    pub(crate) fn add_config(&mut self, bytes: u64) {
        self.config_bytes += bytes;
    }

    /// Nothing is left of the open segment.
    #[cfg(test)]
    pub(crate) fn use_up_rest(&mut self) {
        self.rest_blocks = 0;
    }
}
