//! The log: records in segments.
//!
//! ```text
//! record header, 96 bytes, then the entries, then header and entries of the previous record, then
//! zeros up to 4 KiB, then the payload
//!  0  4  magic "HFLR"             56  4  the segment that follows this one
//!  4  2  version (3)              60  4  number of entries
//!  6  2  4 KiB blocks of header   64 16  seal over all of the header but itself, and the entries
//!  8  8  LSN                      80  4  bytes of the previous record that follow the entries
//! 16  8  epoch                    84 12  zero
//! 24  8  LSN that was flushed     96     entries
//! 32 16  seal of the previous record
//! 48  4  4 KiB blocks of payload
//! 52  4  bytes of entries
//! ```
//!
//! A record never crosses a segment. If the next record does not fit, it starts the segment that
//! the records of this one name as the next. The fingerprints in the entries cover the payload.
//! Every record up to the "LSN that was flushed" was durable before this one was written; recovery
//! must verify the payload of later ones.
//!
//! The next record contains a copy of a record's header and entries, so that no bad block can
//! destroy both. The next record is found after the damaged one, or at the start of the next
//! segment, and is trusted because of its own seal. The copy begins with the header of the previous
//! record, and ends with the last of its entries. The last record of the log has no successor; so
//! when none follows for a while, a record without entries and payload is written, which also says
//! that all earlier records are durable.
//!
//! Version 2 has no such copy, its seal is over bytes 0..64 and the entries, and its entries are
//! not preceded by a length. Pools of version 2 of the superblock have such records, and upgraded
//! pools may have some from before the upgrade.
//!
//! With several columns ([stripes](#stripes)) a record has its own rows in the segment, as few as
//! hold it, and a position counts rows. The record fills these column by column, followed by zeros
//! in the last; each compressed group is in one column. A record that is rewritten at another
//! location must keep its groups in their columns, so its header may have more blocks than it
//! needs.
//!
//! A record that could not be written at its location starts the next segment too. If the first
//! block of that segment can't be written, a record without entries and payload is at a quarter,
//! half or three quarters of it, and the log continues in the following segment.

use block::BLOCK_BYTES;

use crate::FormatError;
use crate::checksum::{Keys, Seal};
use crate::codec::{Reader, put};
use crate::entry::{ENTRY_LENGTH_BYTES, Entry};

const MAGIC: u32 = u32::from_le_bytes(*b"HFLR");
/// Bytes before the entries.
pub const RECORD_HEADER_BYTES: usize = 96;
const SEALED_BYTES: usize = 64;
const COPIED_AT: usize = 80;
/// The maximum bytes of entries in a record: 256 KiB of fingerprints for every payload that fits,
/// and the longest value, with room to spare.
pub const RECORD_ENTRIES_BYTES_MAX: usize = 512 << 10;

/// The form of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordVersion {
    /// Header and entries have one copy, and entries have no length.
    V2,
    /// Header and entries have a copy in the next record, and each entry is preceded by its length.
    #[default]
    V3,
}

impl RecordVersion {
    fn encode(self) -> u16 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    fn decode(raw: u16) -> Option<Self> {
        match raw {
            2 => Some(Self::V2),
            3 => Some(Self::V3),
            _ => None,
        }
    }

    /// Returns the bytes of entries in this form, given their bytes with lengths, and their number.
    pub fn entries_bytes(self, bytes_with_lengths: usize, count: usize) -> usize {
        match self {
            Self::V2 => bytes_with_lengths - count * ENTRY_LENGTH_BYTES,
            Self::V3 => bytes_with_lengths,
        }
    }

    /// Appends an entry to those of a record.
    pub fn add(self, entry: &Entry, out: &mut Vec<u8>) {
        if self == Self::V3 {
            let bytes = entry.encoded_bytes() - ENTRY_LENGTH_BYTES;
            out.extend_from_slice(&(bytes as u32).to_le_bytes());
        }
        entry.encode(out);
    }
}

/// A position in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// The segment.
    pub segment: u32,
    /// The row in the segment: with one column, its 4 KiB block.
    pub block: u32,
    /// The next segment.
    pub next_segment: u32,
    /// The LSN of the record that is, or will be, at this position.
    pub lsn: u64,
    /// The seal of the previous record.
    pub previous: Seal,
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// Its form.
    pub version: RecordVersion,
    /// Its LSN: that of the previous record plus one.
    pub lsn: u64,
    /// The epoch of its writer.
    pub epoch: u64,
    /// The last record known to be durable.
    pub flushed_lsn: u64,
    /// The seal of the previous record.
    pub previous: Seal,
    /// 4 KiB blocks of header and entries.
    pub header_blocks: u16,
    /// 4 KiB blocks of payload.
    pub payload_blocks: u32,
    /// Bytes of entries.
    pub entries_bytes: u32,
    /// The number of entries.
    pub entry_count: u32,
    /// The next segment.
    pub next_segment: u32,
    /// Bytes of header and entries of the previous record, which follow the entries.
    pub copied_bytes: u32,
    /// The seal.
    pub seal: Seal,
}

/// The maximum bytes of a record that the next one has a copy of.
pub const RECORD_COPIED_BYTES_MAX: usize = RECORD_HEADER_BYTES + RECORD_ENTRIES_BYTES_MAX;

/// Returns the number of 4 KiB blocks for header and entries, and the copy of the previous record.
pub fn header_blocks(entries_bytes: usize, copied_bytes: usize) -> u32 {
    (RECORD_HEADER_BYTES + entries_bytes + copied_bytes).div_ceil(BLOCK_BYTES as usize) as u32
}

impl RecordHeader {
    /// Writes the header before the entries, which are at [`RECORD_HEADER_BYTES`] of `record`,
    /// followed by the copy of the previous record; computes the seal over the header and the
    /// entries, and returns it.
    pub fn seal(mut self, record: &mut [u8], keys: &Keys) -> Seal {
        put(record, 0, &MAGIC.to_le_bytes());
        put(record, 4, &self.version.encode().to_le_bytes());
        put(record, 6, &self.header_blocks.to_le_bytes());
        put(record, 8, &self.lsn.to_le_bytes());
        put(record, 16, &self.epoch.to_le_bytes());
        put(record, 24, &self.flushed_lsn.to_le_bytes());
        put(record, 32, &self.previous.0);
        put(record, 48, &self.payload_blocks.to_le_bytes());
        put(record, 52, &self.entries_bytes.to_le_bytes());
        put(record, 56, &self.next_segment.to_le_bytes());
        put(record, 60, &self.entry_count.to_le_bytes());
        put(record, COPIED_AT, &self.copied_bytes.to_le_bytes());
        put(record, 84, &[0; 12]);
        self.seal = self.seal_of(record, keys);
        put(record, 64, &self.seal.0);
        self.seal
    }

    /// Returns where the entries end, and where the copy of the previous record does.
    fn ends(&self) -> (usize, usize) {
        let entries = RECORD_HEADER_BYTES + self.entries_bytes as usize;
        (entries, entries + self.copied_bytes as usize)
    }

    fn seal_of(&self, record: &[u8], keys: &Keys) -> Seal {
        let (_, end) = self.ends();
        let behind = &record[RECORD_HEADER_BYTES..end];
        match self.version {
            RecordVersion::V2 => keys.seal(&record[..SEALED_BYTES], behind),
            RecordVersion::V3 => {
                let mut header = [0; SEALED_BYTES + RECORD_HEADER_BYTES - COPIED_AT];
                header[..SEALED_BYTES].copy_from_slice(&record[..SEALED_BYTES]);
                header[SEALED_BYTES..].copy_from_slice(&record[COPIED_AT..RECORD_HEADER_BYTES]);
                keys.seal(&header, behind)
            }
        }
    }

    /// Returns what the next record has a copy of.
    pub fn own_part<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[..self.ends().0]
    }

    /// Zeroes the padding at the end of the blocks of a verified header. The seal does not cover
    /// it, and after a torn write it may contain anything.
    pub fn clear_padding(&self, record: &mut [u8]) {
        record[self.ends().1..].fill(0);
    }

    /// Returns the header of the previous record, from the copy in a verified record, and the
    /// [`RecordHeader::own_part`] of that; `None` if there is no copy.
    pub fn record_before<'a>(
        &self,
        record: &'a [u8],
    ) -> Result<Option<(Self, &'a [u8])>, FormatError> {
        let (begin, end) = self.ends();
        if self.copied_bytes == 0 {
            return Ok(None);
        }
        let own = record.get(begin..end);
        let own = own.ok_or(FormatError { what: "a truncated record", offset: begin })?;
        let before = Self::decode(own)?;
        if before.ends().0 != own.len() || before.seal != self.previous {
            return Err(FormatError { what: "no copy of the previous record", offset: begin });
        }
        Ok(Some((before, own)))
    }

    /// Decodes the fields of the first block, without trusting them: [`RecordHeader::verify`] shows
    /// whether it is a record, once `header_blocks` blocks were read.
    pub fn decode(block: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(block);
        if reader.u32()? != MAGIC {
            return Err(FormatError { what: "no record", offset: 0 });
        }
        let version = RecordVersion::decode(reader.u16()?);
        let version =
            version.ok_or(FormatError { what: "unknown version of a record", offset: 4 })?;
        let header_blocks = reader.u16()?;
        let (lsn, epoch, flushed_lsn) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let previous = Seal(reader.array()?);
        let (payload_blocks, entries_bytes) = (reader.u32()?, reader.u32()?);
        let (next_segment, entry_count) = (reader.u32()?, reader.u32()?);
        let seal = Seal(reader.array()?);
        let copied_bytes = match version {
            RecordVersion::V2 => 0,
            RecordVersion::V3 => reader.u32()?,
        };
        let (entries, copied) = (entries_bytes as usize, copied_bytes as usize);
        if entries > RECORD_ENTRIES_BYTES_MAX
            || copied > RECORD_COPIED_BYTES_MAX
            || u32::from(header_blocks) < self::header_blocks(entries, copied)
            || u32::from(header_blocks) > self::header_blocks(entries, RECORD_COPIED_BYTES_MAX)
        {
            return Err(FormatError { what: "impossible length of a record", offset: 52 });
        }
        Ok(Self {
            version,
            lsn,
            epoch,
            flushed_lsn,
            previous,
            header_blocks,
            payload_blocks,
            entries_bytes,
            entry_count,
            next_segment,
            copied_bytes,
            seal,
        })
    }

    /// Returns whether `record`, with all of its header blocks, has the right seal.
    pub fn verify(&self, record: &[u8], keys: &Keys) -> bool {
        record.len() >= self.ends().1 && self.seal_of(record, keys) == self.seal
    }

    /// Decodes the entries of a verified record.
    pub fn entries(&self, record: &[u8]) -> Result<Vec<Entry>, FormatError> {
        let Some(bytes) = record.get(RECORD_HEADER_BYTES..self.ends().0) else {
            return Err(FormatError { what: "a truncated record", offset: record.len() });
        };
        let mut reader = Reader::new(bytes);
        let mut entries = Vec::new();
        for _ in 0..self.entry_count {
            match self.version {
                RecordVersion::V2 => entries.push(Entry::decode(&mut reader)?),
                RecordVersion::V3 => entries.extend(Entry::decode_with_length(&mut reader)?),
            }
        }
        if reader.remaining() > 0 {
            return Err(reader.error("bytes after the last entry"));
        }
        Ok(entries)
    }

    /// Returns the 4 KiB blocks of header, entries and payload.
    pub fn total_blocks(&self) -> u64 {
        u64::from(self.header_blocks) + u64::from(self.payload_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::VolumeId;

    fn record(
        keys: &Keys,
        version: RecordVersion,
        (lsn, previous, copied): (u64, Seal, &[u8]),
    ) -> (RecordHeader, Vec<u8>, Vec<Entry>) {
        let entries = vec![Entry::VolumeDestroy { volume: VolumeId(lsn) }];
        let mut encoded = Vec::new();
        version.add(&entries[0], &mut encoded);
        let mut bytes = vec![0; RECORD_HEADER_BYTES];
        bytes.extend([&encoded[..], copied].concat());
        bytes.resize(4096, 0);
        let mut header = RecordHeader {
            version,
            lsn,
            epoch: 2,
            flushed_lsn: 4,
            previous,
            header_blocks: 1,
            payload_blocks: 0,
            entries_bytes: encoded.len() as u32,
            entry_count: 1,
            next_segment: 9,
            copied_bytes: copied.len() as u32,
            seal: Seal::default(),
        };
        header.seal = header.seal(&mut bytes, keys);
        (header, bytes, entries)
    }

    #[test]
    fn a_record_survives_and_any_flipped_byte_breaks_its_seal() {
        let keys = Keys::derive(&[1; 32]);
        for version in [RecordVersion::V2, RecordVersion::V3] {
            let (header, bytes, entries) = record(&keys, version, (5, Seal([3; 16]), &[]));
            let decoded = RecordHeader::decode(&bytes).unwrap();
            assert_eq!(decoded, header);
            assert!(decoded.verify(&bytes, &keys));
            assert_eq!(decoded.entries(&bytes).unwrap(), entries);
            assert_eq!(decoded.record_before(&bytes), Ok(None));
            assert!(!decoded.verify(&bytes, &Keys::derive(&[2; 32])));
            for at in 0..RECORD_HEADER_BYTES + 9 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 0x10;
                let valid = RecordHeader::decode(&flipped)
                    .is_ok_and(|header| header.verify(&flipped, &keys));
                let is_spare = version == RecordVersion::V2 && (80..96).contains(&at);
                assert!(!valid || is_spare, "byte {at}");
            }
        }
    }

    #[test]
    fn a_record_has_a_copy_of_the_previous_one() {
        let keys = Keys::derive(&[1; 32]);
        for version in [RecordVersion::V2, RecordVersion::V3] {
            let (before, first, entries) = record(&keys, version, (5, Seal([3; 16]), &[]));
            let own = before.own_part(&first).to_vec();
            let (header, mut bytes, _) = record(&keys, RecordVersion::V3, (6, before.seal, &own));
            let decoded = RecordHeader::decode(&bytes).unwrap();
            assert!(decoded.verify(&bytes, &keys));
            let (found, part) = decoded.record_before(&bytes).unwrap().unwrap();
            assert_eq!((found, part), (before, &own[..]));
            assert_eq!(found.entries(part).unwrap(), entries);
            // A copy of another record than the previous one, or of a part of it.
            let other = RecordHeader { previous: Seal([9; 16]), ..decoded };
            assert!(other.record_before(&bytes).is_err());
            let shorter = RecordHeader { copied_bytes: decoded.copied_bytes - 1, ..decoded };
            assert!(shorter.record_before(&bytes).is_err());
            bytes[RECORD_HEADER_BYTES + header.entries_bytes as usize + 8] ^= 1;
            assert!(!decoded.verify(&bytes, &keys));
        }
    }

    #[test]
    fn lengths_are_checked_before_they_are_used() {
        let keys = Keys::derive(&[1; 32]);
        let (_, bytes, _) = record(&keys, RecordVersion::V3, (5, Seal::default(), &[]));
        for at in [52, 80] {
            let mut bent = bytes.clone();
            put(&mut bent, at, &u32::MAX.to_le_bytes());
            assert!(RecordHeader::decode(&bent).is_err());
        }
        assert!(RecordHeader::decode(&bytes[..10]).is_err());
    }
}
