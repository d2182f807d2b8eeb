//! One newtype per quantity. Positions and counts are different types: a position plus a count is a
//! position.

use std::fmt;

/// Bytes in a sector, the finest unit in which a host addresses a volume (512e).
pub const SECTOR_BYTES: u64 = 512;
/// Bytes in a block, the unit in which the store maps, fingerprints and deduplicates.
pub const BLOCK_BYTES: u64 = 4096;
/// Sectors in a block.
pub const SECTORS_PER_BLOCK: u64 = BLOCK_BYTES / SECTOR_BYTES;

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

quantity!(
    /// The id of a volume. Never reused, not even after the volume was destroyed.
    VolumeId
);
quantity!(
    /// The position of a 512-byte sector in a volume, from 0.
    Sector
);
quantity!(
    /// A number of 512-byte sectors.
    SectorCount
);
quantity!(
    /// The position of a 4 KiB block in a volume, from 0.
    BlockNumber
);
quantity!(
    /// A number of 4 KiB blocks.
    BlockCount
);

impl Sector {
    /// Returns the block that contains this sector.
    pub fn block(self) -> BlockNumber {
        BlockNumber(self.0 / SECTORS_PER_BLOCK)
    }

    /// Returns the offset of this sector in its block, in bytes: 0, 512, … 3584.
    pub fn offset_in_block_bytes(self) -> usize {
        ((self.0 % SECTORS_PER_BLOCK) * SECTOR_BYTES) as usize
    }
}

impl SectorCount {
    /// Returns the size in bytes; `None` if it does not fit 64 bits.
    pub fn bytes(self) -> Option<u64> {
        self.0.checked_mul(SECTOR_BYTES)
    }
}

impl BlockNumber {
    /// Returns the first sector of this block.
    pub fn sector(self) -> Sector {
        Sector(self.0 * SECTORS_PER_BLOCK)
    }
}

/// A run of sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SectorRange {
    /// The first sector.
    pub start: Sector,
    /// The number of sectors; may be zero, for an empty range.
    pub count: SectorCount,
}

/// A run of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockRange {
    /// The first block.
    pub start: BlockNumber,
    /// The number of blocks.
    pub count: BlockCount,
}

impl SectorRange {
    /// Returns the range of `count` sectors from `start`.
    pub fn new(start: u64, count: u64) -> Self {
        Self { start: Sector(start), count: SectorCount(count) }
    }

    /// Returns the first sector after the range; `None` if it does not fit 64 bits.
    pub fn end(self) -> Option<Sector> {
        self.start.0.checked_add(self.count.0).map(Sector)
    }

    /// Returns whether it is empty.
    pub fn is_empty(self) -> bool {
        self.count.0 == 0
    }

    /// Removes up to `count` sectors from the front and returns them; empty if nothing is left.
    pub fn take_front(&mut self, count: u64) -> SectorRange {
        let taken = SectorRange::new(self.start.0, count.min(self.count.0));
        self.start.0 += taken.count.0;
        self.count.0 -= taken.count.0;
        taken
    }

    /// Returns whether the range ends at or before `size`.
    pub fn fits(self, size: SectorCount) -> bool {
        self.end().is_some_and(|end| end.0 <= size.0)
    }

    /// Returns whether the two have a sector in common. Both must fit 64 bits (see
    /// [`SectorRange::end`]).
    pub fn overlaps(self, other: SectorRange) -> bool {
        !self.is_empty()
            && !other.is_empty()
            && self.start.0 < other.start.0 + other.count.0
            && other.start.0 < self.start.0 + self.count.0
    }

    /// Returns whether both ends are on block boundaries.
    pub fn is_block_aligned(self) -> bool {
        self.start.0.is_multiple_of(SECTORS_PER_BLOCK)
            && self.count.0.is_multiple_of(SECTORS_PER_BLOCK)
    }

    /// Returns the smallest range of blocks that covers this.
    pub fn covering_blocks(self) -> BlockRange {
        if self.is_empty() {
            return BlockRange { start: self.start.block(), count: BlockCount(0) };
        }
        let last = Sector(self.start.0 + self.count.0 - 1).block();
        let start = self.start.block();
        BlockRange { start, count: BlockCount(last.0 - start.0 + 1) }
    }

    /// Returns the length in bytes; `None` if it does not fit 64 bits.
    pub fn bytes(self) -> Option<u64> {
        self.count.bytes()
    }
}

impl BlockRange {
    /// Returns the range of `count` blocks from `start`.
    pub fn new(start: u64, count: u64) -> Self {
        Self { start: BlockNumber(start), count: BlockCount(count) }
    }

    /// Returns the first block after the range. The range must fit 64 bits.
    pub fn end(self) -> BlockNumber {
        BlockNumber(self.start.0 + self.count.0)
    }

    /// Returns whether the two have a block in common.
    pub fn overlaps(self, other: BlockRange) -> bool {
        self.count.0 > 0
            && other.count.0 > 0
            && self.start.0 < other.end().0
            && other.start.0 < self.end().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covering_blocks_rounds_outwards() {
        assert_eq!(SectorRange::new(7, 2).covering_blocks(), BlockRange::new(0, 2));
        assert_eq!(SectorRange::new(8, 8).covering_blocks(), BlockRange::new(1, 1));
        assert_eq!(SectorRange::new(9, 0).covering_blocks().count.0, 0);
    }

    #[test]
    fn the_front_of_a_range_is_taken_until_nothing_is_left() {
        let mut range = SectorRange::new(3, 5);
        assert_eq!(range.take_front(2), SectorRange::new(3, 2));
        assert_eq!(range.take_front(0), SectorRange::new(5, 0));
        assert_eq!(range.take_front(9), SectorRange::new(5, 3));
        assert_eq!((range, range.take_front(1).is_empty()), (SectorRange::new(8, 0), true));
    }

    #[test]
    fn a_range_past_64_bits_fits_nothing() {
        assert!(!SectorRange::new(u64::MAX, 2).fits(SectorCount(u64::MAX)));
        assert!(SectorRange::new(3, 4).fits(SectorCount(7)));
        assert!(!SectorRange::new(3, 5).fits(SectorCount(7)));
    }

    #[test]
    fn overlap_is_symmetric_and_empty_ranges_overlap_nothing() {
        let a = SectorRange::new(0, 8);
        assert!(a.overlaps(SectorRange::new(7, 1)) && SectorRange::new(7, 1).overlaps(a));
        assert!(!a.overlaps(SectorRange::new(8, 1)));
        assert!(!a.overlaps(SectorRange::new(4, 0)));
    }
}
