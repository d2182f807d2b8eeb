//! The log: records in segments.
//!
//! ```text
//! record header, 96 bytes, then the entries, then zeros up to 4 KiB, then the payload
//!  0  4  magic "HFLR"             56  4  the segment that follows this one
//!  4  2  version (2)              60  4  how many entries
//!  6  2  4 KiB blocks of header   64 16  seal over bytes 0..64 and the entries
//!  8  8  LSN                      80 16  zero
//! 16  8  epoch                    96     entries
//! 24  8  LSN that was flushed
//! 32 16  seal of the record before
//! 48  4  4 KiB blocks of payload
//! 52  4  bytes of entries
//! ```
//!
//! A record never crosses a segment. If the next record does not fit, it starts the segment that
//! the records of this one name as the next. The payload is covered by the fingerprints in the
//! entries. Every record up to the "LSN that was flushed" was durable before this one was written;
//! the payload of later ones must be verified when the log is recovered.
//!
//! A record that could not be written at its place starts the next segment too. If that can't be
//! written at its first block, a record without entries and payload is at a quarter, half or three
//! quarters of it, and the log goes on in the segment behind.

use block::BLOCK_BYTES;

use crate::FormatError;
use crate::checksum::{Keys, Seal};
use crate::codec::{Reader, put};
use crate::entry::Entry;

const MAGIC: u32 = u32::from_le_bytes(*b"HFLR");
const VERSION: u16 = 2;
/// Bytes before the entries.
pub const RECORD_HEADER_BYTES: usize = 96;
const SEALED_BYTES: usize = 64;
/// The most bytes of entries in a record: 256 KiB of fingerprints for every payload that fits, and
/// the longest value, with room to spare.
pub const RECORD_ENTRIES_BYTES_MAX: usize = 512 << 10;

/// A position in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// The segment.
    pub segment: u32,
    /// The 4 KiB block in the segment.
    pub block: u32,
    /// The next segment.
    pub next_segment: u32,
    /// The number of the record that is, or will be, at this position.
    pub lsn: u64,
    /// The seal of the record before.
    pub previous: Seal,
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// Its number: one more than that of the record before.
    pub lsn: u64,
    /// The epoch of its writer.
    pub epoch: u64,
    /// The last record known to be durable.
    pub flushed_lsn: u64,
    /// The seal of the record before.
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
    /// The seal.
    pub seal: Seal,
}

/// The number of 4 KiB blocks for header and entries.
pub fn header_blocks(entries_bytes: usize) -> u32 {
    (RECORD_HEADER_BYTES + entries_bytes).div_ceil(BLOCK_BYTES as usize) as u32
}

impl RecordHeader {
    /// Puts the header before the entries, which are at [`RECORD_HEADER_BYTES`] of `record`,
    /// computes the seal over both, and returns it.
    pub fn seal(mut self, record: &mut [u8], keys: &Keys) -> Seal {
        put(record, 0, &MAGIC.to_le_bytes());
        put(record, 4, &VERSION.to_le_bytes());
        put(record, 6, &self.header_blocks.to_le_bytes());
        put(record, 8, &self.lsn.to_le_bytes());
        put(record, 16, &self.epoch.to_le_bytes());
        put(record, 24, &self.flushed_lsn.to_le_bytes());
        put(record, 32, &self.previous.0);
        put(record, 48, &self.payload_blocks.to_le_bytes());
        put(record, 52, &self.entries_bytes.to_le_bytes());
        put(record, 56, &self.next_segment.to_le_bytes());
        put(record, 60, &self.entry_count.to_le_bytes());
        let entries = RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + self.entries_bytes as usize;
        self.seal = keys.seal(&record[..SEALED_BYTES], &record[entries]);
        put(record, 64, &self.seal.0);
        put(record, 80, &[0; 16]);
        self.seal
    }

    /// Reads the fields of the first block, without trusting them: [`RecordHeader::verify`] shows
    /// whether it is a record, once `header_blocks` blocks were read.
    pub fn decode(block: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(block);
        if reader.u32()? != MAGIC {
            return Err(FormatError { what: "no record", offset: 0 });
        }
        if reader.u16()? != VERSION {
            return Err(FormatError { what: "unknown version of a record", offset: 4 });
        }
        let header_blocks = reader.u16()?;
        let (lsn, epoch, flushed_lsn) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let previous = Seal(reader.array()?);
        let (payload_blocks, entries_bytes) = (reader.u32()?, reader.u32()?);
        let (next_segment, entry_count) = (reader.u32()?, reader.u32()?);
        let seal = Seal(reader.array()?);
        if entries_bytes as usize > RECORD_ENTRIES_BYTES_MAX
            || u32::from(header_blocks) != self::header_blocks(entries_bytes as usize)
        {
            return Err(FormatError { what: "impossible length of a record", offset: 52 });
        }
        Ok(Self {
            lsn,
            epoch,
            flushed_lsn,
            previous,
            header_blocks,
            payload_blocks,
            entries_bytes,
            entry_count,
            next_segment,
            seal,
        })
    }

    /// Whether `record`, with all of its header blocks, has the right seal.
    pub fn verify(&self, record: &[u8], keys: &Keys) -> bool {
        let end = RECORD_HEADER_BYTES + self.entries_bytes as usize;
        record.len() >= end
            && keys.seal(&record[..SEALED_BYTES], &record[RECORD_HEADER_BYTES..end]) == self.seal
    }

    /// The entries of a verified record.
    pub fn entries(&self, record: &[u8]) -> Result<Vec<Entry>, FormatError> {
        let end = RECORD_HEADER_BYTES + self.entries_bytes as usize;
        let Some(bytes) = record.get(RECORD_HEADER_BYTES..end) else {
            return Err(FormatError { what: "the record ends too early", offset: record.len() });
        };
        let mut reader = Reader::new(bytes);
        let mut entries = Vec::new();
        for _ in 0..self.entry_count {
            entries.push(Entry::decode(&mut reader)?);
        }
        if reader.remaining() > 0 {
            return Err(reader.error("bytes behind the last entry"));
        }
        Ok(entries)
    }

    /// 4 KiB blocks of header, entries and payload.
    pub fn total_blocks(&self) -> u64 {
        u64::from(self.header_blocks) + u64::from(self.payload_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::VolumeId;

    fn record(keys: &Keys) -> (RecordHeader, Vec<u8>, Vec<Entry>) {
        let entries = vec![Entry::VolumeDestroy { volume: VolumeId(1) }];
        let mut encoded = Vec::new();
        entries[0].encode(&mut encoded);
        let mut bytes = vec![0; 4096];
        bytes[RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + encoded.len()].copy_from_slice(&encoded);
        let mut header = RecordHeader {
            lsn: 5,
            epoch: 2,
            flushed_lsn: 4,
            previous: Seal([3; 16]),
            header_blocks: 1,
            payload_blocks: 0,
            entries_bytes: encoded.len() as u32,
            entry_count: 1,
            next_segment: 9,
            seal: Seal::default(),
        };
        header.seal = header.seal(&mut bytes, keys);
        (header, bytes, entries)
    }

    #[test]
    fn a_record_survives_and_any_flipped_byte_breaks_its_seal() {
        let keys = Keys::derive(&[1; 32]);
        let (header, bytes, entries) = record(&keys);
        let decoded = RecordHeader::decode(&bytes).unwrap();
        assert_eq!(decoded, header);
        assert!(decoded.verify(&bytes, &keys));
        assert_eq!(decoded.entries(&bytes).unwrap(), entries);
        assert!(!decoded.verify(&bytes, &Keys::derive(&[2; 32])));
        for at in 0..RECORD_HEADER_BYTES + 9 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            let valid =
                RecordHeader::decode(&flipped).is_ok_and(|header| header.verify(&flipped, &keys));
            assert!(!valid || (80..RECORD_HEADER_BYTES).contains(&at), "byte {at}");
        }
    }

    #[test]
    fn lengths_are_checked_before_they_are_used() {
        let keys = Keys::derive(&[1; 32]);
        let (_, mut bytes, _) = record(&keys);
        put(&mut bytes, 52, &u32::MAX.to_le_bytes());
        assert!(RecordHeader::decode(&bytes).is_err());
        assert!(RecordHeader::decode(&bytes[..10]).is_err());
    }
}
