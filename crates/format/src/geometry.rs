//! Segments and places.
//!
//! A pool is divided into segments of one size. Segment 0 holds the superblocks; the others hold
//! either log records or metadata. Their size follows from that of the pool when it is made: up to
//! 256 TiB it is such that there are at most 65,536 of them, and beyond they have 4 GiB. Segments
//! keep their size when the pool grows. There may be 2^32 - 1 of them, but only 65,536 where their
//! table is a stream ([rows](#rows-of-the-segment-table)). Segment 0 has at least 16 MiB, so that
//! the superblocks keep their places even if segments are smaller, as they are in the simulator
//! ([`Geometry::of_segments`]).
//!
//! Metadata stands twice in its segment: what is at a place in the first half is at the same place
//! of the second half as well. So no bad block, and no bad spot of less than half a segment, takes
//! both. The parent's checksum tells whether a copy is what was written. Metadata segments of
//! version 2 have one copy, in either half; they are emptied in the background.

use block::BLOCK_BYTES;

use crate::FormatError;

/// Places are counted in units of 64 bytes, so that compressed chunks and nodes pack.
pub const PLACE_UNIT_BYTES: u64 = 64;
/// Units in a 4 KiB block.
pub const UNITS_PER_BLOCK: u32 = (BLOCK_BYTES / PLACE_UNIT_BYTES) as u32;
/// The smallest segment of a pool in use. The largest log record fits in it twice.
pub const SEGMENT_BYTES_MIN: u64 = 16 << 20;
/// The smallest segment in tests, which soon reach every boundary.
pub const SEGMENT_BYTES_TEST_MIN: u64 = 64 << 10;
/// The largest segment.
pub const SEGMENT_BYTES_MAX: u64 = 4 << 30;
/// The fewest segments in a pool, including that of the superblocks.
pub const SEGMENTS_MIN: u64 = 16;
/// The most segments in a pool.
pub const SEGMENTS_MAX: u64 = u32::MAX as u64;
/// The most segments in a pool whose segment table is a stream, and in one that is made, unless
/// segments of the largest size are more.
pub const SEGMENTS_IN_STREAM_MAX: u64 = 65_536;
/// The smallest pool: the log, two checkpoints and the reserve need room beside the data.
pub const POOL_BYTES_MIN: u64 = 256 << 20;

/// The place of stored bytes: a segment, and an offset in it in units of 64 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The segment; 0 means nowhere.
    pub segment: u32,
    /// The offset in the segment, in units of 64 bytes.
    pub offset_units: u32,
}

impl Place {
    /// Nowhere.
    pub const NONE: Place = Place { segment: 0, offset_units: 0 };

    /// A block of a segment.
    pub const fn of_block(segment: u32, block: u32) -> Place {
        Place { segment, offset_units: block * UNITS_PER_BLOCK }
    }

    /// Whether it is nowhere.
    pub fn is_none(self) -> bool {
        self.segment == 0
    }

    /// The beginning of the block that it is in.
    pub const fn block_start(self) -> Place {
        let offset_units = self.offset_units - self.offset_units % UNITS_PER_BLOCK;
        Place { offset_units, ..self }
    }

    /// So many blocks on.
    pub const fn plus_blocks(self, blocks: u32) -> Place {
        Place { offset_units: self.offset_units + blocks * UNITS_PER_BLOCK, ..self }
    }
}

/// The division of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes in a segment other than segment 0: a power of two, at least 16 MiB (64 KiB in tests).
    pub segment_bytes: u64,
    /// The number of segments, including that of the superblocks.
    pub segment_count: u32,
}

impl Geometry {
    /// Divides a pool of `capacity_bytes`.
    pub fn for_capacity(capacity_bytes: u64) -> Result<Self, FormatError> {
        if capacity_bytes < POOL_BYTES_MIN {
            return Err(FormatError { what: "the pool is smaller than 256 MiB", offset: 0 });
        }
        let mut segment_bytes = SEGMENT_BYTES_MIN;
        while capacity_bytes / segment_bytes > SEGMENTS_IN_STREAM_MAX
            && segment_bytes < SEGMENT_BYTES_MAX
        {
            segment_bytes *= 2;
        }
        let segment_count = (capacity_bytes / segment_bytes) as u32;
        Ok(Self { segment_bytes, segment_count })
    }

    /// As many segments of this size as fit `capacity_bytes`, whatever the pool's size: for tests,
    /// which need many small ones.
    pub fn of_segments(segment_bytes: u64, capacity_bytes: u64) -> Result<Self, FormatError> {
        let one = Self { segment_bytes, segment_count: 1 };
        let segment_count = one.count_in(capacity_bytes).min(SEGMENTS_IN_STREAM_MAX) as u32;
        Self { segment_count, ..one }.check(capacity_bytes, SEGMENTS_IN_STREAM_MAX)
    }

    /// Checks values that were read from a superblock, of a pool that can have so many segments.
    pub fn check(self, capacity_bytes: u64, segments_max: u64) -> Result<Self, FormatError> {
        let is_small = self.segment_bytes < SEGMENT_BYTES_MIN;
        let fits = self.segment_bytes.is_power_of_two()
            && (SEGMENT_BYTES_TEST_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes)
            && (SEGMENTS_MIN..=segments_max).contains(&u64::from(self.segment_count))
            && (is_small || self.pool_bytes() >= POOL_BYTES_MIN)
            && self.pool_bytes() <= capacity_bytes;
        if fits { Ok(self) } else { Err(FormatError { what: "impossible geometry", offset: 0 }) }
    }

    /// Bytes of segment 0.
    fn first_bytes(self) -> u64 {
        self.segment_bytes.max(SEGMENT_BYTES_MIN)
    }

    /// How many segments of this size fit a capacity, including that of the superblocks.
    pub fn count_in(self, capacity_bytes: u64) -> u64 {
        match capacity_bytes.checked_sub(self.first_bytes()) {
            Some(behind) if self.segment_bytes > 0 => 1 + behind / self.segment_bytes,
            _ => 0,
        }
    }

    /// The size of all segments together, including that of the superblocks.
    pub fn pool_bytes(self) -> u64 {
        self.first_bytes() + self.usable_bytes()
    }

    /// The size of all segments that can hold log and metadata.
    pub fn usable_bytes(self) -> u64 {
        u64::from(self.segment_count.saturating_sub(1)) * self.segment_bytes
    }

    /// Blocks of 4 KiB in a segment.
    pub fn blocks_per_segment(self) -> u32 {
        (self.segment_bytes / BLOCK_BYTES) as u32
    }

    /// Blocks of 4 KiB of a segment that metadata can have, if it stands twice.
    pub fn mirrored_blocks(self) -> u32 {
        self.blocks_per_segment() / 2
    }

    /// Where the second copy of what is at `place` stands, if that is metadata; `None` if `place`
    /// is where second copies stand, or crosses over to there.
    pub fn copy_of(self, place: Place, bytes: u64) -> Option<Place> {
        let half_bytes = u64::from(self.mirrored_blocks()) * BLOCK_BYTES;
        let end = u64::from(place.offset_units) * PLACE_UNIT_BYTES + bytes;
        let half_units = (half_bytes / PLACE_UNIT_BYTES) as u32;
        (place.segment > 0 && end <= half_bytes)
            .then(|| Place { offset_units: place.offset_units + half_units, ..place })
    }

    /// The offset of a place on the device, in bytes.
    pub fn offset_bytes(self, place: Place) -> u64 {
        let start = match u64::from(place.segment) {
            0 => 0,
            segment => self.first_bytes() + (segment - 1) * self.segment_bytes,
        };
        start + u64::from(place.offset_units) * PLACE_UNIT_BYTES
    }

    /// Whether `bytes` from `place` are inside one segment that can hold data.
    pub fn contains(self, place: Place, bytes: u64) -> bool {
        place.segment > 0
            && place.segment < self.segment_count
            && u64::from(place.offset_units) * PLACE_UNIT_BYTES + bytes <= self.segment_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_grow_with_the_pool() {
        let small = Geometry::for_capacity(1 << 30).unwrap();
        assert_eq!((small.segment_bytes, small.segment_count), (16 << 20, 64));
        let large = Geometry::for_capacity(100 << 40).unwrap();
        assert!(u64::from(large.segment_count) <= SEGMENTS_IN_STREAM_MAX);
        assert!(large.check(100 << 40, SEGMENTS_IN_STREAM_MAX).is_ok());
        assert!(Geometry::for_capacity(1 << 20).is_err());
        for capacity_bytes in [(256 << 40) + SEGMENT_BYTES_MAX, 1 << 60, u64::MAX] {
            let huge = Geometry::for_capacity(capacity_bytes).unwrap();
            assert_eq!(huge.segment_bytes, SEGMENT_BYTES_MAX);
            assert_eq!(u64::from(huge.segment_count), capacity_bytes / SEGMENT_BYTES_MAX);
            assert_eq!(huge.check(capacity_bytes, SEGMENTS_MAX), Ok(huge));
            assert!(huge.check(capacity_bytes, SEGMENTS_IN_STREAM_MAX).is_err());
        }
    }

    #[test]
    fn places_outside_of_the_pool_are_refused() {
        let geometry = Geometry::for_capacity(1 << 30).unwrap();
        assert!(geometry.contains(Place { segment: 1, offset_units: 0 }, 16 << 20));
        assert!(!geometry.contains(Place { segment: 1, offset_units: 1 }, 16 << 20));
        assert!(!geometry.contains(Place { segment: 64, offset_units: 0 }, 64));
        assert!(!geometry.contains(Place::NONE, 64));
    }

    #[test]
    fn a_copy_stands_in_the_other_half_of_its_segment() {
        let geometry = Geometry::for_capacity(1 << 30).unwrap();
        let half_units = (8 << 20) / 64;
        let at = |offset_units| Place { segment: 3, offset_units };
        assert_eq!(geometry.copy_of(at(0), 4096), Some(at(half_units)));
        assert_eq!(geometry.copy_of(at(half_units - 64), 4096), Some(at(2 * half_units - 64)));
        assert_eq!(geometry.copy_of(at(half_units - 64), 4097), None);
        assert_eq!(geometry.copy_of(at(half_units), 64), None);
        assert_eq!(geometry.copy_of(Place::NONE, 64), None);
        assert!(geometry.contains(at(2 * half_units - 64), 4096));
    }

    #[test]
    fn a_pool_without_segments_is_refused() {
        let none = Geometry { segment_bytes: SEGMENT_BYTES_MIN, segment_count: 0 };
        assert!(none.check(1 << 30, SEGMENTS_MAX).is_err());
        assert!(Geometry { segment_count: 16, ..none }.check(1 << 30, SEGMENTS_MAX).is_ok());
        assert!(Geometry { segment_count: 15, ..none }.check(1 << 30, SEGMENTS_MAX).is_err());
        let huge = Geometry { segment_bytes: u64::MAX, segment_count: u32::MAX };
        assert!(huge.check(u64::MAX, SEGMENTS_MAX).is_err());
        assert!(Geometry { segment_bytes: 0, ..huge }.check(u64::MAX, SEGMENTS_MAX).is_err());
    }

    #[test]
    fn small_segments_stand_behind_the_superblocks() {
        let geometry = Geometry::of_segments(64 << 10, (16 << 20) + (40 << 16) + 1).unwrap();
        assert_eq!((geometry.segment_count, geometry.usable_bytes()), (41, 40 << 16));
        assert_eq!(geometry.offset_bytes(Place { segment: 1, offset_units: 0 }), 16 << 20);
        let last = Place { segment: 40, offset_units: 1023 };
        assert_eq!(geometry.offset_bytes(last) + 64, geometry.pool_bytes());
        assert!(geometry.contains(last, 64) && !geometry.contains(last, 65));
        assert!(geometry.check(geometry.pool_bytes() - 1, SEGMENTS_MAX).is_err());
        assert!(Geometry::of_segments(32 << 10, 1 << 30).is_err());
        assert!(Geometry::of_segments(64 << 10, (16 << 20) + (14 << 16)).is_err());
        let usual = Geometry::for_capacity(1 << 30).unwrap();
        assert_eq!(Geometry::of_segments(16 << 20, 1 << 30), Ok(usual));
    }
}
