//! Gathers: sectors of an edit's blocks that come from the current content of volumes.

use std::collections::BTreeMap;

use block::{
    BlockNumber, BlockRange, Frame, SECTOR_BYTES, SECTORS_PER_BLOCK, Sector, SectorRange,
    VolumeError, VolumeId,
};

use crate::edits::edit::{Edit, Step};

/// Blocks that must be read, with the sectors that are taken from each.
pub(crate) type Wanted = BTreeMap<(VolumeId, BlockNumber), Vec<Gather>>;

/// Sectors of a step's block that come from a volume. There are one or two for each block that a
/// copy moves, so they are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gather {
    /// The step; `None`: the part that is being staged.
    step: Option<u32>,
    pub(super) frame: u32,
    /// The first sector in the frame, 0..8.
    sector: u8,
    /// The first sector in the source block.
    from: u8,
    count: u8,
}

impl Gather {
    /// Extends this by the next one, if that continues the same sectors; returns whether it did.
    fn extend(&mut self, next: &Gather) -> bool {
        let expected = Gather {
            sector: self.sector + self.count,
            from: self.from + self.count,
            count: 1,
            ..*self
        };
        let follows = expected == *next;
        self.count += u8::from(follows);
        follows
    }
}

/// Adds a gather to those of a block.
pub(crate) fn add_gather(gathers: &mut Vec<Gather>, gather: Gather) {
    if !gathers.last_mut().is_some_and(|last| last.extend(&gather)) {
        gathers.push(gather);
    }
}

/// Returns a gather for sector `at` of a step (or of a part), from a sector of a volume.
pub(crate) fn gather_of(step: Option<usize>, at: u64, from: Sector) -> Gather {
    Gather {
        step: step.map(|step| step as u32),
        frame: (at / SECTORS_PER_BLOCK) as u32,
        sector: (at % SECTORS_PER_BLOCK) as u8,
        from: (from.0 % SECTORS_PER_BLOCK) as u8,
        count: 1,
    }
}

impl Edit {
    /// Gathers, for the last added step, the sectors of `blocks` outside of `range`.
    pub(crate) fn gather_edges(
        &mut self,
        volume: VolumeId,
        range: SectorRange,
        blocks: BlockRange,
    ) {
        let first = blocks.start.sector().0;
        let end = blocks.end().sector().0;
        let range_end = range.start.0 + range.count.0;
        for sector in (first..range.start.0).chain(range_end..end) {
            self.gather_sector(sector - first, (volume, Sector(sector)));
        }
    }

    /// Gathers sector `at` of the last added step from `origin`.
    pub(crate) fn gather_sector(&mut self, at: u64, origin: (VolumeId, Sector)) {
        let (volume, sector) = origin;
        let gather = gather_of(Some(self.steps.len() - 1), at, sector);
        add_gather(self.wanted.entry((volume, sector.block())).or_default(), gather);
    }

    /// Fills the gathers, and compares; `contents` has the wanted blocks in order.
    pub(crate) fn fill_gathers(&mut self, contents: &[Frame]) -> Result<(), VolumeError> {
        let by_block: Vec<(&(VolumeId, BlockNumber), &Frame)> =
            self.wanted.keys().zip(contents).collect();
        if let Some(compare) = &self.compare {
            compare.run(&by_block)?;
        }
        let wanted = std::mem::take(&mut self.wanted);
        for (gathers, content) in wanted.values().zip(contents) {
            for gather in gathers {
                let Some(frame) = self.frame_of(gather) else { continue };
                let mut filled = std::mem::replace(frame, Frame::zeros()).into_mut();
                let bytes = |sectors: u8| usize::from(sectors) * SECTOR_BYTES as usize;
                let (to, from) = (bytes(gather.sector), bytes(gather.from));
                let length = bytes(gather.count);
                filled[to..to + length].copy_from_slice(&content[from..from + length]);
                *frame = filled.freeze();
            }
        }
        self.wanted = wanted;
        Ok(())
    }

    /// Returns the frame that a gather fills.
    fn frame_of(&mut self, gather: &Gather) -> Option<&mut Frame> {
        let Some(step) = gather.step else { return self.staged_frame(gather) };
        match self.steps.get_mut(step as usize) {
            Some(Step::Put(put)) => put.frame_mut(gather.frame as usize),
            _ => None,
        }
    }
}
