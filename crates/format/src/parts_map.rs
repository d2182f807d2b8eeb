//! The map of parts: where each column of each segment is, in a pool in stripes.
//!
//! ```text
//!    0  8  magic "HOLDPART"          32  8  sequence
//!    8  4  version (1)               40  4  segments, including that of the superblocks
//!   12  1  columns, 3 to 18          44  4  zero
//!   13  1  devices that are spare    48  8  devices that are emptied: bit n for number n
//!   14  2  zero
//!   16 16  pool id                   56     zero
//! 4064 32  BLAKE3 of the bytes before, and of those behind
//! 4096     columns of segment 1, of segment 2, and so on: 4 bytes each; the number of the device
//!          in the upper 6 bits, the number of its part in the lower 26
//! ```
//!
//! Parts are numbered from 1 on, and lie on their device as the segments of a pool on one. No two
//! columns have the same part, and no segment has two of one device. Of a segment's columns the
//! first k are data, and two parity. So many parts stay free as it takes to make the columns of the
//! spare number of devices again on the others.
//!
//! A pool with the incompatible feature `parts` has a map on each device, in two places that take
//! turns: map n is in place n modulo 2. Which map counts is said by the labels, with its checksum
//! ([labels](#labels-of-devices)), so that it changes as the members do. Without the feature column
//! c of segment s is part s of device (s + c) modulo n.

use block::BLOCK_BYTES;

use crate::FormatError;
use crate::checksum::superblock_sum;
use crate::codec::Reader;
use crate::segment_row::Part;

const MAGIC: [u8; 8] = *b"HOLDPART";
const VERSION: u32 = 1;
const SUM_AT: usize = 4064;
const HEADER_BYTES: usize = BLOCK_BYTES as usize;
const PART_BITS: u32 = 26;

/// The most columns of a segment, and the fewest: of a map of three or more.
const COLUMNS: std::ops::RangeInclusive<u8> = 3..=18;
/// The offsets of the two places of a map on its device, in bytes: in segment 0, apart from the
/// superblocks, their stand-in and the labels.
pub const PARTS_MAP_OFFSETS_BYTES: [u64; 2] = [(4 << 20) + (64 << 10), 11 << 20];
/// The most bytes of a map.
pub const PARTS_MAP_BYTES_MAX: u64 = (4 << 20) - (64 << 10);
/// The most columns that the segments of a pool can have together.
pub const COLUMNS_IN_MAP_MAX: u64 = (PARTS_MAP_BYTES_MAX - BLOCK_BYTES) / 4;
/// The most devices that a map can name: their numbers are below.
pub const MAPPED_DEVICES_MAX: u16 = 64;
/// The highest number of a part.
pub const PART_NUMBER_MAX: u32 = (1 << PART_BITS) - 1;

/// Where each column of each segment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartsMap {
    /// The pool that it is of.
    pub pool_id: [u8; 16],
    /// Incremented with each change of the map.
    pub sequence: u64,
    /// Devices that are emptied: bit n for number n.
    pub emptied: u64,
    /// How many devices may be lost and their columns made again in free parts of the others.
    pub spares: u8,
    columns: u8,
    /// Of segment 1 on, packed as they are stored.
    packed: Vec<u32>,
}

/// Which map counts, as labels say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartsMapRef {
    /// Its sequence; 0 if the pool has none.
    pub sequence: u64,
    /// Its checksum.
    pub sum: [u8; 32],
}

impl PartsMap {
    /// A map of no segments yet, of so many columns each, data and parity.
    ///
    /// # Panics
    /// If that is not 3 to 18.
    pub fn new(pool_id: [u8; 16], columns: u8) -> Self {
        assert!(COLUMNS.contains(&columns), "{columns} columns");
        Self { pool_id, sequence: 1, emptied: 0, spares: 0, columns, packed: Vec::new() }
    }

    /// That of a pool without one: of so many segments over all of as many devices as there are
    /// columns. Its sequence is 0.
    ///
    /// # Panics
    /// As [`PartsMap::new`].
    pub fn over_all(pool_id: [u8; 16], columns: u8, segment_count: u32) -> Self {
        let mut map = Self { sequence: 0, ..Self::new(pool_id, columns) };
        for segment in 1..segment_count {
            let device = |column: u8| ((segment + u32::from(column)) % u32::from(columns)) as u8;
            let part = |column| Part { device: device(column), number: segment };
            map.push(&(0..columns).map(part).collect::<Vec<_>>());
        }
        map
    }

    /// The same, to be changed: with the sequence that follows.
    pub fn successor(&self) -> Self {
        Self { sequence: self.sequence + 1, ..self.clone() }
    }

    /// Columns of each segment.
    pub fn columns(&self) -> usize {
        self.columns.into()
    }

    /// How many segments it has, including that of the superblocks.
    pub fn segment_count(&self) -> u32 {
        1 + (self.packed.len() / self.columns()) as u32
    }

    /// Where a column of a segment is.
    ///
    /// # Panics
    /// If there is none such.
    pub fn part(&self, segment: u32, column: usize) -> Part {
        unpack(self.packed[self.index(segment, column)])
    }

    /// Where the columns of a segment are.
    ///
    /// # Panics
    /// If there is no such segment.
    pub fn parts(&self, segment: u32) -> impl Iterator<Item = Part> {
        let start = self.index(segment, 0);
        self.packed[start..start + self.columns()].iter().map(|packed| unpack(*packed))
    }

    /// The column of a segment that a device has, if it has one.
    pub fn column_on(&self, segment: u32, device: u16) -> Option<usize> {
        self.parts(segment).position(|part| u16::from(part.device) == device)
    }

    /// One more segment has its columns in these parts.
    ///
    /// # Panics
    /// If they are not as many as it has columns; if one has a number that there can't be.
    pub fn push(&mut self, parts: &[Part]) {
        assert_eq!(parts.len(), self.columns(), "a part for each column");
        self.packed.extend(parts.iter().map(|part| pack(*part)));
    }

    /// A column of a segment is elsewhere.
    ///
    /// # Panics
    /// As [`PartsMap::part`] and [`PartsMap::push`].
    pub fn set(&mut self, segment: u32, column: usize, part: Part) {
        let index = self.index(segment, column);
        self.packed[index] = pack(part);
    }

    fn index(&self, segment: u32, column: usize) -> usize {
        assert!(segment > 0 && column < self.columns(), "column {column} of segment {segment}");
        (segment as usize - 1) * self.columns() + column
    }

    /// The stored form, padded to whole blocks, and what labels say of it.
    ///
    /// # Panics
    /// If it is longer than [`PARTS_MAP_BYTES_MAX`].
    pub fn encode(&self) -> (Vec<u8>, PartsMapRef) {
        let mut out = Vec::with_capacity(HEADER_BYTES + 4 * self.packed.len());
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[self.columns, self.spares, 0, 0]);
        out.extend_from_slice(&self.pool_id);
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.segment_count().to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.emptied.to_le_bytes());
        out.resize(HEADER_BYTES, 0);
        self.packed.iter().for_each(|packed| out.extend_from_slice(&packed.to_le_bytes()));
        let sum = sum_of(&out);
        out[SUM_AT..HEADER_BYTES].copy_from_slice(&sum);
        out.resize(out.len().next_multiple_of(HEADER_BYTES), 0);
        assert!(out.len() as u64 <= PARTS_MAP_BYTES_MAX, "a map of too many columns");
        (out, PartsMapRef { sequence: self.sequence, sum })
    }

    /// How many bytes a map has that begins with this block, padded to whole blocks.
    ///
    /// # Errors
    /// If none begins so.
    pub fn stored_bytes(header: &[u8]) -> Result<usize, FormatError> {
        let header = Header::decode(header)?;
        Ok((HEADER_BYTES + 4 * header.entries).next_multiple_of(HEADER_BYTES))
    }

    /// From the stored form.
    ///
    /// # Errors
    /// What is wrong with it. A map whose checksum is right, but which has a part twice, is refused
    /// too.
    pub fn decode(bytes: &[u8]) -> Result<(Self, PartsMapRef), FormatError> {
        let header = Header::decode(bytes)?;
        let end = HEADER_BYTES + 4 * header.entries;
        let Some(used) = bytes.get(..end) else { return error("a map that is cut off", end) };
        let sum = sum_of(used);
        if sum != bytes[SUM_AT..HEADER_BYTES] {
            return error("wrong checksum of a map of parts", SUM_AT);
        }
        let entries = used[HEADER_BYTES..].as_chunks::<4>().0;
        let packed = entries.iter().map(|entry| u32::from_le_bytes(*entry)).collect();
        let Header { columns, spares, pool_id, sequence, emptied, .. } = header;
        let map = Self { pool_id, sequence, emptied, spares, columns, packed };
        map.check()?;
        Ok((map, PartsMapRef { sequence, sum }))
    }

    fn check(&self) -> Result<(), FormatError> {
        let mut all = self.packed.clone();
        all.sort_unstable();
        if !all.is_sorted_by(|one, next| one < next) {
            return error("a map with a part in two columns", HEADER_BYTES);
        }
        for (segment, columns) in self.packed.chunks_exact(self.columns()).enumerate() {
            let at = HEADER_BYTES + 4 * segment * self.columns();
            let mut seen = 0_u64;
            for part in columns.iter().map(|packed| unpack(*packed)) {
                if seen & 1 << part.device != 0 {
                    return error("a map with a segment twice on one device", at);
                }
                seen |= 1 << part.device;
                if part.number == 0 {
                    return error("a map with the part of the superblocks", at);
                }
            }
        }
        Ok(())
    }
}

/// What the first block says.
struct Header {
    columns: u8,
    spares: u8,
    pool_id: [u8; 16],
    sequence: u64,
    emptied: u64,
    entries: usize,
}

impl Header {
    fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let Some(header) = bytes.get(..HEADER_BYTES) else {
            return error("a map that is cut off", bytes.len());
        };
        let mut reader = Reader::new(header);
        if reader.array()? != MAGIC {
            return error("no map of parts", 0);
        }
        if reader.u32()? != VERSION {
            return error("it has a version of maps that is not known", 8);
        }
        let [columns, spares, zeros @ ..] = reader.array::<4>()?;
        if !COLUMNS.contains(&columns) || zeros != [0; 2] {
            return error("a map with impossible columns", 12);
        }
        let (pool_id, sequence) = (reader.array()?, reader.u64()?);
        let (segments, zeros) = (reader.u32()?, reader.array::<4>()?);
        let entries = u64::from(segments.saturating_sub(1)) * u64::from(columns);
        if segments == 0 || zeros != [0; 4] || entries > COLUMNS_IN_MAP_MAX {
            return error("a map of impossibly many segments", 40);
        }
        let emptied = reader.u64()?;
        if header[reader.offset()..SUM_AT].iter().any(|byte| *byte != 0) {
            return error("a map with what is not known", reader.offset());
        }
        Ok(Self { columns, spares, pool_id, sequence, emptied, entries: entries as usize })
    }
}

/// Of a map without its padding.
fn sum_of(bytes: &[u8]) -> [u8; 32] {
    let (header, entries) = bytes.split_at(HEADER_BYTES);
    superblock_sum(&[&header[..SUM_AT], entries].concat())
}

fn error<T>(what: &'static str, offset: usize) -> Result<T, FormatError> {
    Err(FormatError { what, offset })
}

fn pack(part: Part) -> u32 {
    let fits =
        u16::from(part.device) < MAPPED_DEVICES_MAX && (1..=PART_NUMBER_MAX).contains(&part.number);
    assert!(fits, "{part:?} can't be in a map");
    u32::from(part.device) << PART_BITS | part.number
}

fn unpack(packed: u32) -> Part {
    Part { device: (packed >> PART_BITS) as u8, number: packed & PART_NUMBER_MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> PartsMap {
        let mut map =
            PartsMap { sequence: 7, emptied: 1 << 63, spares: 2, ..PartsMap::new([5; 16], 4) };
        let part = |device, number| Part { device, number };
        map.push(&[part(0, 1), part(9, 3), part(63, PART_NUMBER_MAX), part(2, 1)]);
        map.push(&[part(2, 2), part(0, 2), part(9, 1), part(1, 1)]);
        map
    }

    fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let entries = Header::decode(&bytes).map_or(0, |header| header.entries);
        let end = (HEADER_BYTES + 4 * entries).min(bytes.len());
        let sum = sum_of(&bytes[..end]);
        bytes[SUM_AT..HEADER_BYTES].copy_from_slice(&sum);
        bytes
    }

    #[test]
    fn golden_bytes_of_a_map() {
        let (bytes, named) = map().encode();
        assert_eq!(
            (bytes.len(), bytes[..16].to_vec()),
            (8192, b"HOLDPART\x01\0\0\0\x04\x02\0\0".to_vec())
        );
        assert_eq!((bytes[16], bytes[32], bytes[40], bytes[55]), (5, 7, 3, 0x80));
        assert_eq!(bytes[4096..4104], [1, 0, 0, 0, 3, 0, 0, 9 << 2]);
        assert_eq!(bytes[4104..4108], [0xff; 4]);
        assert_eq!(PartsMap::stored_bytes(&bytes), Ok(8192));
        assert_eq!(PartsMap::decode(&bytes), Ok((map(), named)));
        assert_eq!((map().segment_count(), map().column_on(2, 9)), (3, Some(2)));
        assert_eq!(
            (map().part(1, 3), map().column_on(1, 7)),
            (Part { device: 2, number: 1 }, None)
        );
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let (bytes, _) = map().encode();
        for (at, value) in [
            (0, b'h'),
            (8, 2),  // a version
            (12, 2), // columns
            (12, 19),
            (14, 1),
            (40, 0),    // no segments at all
            (42, 1),    // more than there are bytes
            (43, 0xff), // more than there can be
            (44, 1),
            (56, 1),
            (4096, 0),     // part 0
            (4112, 1),     // a part of two segments
            (4096 + 7, 0), // a segment twice on device 0
        ] {
            let mut forged = bytes.clone();
            forged[at] = value;
            assert!(PartsMap::decode(&sealed(forged)).is_err(), "byte {at}");
        }
        assert_eq!(sealed(bytes.clone()), bytes);
        let mut bytes = bytes;
        for at in (0..4128).chain(4100..4128) {
            bytes[at] ^= 0x10;
            assert!(PartsMap::decode(&bytes).is_err(), "byte {at}");
            bytes[at] ^= 0x10;
        }
        for end in [0, 4095, 4096, 4127] {
            assert!(PartsMap::decode(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn a_pool_without_a_map_has_each_segment_on_all_devices() {
        let map = PartsMap::over_all([1; 16], 6, 20);
        assert_eq!((map.sequence, map.segment_count()), (0, 20));
        assert_eq!(map.part(7, 4), Part { device: 5, number: 7 });
        assert_eq!(map.check(), Ok(()));
    }

    #[test]
    fn places_of_a_map_are_apart_from_all_else() {
        use crate::label::LABEL_OFFSETS_BYTES;
        use crate::superblock::{SUPERBLOCK_OFFSETS_BYTES, SUPERBLOCK_STAND_IN_OFFSET_BYTES};
        let others = [LABEL_OFFSETS_BYTES, SUPERBLOCK_OFFSETS_BYTES].concat();
        for start in PARTS_MAP_OFFSETS_BYTES {
            let end = start + PARTS_MAP_BYTES_MAX;
            assert!(end <= 16 << 20);
            for other in others.iter().chain(&[SUPERBLOCK_STAND_IN_OFFSET_BYTES]) {
                assert!(*other + (64 << 10) <= start || *other >= end, "{start} and {other}");
            }
        }
        // As many segments as a table of the usual size has, in the widest stripes.
        const { assert!(COLUMNS_IN_MAP_MAX >= 18 * 57_000) };
    }
}
