//! Segments and locations.
//!
//! A pool is divided into segments of one size. Segment 0 holds the superblocks; the others hold
//! either log records or metadata. The segment size follows from the size of the new pool: up to
//! 256 TiB such that there are at most 65,536 segments, and beyond that it is 4 GiB. Segments keep
//! their size when the pool grows. There may be 2^32 - 1 of them, but only 65,536 if their table is
//! a stream ([rows](#rows-of-the-segment-table)). Segment 0 has at least 16 MiB, so that the
//! superblocks keep their locations even if segments are smaller, as in the simulator
//! ([`Geometry::of_segments`]).
//!
//! Metadata has two copies in its segment: a structure at a location in the first half is also at
//! the same location in the second half. So a bad block, or a bad area of less than half a segment,
//! never affects both. The checksum in the parent verifies each copy. Metadata
//! segments of version 2 have one copy, in either half; they are emptied in the background.
//!
//! # Stripes
//!
//! In a pool on n devices, from four on, a segment has n *parts* of one size, one on each device,
//! at the location that a segment would have on a single device. The layout of a segment depends on
//! its use, and its addresses show which use that is:
//!
//! ```text
//! blocks of a segment                  k = n - 2, with R rows: blocks of a part
//! 0 to k R                             log: block c R + r is in row r of data column c; P and Q
//!                                      of a row are columns k and k + 1, which have no address
//! k R to (k + m) R                     metadata, m = n / 3 rounded down: block (k + c) R + r is in
//!                                      row r of copies 3c, 3c + 1 and 3c + 2
//! ```
//!
//! Column c, or copy c, of segment s is on device (s + c) modulo n. A log record has its own rows
//! ([records](#log-records)).

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
/// The minimum number of segments in a pool, including that of the superblocks.
pub const SEGMENTS_MIN: u64 = 16;
/// The maximum number of segments in a pool.
pub const SEGMENTS_MAX: u64 = u32::MAX as u64;
/// The maximum number of segments in a pool whose segment table is a stream, and in a new pool,
/// unless even the largest segments are more.
pub const SEGMENTS_IN_STREAM_MAX: u64 = 65_536;
/// The maximum number of data columns of a segment.
pub const COLUMNS_MAX: u8 = 16;
/// The number of parity columns, with several data columns.
pub const PARITY_COLUMNS: u32 = 2;
/// The number of devices with the same metadata, in a striped pool.
pub const METADATA_COPIES: u32 = 3;
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

    /// Returns the place of a block of a segment.
    pub const fn of_block(segment: u32, block: u32) -> Place {
        Place { segment, offset_units: block * UNITS_PER_BLOCK }
    }

    /// Returns whether it is nowhere.
    pub fn is_none(self) -> bool {
        self.segment == 0
    }

    /// Returns the beginning of the block that it is in.
    pub const fn block_start(self) -> Place {
        let offset_units = self.offset_units - self.offset_units % UNITS_PER_BLOCK;
        Place { offset_units, ..self }
    }

    /// Returns the place this many blocks further on.
    pub const fn plus_blocks(self, blocks: u32) -> Place {
        Place { offset_units: self.offset_units + blocks * UNITS_PER_BLOCK, ..self }
    }
}

/// The division of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The size of a device's part of a segment other than segment 0, in bytes: a power of two, at
    /// least 16 MiB (64 KiB in tests). In a pool without stripes that is the whole segment.
    pub part_bytes: u64,
    /// The number of segments, including that of the superblocks.
    pub segment_count: u32,
    /// The data columns of a log segment, 1 to 16: more than one in a striped pool.
    pub columns: u8,
}

impl Geometry {
    /// Divides a pool of `capacity_bytes`.
    pub fn for_capacity(capacity_bytes: u64) -> Result<Self, FormatError> {
        if capacity_bytes < POOL_BYTES_MIN {
            return Err(FormatError { what: "the pool is smaller than 256 MiB", offset: 0 });
        }
        let mut part_bytes = SEGMENT_BYTES_MIN;
        while capacity_bytes / part_bytes > SEGMENTS_IN_STREAM_MAX && part_bytes < SEGMENT_BYTES_MAX
        {
            part_bytes *= 2;
        }
        let segment_count = (capacity_bytes / part_bytes) as u32;
        Ok(Self { part_bytes, segment_count, columns: 1 })
    }

    /// Returns the same segments in stripes of this many data columns; this is the division of each
    /// device.
    ///
    /// # Errors
    /// If there are no such stripes.
    pub fn with_columns(self, columns: u8) -> Result<Self, FormatError> {
        match (1..=COLUMNS_MAX).contains(&columns) {
            true => Ok(Self { columns, ..self }),
            false => Err(FormatError { what: "no stripe has so many columns", offset: 0 }),
        }
    }

    /// Divides a pool into as many segments of this size as fit `capacity_bytes`, at any pool size:
    /// for tests, which need many small ones.
    pub fn of_segments(part_bytes: u64, capacity_bytes: u64) -> Result<Self, FormatError> {
        let one = Self { part_bytes, segment_count: 1, columns: 1 };
        let segment_count = one.count_in(capacity_bytes).min(SEGMENTS_IN_STREAM_MAX) as u32;
        Self { segment_count, ..one }.check(capacity_bytes, SEGMENTS_IN_STREAM_MAX)
    }

    /// Checks values that were read from a superblock, of a pool that can have this many segments.
    pub fn check(self, capacity_bytes: u64, segments_max: u64) -> Result<Self, FormatError> {
        let is_small = self.part_bytes < SEGMENT_BYTES_MIN;
        let fits = self.part_bytes.is_power_of_two()
            && (1..=COLUMNS_MAX).contains(&self.columns)
            && (SEGMENT_BYTES_TEST_MIN..=SEGMENT_BYTES_MAX).contains(&self.part_bytes)
            && (SEGMENTS_MIN..=segments_max).contains(&u64::from(self.segment_count))
            && (is_small || self.pool_bytes() >= POOL_BYTES_MIN)
            && self.pool_bytes() <= capacity_bytes;
        if fits { Ok(self) } else { Err(FormatError { what: "impossible geometry", offset: 0 }) }
    }

    /// Returns the bytes of segment 0.
    fn first_bytes(self) -> u64 {
        self.part_bytes.max(SEGMENT_BYTES_MIN)
    }

    /// Returns how many segments of this size fit a device, including that of the superblocks.
    pub fn count_in(self, device_bytes: u64) -> u64 {
        match device_bytes.checked_sub(self.first_bytes()) {
            Some(behind) if self.part_bytes > 0 => 1 + behind / self.part_bytes,
            _ => 0,
        }
    }

    /// Returns how much of a device all segments together use, including that of the superblocks.
    pub fn pool_bytes(self) -> u64 {
        self.first_bytes() + u64::from(self.segment_count.saturating_sub(1)) * self.part_bytes
    }

    /// Returns the size of all segments that can hold log and metadata.
    pub fn usable_bytes(self) -> u64 {
        u64::from(self.segment_count.saturating_sub(1)) * self.segment_bytes()
    }

    /// Returns how much of the log fits a segment, in bytes.
    pub fn segment_bytes(self) -> u64 {
        self.part_bytes * u64::from(self.columns)
    }

    /// Returns the rows of a segment: blocks of 4 KiB in a part.
    pub fn rows(self) -> u32 {
        (self.part_bytes / BLOCK_BYTES) as u32
    }

    /// Returns the 4 KiB blocks of the log in a segment.
    pub fn blocks_per_segment(self) -> u32 {
        self.rows() * u32::from(self.columns)
    }

    /// Returns how many rows this many blocks of the log take.
    pub fn rows_for(self, blocks: u64) -> u64 {
        blocks.div_ceil(u64::from(self.columns))
    }

    /// Returns whether a segment is on several devices, each of which has a different part of it.
    pub fn has_stripes(self) -> bool {
        self.columns > 1
    }

    /// Returns how many blocks of metadata are in a row: in stripes each has [`METADATA_COPIES`]
    /// copies.
    pub fn metadata_columns(self) -> u32 {
        if self.has_stripes() {
            (u32::from(self.columns) + PARITY_COLUMNS) / METADATA_COPIES
        } else {
            1
        }
    }

    /// Returns the block of a segment with which metadata begins.
    pub fn first_metadata_block(self) -> u32 {
        if self.has_stripes() { self.blocks_per_segment() } else { 0 }
    }

    /// Returns the 4 KiB blocks of a segment for metadata, in both of its halves.
    pub fn metadata_blocks(self) -> u32 {
        self.rows() * self.metadata_columns()
    }

    /// Returns the 4 KiB blocks of a segment for metadata with two copies.
    pub fn mirrored_blocks(self) -> u32 {
        self.metadata_blocks() / 2
    }

    /// Returns the number of 4 KiB blocks that have an address in a segment.
    fn addressed_blocks(self) -> u32 {
        self.blocks_per_segment().max(self.first_metadata_block() + self.metadata_blocks())
    }

    /// Returns whether a place is one of metadata, in a striped pool.
    pub fn is_of_metadata(self, place: Place) -> bool {
        self.has_stripes() && place.offset_units / UNITS_PER_BLOCK >= self.first_metadata_block()
    }

    /// Returns the place of the second copy of what is at `place`, if that is metadata; `None` if
    /// `place` is among second copies, or extends into them.
    pub fn copy_of(self, place: Place, bytes: u64) -> Option<Place> {
        let half_units = self.mirrored_blocks() * UNITS_PER_BLOCK;
        let start_units = self.first_metadata_block() * UNITS_PER_BLOCK;
        let offset_units = place.offset_units.checked_sub(start_units)?;
        let end = u64::from(offset_units) * PLACE_UNIT_BYTES + bytes;
        (place.segment > 0 && end <= u64::from(half_units) * PLACE_UNIT_BYTES)
            .then(|| Place { offset_units: place.offset_units + half_units, ..place })
    }

    /// Returns the offset of a place on its device, or on each device that has it, in bytes.
    pub fn offset_bytes(self, place: Place) -> u64 {
        let offset_bytes = u64::from(place.offset_units) * PLACE_UNIT_BYTES;
        let in_part =
            if self.has_stripes() { offset_bytes % self.part_bytes } else { offset_bytes };
        self.part_offset_bytes(place.segment) + in_part
    }

    /// Returns the order in which the block of a place is written in its segment: its row in the
    /// log, its number in metadata.
    pub fn written_as(self, place: Place) -> u32 {
        let block = place.offset_units / UNITS_PER_BLOCK;
        match block.checked_sub(self.first_metadata_block()) {
            Some(block) => block,
            None => block % self.rows(),
        }
    }

    /// Returns where a device's part of a segment begins, in bytes.
    pub fn part_offset_bytes(self, segment: u32) -> u64 {
        match u64::from(segment) {
            0 => 0,
            segment => self.first_bytes() + (segment - 1) * self.part_bytes,
        }
    }

    /// Returns whether `bytes` from `place` are within one segment that can hold data, and are all
    /// log or all metadata, if these have separate addresses.
    pub fn contains(self, place: Place, bytes: u64) -> bool {
        let end_blocks = match self.has_stripes() && !self.is_of_metadata(place) {
            true => self.blocks_per_segment(),
            false => self.addressed_blocks(),
        };
        place.segment > 0
            && place.segment < self.segment_count
            && u64::from(place.offset_units) * PLACE_UNIT_BYTES + bytes
                <= u64::from(end_blocks) * BLOCK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_grow_with_the_pool() {
        let small = Geometry::for_capacity(1 << 30).unwrap();
        assert_eq!((small.part_bytes, small.segment_count), (16 << 20, 64));
        let large = Geometry::for_capacity(100 << 40).unwrap();
        assert!(u64::from(large.segment_count) <= SEGMENTS_IN_STREAM_MAX);
        assert!(large.check(100 << 40, SEGMENTS_IN_STREAM_MAX).is_ok());
        assert!(Geometry::for_capacity(1 << 20).is_err());
        for capacity_bytes in [(256 << 40) + SEGMENT_BYTES_MAX, 1 << 60, u64::MAX] {
            let huge = Geometry::for_capacity(capacity_bytes).unwrap();
            assert_eq!(huge.part_bytes, SEGMENT_BYTES_MAX);
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
    fn the_second_copy_is_in_the_other_half_of_the_segment() {
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
        let none = Geometry { part_bytes: SEGMENT_BYTES_MIN, segment_count: 0, columns: 1 };
        assert!(none.check(1 << 30, SEGMENTS_MAX).is_err());
        assert!(Geometry { segment_count: 16, ..none }.check(1 << 30, SEGMENTS_MAX).is_ok());
        assert!(Geometry { segment_count: 15, ..none }.check(1 << 30, SEGMENTS_MAX).is_err());
        let huge = Geometry { part_bytes: u64::MAX, segment_count: u32::MAX, columns: 1 };
        assert!(huge.check(u64::MAX, SEGMENTS_MAX).is_err());
        assert!(Geometry { part_bytes: 0, ..huge }.check(u64::MAX, SEGMENTS_MAX).is_err());
    }

    #[test]
    fn small_segments_follow_the_superblocks() {
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

    #[test]
    fn log_and_metadata_of_a_striped_segment_have_separate_addresses() {
        let plain = Geometry::of_segments(64 << 10, (16 << 20) + (40 << 16)).unwrap();
        let geometry = plain.with_columns(4).unwrap();
        assert_eq!(geometry.check(plain.pool_bytes(), SEGMENTS_MAX), Ok(geometry));
        // Each device has as much of it as of a pool of its own.
        assert_eq!(geometry.pool_bytes(), plain.pool_bytes());
        assert_eq!(geometry.usable_bytes(), 4 * plain.usable_bytes());
        // 16 rows of four blocks of data, or of two of metadata, on six devices.
        assert_eq!((geometry.rows(), geometry.blocks_per_segment()), (16, 64));
        assert_eq!((geometry.first_metadata_block(), geometry.metadata_blocks()), (64, 32));
        let place = |block| Place::of_block(3, block);
        assert!(geometry.contains(place(63), 4096) && !geometry.contains(place(63), 8192));
        assert!(geometry.contains(place(95), 4096) && !geometry.contains(place(95), 8192));
        assert!(!geometry.is_of_metadata(place(63)) && geometry.is_of_metadata(place(64)));
        assert_eq!(geometry.copy_of(place(64), 4096), Some(place(80)));
        assert_eq!(geometry.copy_of(place(79), 4096), Some(place(95)));
        assert_eq!(geometry.copy_of(place(79), 8192), None);
        assert_eq!(geometry.copy_of(place(63), 64), None);
        // Block 35 is in row 3 of column 2; block 84 is 20 after the first of metadata.
        assert_eq!((geometry.written_as(place(35)), geometry.written_as(place(84))), (3, 20));
        assert_eq!(geometry.offset_bytes(place(35)), (16 << 20) + (2 << 16) + 3 * 4096);
        let columns = |columns| plain.with_columns(columns).map(Geometry::metadata_columns);
        assert_eq!([2, 3, 4, 7, 16].map(columns), [Ok(1), Ok(1), Ok(2), Ok(3), Ok(6)]);
        assert!(columns(0).is_err() && columns(17).is_err());
    }

    /// Parts are contiguous on each device, like the segments of a pool on one: no two share a
    /// block.
    #[test]
    fn parts_are_adjacent() {
        for bits in 16..=32 {
            let geometry = Geometry { part_bytes: 1 << bits, segment_count: u32::MAX, columns: 4 };
            let first_bytes = (16 << 20).max(geometry.part_bytes);
            for part in [1, 2, 3, 999_999, u32::MAX - 1] {
                let behind = u64::from(part - 1) * geometry.part_bytes;
                assert_eq!(geometry.part_offset_bytes(part), first_bytes + behind);
            }
        }
    }
}
