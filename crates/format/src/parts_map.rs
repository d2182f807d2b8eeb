//! The map of parts: the location of each column of each segment, in a striped pool.
//!
//! ```text
//!    0  8  magic "HOLDPART"          32  8  sequence
//!    8  4  version, 1 or 2           40  4  segments, including that of the superblocks
//!   12  1  columns, 3 to 18          44  4  zero
//!   13  1  devices that are spare    48  8  devices being emptied: bit n for number n
//!   14  1  version 2: columns when   56     zero
//!          the pool was made, or 0
//!   15  1  zero
//!   16 16  pool id
//! 4064 32  BLAKE3 of the preceding bytes, and of the following ones
//! 4096     columns of segment 1, of segment 2, and so on: 4 bytes each; the number of the device
//!          in the upper 6 bits, the number of its part in the lower 26
//! ```
//!
//! In version 1 all segments have the number of columns in byte 12. In version 2 that is the
//! maximum: in a narrower segment the last columns are zeros, and at least four are not. A map has
//! version 2 if a segment is narrower than the maximum, or if the maximum is not the number of
//! columns when the pool was made.
//!
//! Parts are numbered from 1 on, and are laid out on their device like the segments of a pool on
//! one device. No two columns have the same part, and no segment has two parts of one device. Of a
//! segment's columns the first k are data, and two are parity. Enough parts stay free to rebuild
//! the columns of the spare number of devices on the others.
//!
//! A pool with the incompatible feature `parts` has a map on each device, in two locations that are
//! written in turn: map n is in location n modulo 2. The labels say which map is valid, with its
//! checksum ([labels](#labels-of-devices)), so that it changes together with the members. Without
//! the feature column c of segment s is part s of device (s + c) modulo n.

use block::BLOCK_BYTES;

use crate::FormatError;
use crate::checksum::superblock_sum;
use crate::codec::Reader;
pub use crate::part::{MAPPED_DEVICES_MAX, PART_NUMBER_MAX, Part};

const MAGIC: [u8; 8] = *b"HOLDPART";
/// 1: all segments have the same width; 2: they may have several.
const VERSIONS: [u32; 2] = [1, 2];
const SUM_AT: usize = 4064;
const HEADER_BYTES: usize = BLOCK_BYTES as usize;

/// The range of the maximum number of columns of a segment.
const COLUMNS: std::ops::RangeInclusive<u8> = 3..=18;
/// The minimum number of columns of a segment, if segments have several widths.
pub const COLUMNS_MIN: u8 = 4;
/// The offsets of the two locations of a map on its device, in bytes: in segment 0, apart from the
/// superblocks, their stand-in and the labels.
pub const PARTS_MAP_OFFSETS_BYTES: [u64; 2] = [(4 << 20) + (64 << 10), 11 << 20];
/// The maximum bytes of a map.
pub const PARTS_MAP_BYTES_MAX: u64 = (4 << 20) - (64 << 10);
/// The maximum number of columns of all segments of a pool together.
pub const COLUMNS_IN_MAP_MAX: u64 = (PARTS_MAP_BYTES_MAX - BLOCK_BYTES) / 4;

/// The location of each column of each segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartsMap {
    /// Its pool.
    pub pool_id: [u8; 16],
    /// Incremented with each change of the map.
    pub sequence: u64,
    /// Devices that are being emptied: bit n for number n.
    pub emptied: u64,
    /// How many devices may be lost and their columns rebuilt in free parts of the others.
    pub spares: u8,
    /// The columns of each segment when the pool was created, which its root refers to.
    made_with: u8,
    /// The maximum number of columns of a segment, and the number of entries of each.
    columns: u8,
    /// From segment 1 on, packed as stored; [`NONE`] if a segment has no such column.
    packed: Vec<u32>,
}

/// The entry of a column that a segment does not have.
const NONE: u32 = 0;

/// The map that counts, as labels identify it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartsMapRef {
    /// Its sequence number; 0 if the pool has none.
    pub sequence: u64,
    /// Its checksum.
    pub sum: [u8; 32],
}

impl PartsMap {
    /// Creates a map without segments, of this many columns each, data and parity.
    ///
    /// # Panics
    /// If that is not 3 to 18.
    pub fn new(pool_id: [u8; 16], columns: u8) -> Self {
        assert!(COLUMNS.contains(&columns), "{columns} columns");
        let (made_with, packed) = (columns, Vec::new());
        Self { pool_id, sequence: 1, emptied: 0, spares: 0, made_with, columns, packed }
    }

    /// Returns the map of a pool without one: this many segments on as many devices as there are
    /// columns. Its sequence number is 0.
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

    /// Returns a copy to be changed, with the next sequence number.
    pub fn successor(&self) -> Self {
        Self { sequence: self.sequence + 1, ..self.clone() }
    }

    /// Returns the maximum number of columns of a segment, data and parity.
    pub fn columns_max(&self) -> usize {
        self.columns.into()
    }

    /// Returns the columns of each segment when the pool was created.
    pub fn made_with(&self) -> usize {
        self.made_with.into()
    }

    /// Returns the number of columns of a segment, data and parity.
    ///
    /// # Panics
    /// If there is no such segment.
    pub fn columns_of(&self, segment: u32) -> usize {
        self.entries(segment).iter().take_while(|packed| **packed != NONE).count()
    }

    /// Returns whether all segments have as many columns as when the pool was created.
    pub fn is_uniform(&self) -> bool {
        self.columns == self.made_with && !self.packed.contains(&NONE)
    }

    /// Returns the number of segments, including that of the superblocks.
    pub fn segment_count(&self) -> u32 {
        1 + (self.packed.len() / self.columns_max()) as u32
    }

    /// Returns the location of a column of a segment.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn part(&self, segment: u32, column: usize) -> Part {
        Part::unpack(self.packed[self.index(segment, column)])
    }

    /// Returns the locations of the columns of a segment.
    ///
    /// # Panics
    /// If there is no such segment.
    pub fn parts(&self, segment: u32) -> impl Iterator<Item = Part> {
        let entries = self.entries(segment).iter();
        entries.take_while(|packed| **packed != NONE).map(|packed| Part::unpack(*packed))
    }

    fn entries(&self, segment: u32) -> &[u32] {
        let start = self.index(segment, 0);
        &self.packed[start..start + self.columns_max()]
    }

    /// Returns the column of a segment on a device, if there is one.
    pub fn column_on(&self, segment: u32, device: u16) -> Option<usize> {
        self.parts(segment).position(|part| u16::from(part.device) == device)
    }

    /// Adds a segment with its columns in these parts.
    ///
    /// # Panics
    /// If they are not 3 to 18; if one has an impossible number.
    pub fn push(&mut self, parts: &[Part]) {
        self.make_wider(parts.len());
        self.packed.extend(entries_of(parts, self.columns_max()));
    }

    /// Moves the columns of an unused segment to these parts.
    ///
    /// # Panics
    /// As [`PartsMap::push`] and [`PartsMap::part`].
    pub fn lay(&mut self, segment: u32, parts: &[Part]) {
        self.make_wider(parts.len());
        let (start, columns) = (self.index(segment, 0), self.columns_max());
        let entries = self.packed[start..start + columns].iter_mut();
        entries.zip(entries_of(parts, columns)).for_each(|(old, new)| *old = new);
    }

    /// Makes room for segments of this many columns.
    fn make_wider(&mut self, columns: usize) {
        let is_known = u8::try_from(columns).is_ok_and(|columns| COLUMNS.contains(&columns));
        assert!(is_known, "{columns} columns");
        let before = self.columns_max();
        if columns > before {
            let entries = self.packed.chunks_exact(before);
            let missing = columns - before;
            let entries = entries.map(|entries| entries.iter().copied().chain(none(missing)));
            self.packed = entries.flatten().collect();
            self.columns = columns as u8;
        }
    }

    /// Changes the location of a column of a segment.
    ///
    /// # Panics
    /// As [`PartsMap::part`] and [`PartsMap::push`].
    pub fn set(&mut self, segment: u32, column: usize, part: Part) {
        let index = self.index(segment, column);
        self.packed[index] = part.pack();
    }

    fn index(&self, segment: u32, column: usize) -> usize {
        assert!(segment > 0 && column < self.columns_max(), "column {column} of segment {segment}");
        (segment as usize - 1) * self.columns_max() + column
    }

    /// Encodes it, padded to whole blocks; returns also the reference for labels.
    ///
    /// # Panics
    /// If it is longer than [`PARTS_MAP_BYTES_MAX`].
    pub fn encode(&self) -> (Vec<u8>, PartsMapRef) {
        let mut out = Vec::with_capacity(HEADER_BYTES + 4 * self.packed.len());
        out.extend_from_slice(&MAGIC);
        let (version, made_with) =
            if self.is_uniform() { (VERSIONS[0], 0) } else { (VERSIONS[1], self.made_with) };
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(&[self.columns, self.spares, made_with, 0]);
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

    /// Returns the bytes of a map that begins with this block, padded to whole blocks.
    ///
    /// # Errors
    /// If no map begins so.
    pub fn stored_bytes(header: &[u8]) -> Result<usize, FormatError> {
        let header = Header::decode(header)?;
        Ok((HEADER_BYTES + 4 * header.entries).next_multiple_of(HEADER_BYTES))
    }

    /// Decodes one.
    ///
    /// # Errors
    /// What is wrong with it. A map with a right checksum in which a part occurs twice is refused,
    /// too.
    pub fn decode(bytes: &[u8]) -> Result<(Self, PartsMapRef), FormatError> {
        let header = Header::decode(bytes)?;
        let end = HEADER_BYTES + 4 * header.entries;
        let Some(used) = bytes.get(..end) else { return error("a truncated map of parts", end) };
        let sum = sum_of(used);
        if sum != bytes[SUM_AT..HEADER_BYTES] {
            return error("wrong checksum of a map of parts", SUM_AT);
        }
        let entries = used[HEADER_BYTES..].as_chunks::<4>().0;
        let packed = entries.iter().map(|entry| u32::from_le_bytes(*entry)).collect();
        let Header { columns, spares, made_with, has_several, .. } = header;
        let Header { pool_id, sequence, emptied, .. } = header;
        let map = Self { pool_id, sequence, emptied, spares, made_with, columns, packed };
        map.check()?;
        if map.is_uniform() == has_several {
            return error("a map whose version does not match its segments", 8);
        }
        Ok((map, PartsMapRef { sequence, sum }))
    }

    fn check(&self) -> Result<(), FormatError> {
        let mut all = self.packed.clone();
        all.retain(|packed| *packed != NONE);
        all.sort_unstable();
        if !all.is_sorted_by(|one, next| one < next) {
            return error("a map with one part in two columns", HEADER_BYTES);
        }
        for segment in 1..self.segment_count() {
            let at = HEADER_BYTES + 4 * self.index(segment, 0);
            let (columns, entries) = (self.columns_of(segment), self.entries(segment));
            let are_enough = columns >= COLUMNS_MIN.into() || columns == self.made_with();
            if !are_enough || entries[columns..].iter().any(|packed| *packed != NONE) {
                return error("a map with a segment of impossible columns", at);
            }
            let mut seen = 0_u64;
            for part in self.parts(segment) {
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

/// The content of the first block.
struct Header {
    columns: u8,
    spares: u8,
    made_with: u8,
    /// Whether segments may have other numbers of columns.
    has_several: bool,
    pool_id: [u8; 16],
    sequence: u64,
    emptied: u64,
    entries: usize,
}

impl Header {
    fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let Some(header) = bytes.get(..HEADER_BYTES) else {
            return error("a truncated map of parts", bytes.len());
        };
        let mut reader = Reader::new(header);
        if reader.array()? != MAGIC {
            return error("no map of parts", 0);
        }
        let version = reader.u32()?;
        if !VERSIONS.contains(&version) {
            return error("the map of parts has an unknown version", 8);
        }
        let [columns, spares, made_with, zero] = reader.array::<4>()?;
        let has_several = version == VERSIONS[1];
        let is_known = if has_several { COLUMNS.contains(&made_with) } else { made_with == 0 };
        if !COLUMNS.contains(&columns) || !is_known || zero != 0 {
            return error("a map with impossible columns", 12);
        }
        let made_with = if has_several { made_with } else { columns };
        let (pool_id, sequence) = (reader.array()?, reader.u64()?);
        let (segments, zeros) = (reader.u32()?, reader.array::<4>()?);
        let entries = u64::from(segments.saturating_sub(1)) * u64::from(columns);
        if segments == 0 || zeros != [0; 4] || entries > COLUMNS_IN_MAP_MAX {
            return error("a map of impossibly many segments", 40);
        }
        let emptied = reader.u64()?;
        if header[reader.offset()..SUM_AT].iter().any(|byte| *byte != 0) {
            return error("a map with unknown content", reader.offset());
        }
        let entries = entries as usize;
        Ok(Self { columns, spares, made_with, has_several, pool_id, sequence, emptied, entries })
    }
}

/// Returns the checksum of a map without its padding.
fn sum_of(bytes: &[u8]) -> [u8; 32] {
    let (header, entries) = bytes.split_at(HEADER_BYTES);
    superblock_sum(&[&header[..SUM_AT], entries].concat())
}

fn error<T>(what: &'static str, offset: usize) -> Result<T, FormatError> {
    Err(FormatError { what, offset })
}

/// Returns the entries of a segment with this many columns.
fn entries_of(parts: &[Part], columns: usize) -> impl Iterator<Item = u32> {
    parts.iter().map(|part| part.pack()).chain(none(columns - parts.len()))
}

fn none(count: usize) -> impl Iterator<Item = u32> {
    std::iter::repeat_n(NONE, count)
}

#[cfg(test)]
#[path = "parts_map_tests.rs"]
mod tests;
