//! Tables in pages, and streams.
//!
//! A table is a radix tree over row numbers: pages of rows at the bottom, directories above them. A
//! parent contains the location and the checksum of each child. A checksum of 2^64 - 1 marks a page
//! which recovery had to change but could not read, and which must not be read any more.
//!
//! ```text
//! row page, 4096 bytes      128 rows of 32 bytes
//! directory, 4096 bytes     256 references
//! reference, 16 bytes        0  4  segment     (all zero: no such page, its rows are free)
//!                            4  4  offset, in units of 64 bytes
//!                            8  8  checksum
//! stream piece              up to 1 MiB: 24 bytes of reference and length of the next piece,
//!                           4 bytes of its own length, 4 zero, then content
//! ```
//!
//! In the segment table a page has 32 rows of 128 bytes ([rows](#rows-of-the-segment-table)).
//!
//! Three streams hold what fits memory: the segment rows, if they are not in a table; the pairs of
//! the key-value space, if they are not in leaves ([key-value space](#key-value-space)); and
//! pending work. The pending stream has the number of nodes to be freed 8 and their ids 8 each,
//! then first chunk 8 and count 4 of each run of staged chunks. If the last minute's COMPARE AND
//! WRITE commands are stored, a first chunk of 2^64 - 1 follows, their number 4, and each as in
//! `Compared` of the log; a version that does not know them refuses the run.

use crate::FormatError;
use crate::codec::{Reader, put, u32_at, u64_at};
use crate::geometry::Place;
use crate::row::ROW_BYTES;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;
/// Rows in a page.
pub const ROWS_PER_PAGE: u64 = (PAGE_BYTES / ROW_BYTES) as u64;
/// References in a directory.
pub const REFS_PER_DIRECTORY: u64 = (PAGE_BYTES / REF_BYTES) as u64;
/// Bytes of a reference.
pub const REF_BYTES: usize = 16;
/// The maximum number of directories above a row page: 2^60 rows need seven.
pub const TABLE_HEIGHT_MAX: u8 = 7;
/// The maximum bytes of content of a piece of a stream.
pub const STREAM_PIECE_BYTES_MAX: usize = (1 << 20) - STREAM_HEADER_BYTES;
/// Bytes before the content of a piece.
pub const STREAM_HEADER_BYTES: usize = 32;

/// The location of a page, and its checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageRef {
    /// The place; nowhere if the page does not exist.
    pub place: Place,
    /// The checksum of its bytes.
    pub checksum: u64,
}

impl PageRef {
    /// No page.
    pub const NONE: PageRef = PageRef { place: Place::NONE, checksum: 0 };

    /// Returns a reference to the same page that must never be read again: it missed changes, and
    /// must not count as the newest version if it becomes readable again.
    pub fn spoiled(self) -> Self {
        Self { checksum: u64::MAX, ..self }
    }

    /// Returns whether the page does not exist.
    pub fn is_none(self) -> bool {
        self.place.is_none()
    }

    /// Returns the reference at `index` of a directory.
    ///
    /// # Panics
    /// If the directory is shorter than that.
    pub fn in_directory(directory: &[u8], index: usize) -> Self {
        let at = index * REF_BYTES;
        let place =
            Place { segment: u32_at(directory, at), offset_units: u32_at(directory, at + 4) };
        Self { place, checksum: u64_at(directory, at + 8) }
    }

    /// Writes the reference at `index` of a directory.
    ///
    /// # Panics
    /// If the directory is shorter than that.
    pub fn put_in_directory(self, directory: &mut [u8], index: usize) {
        put(directory, index * REF_BYTES, &self.encode());
    }

    /// Encodes it.
    pub fn encode(self) -> [u8; REF_BYTES] {
        let mut out = [0; REF_BYTES];
        put(&mut out, 0, &self.place.segment.to_le_bytes());
        put(&mut out, 4, &self.place.offset_units.to_le_bytes());
        put(&mut out, 8, &self.checksum.to_le_bytes());
        out
    }

    /// Decodes one.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        let place = Place { segment: reader.u32()?, offset_units: reader.u32()? };
        Ok(Self { place, checksum: reader.u64()? })
    }
}

/// The root of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableRoot {
    /// The page at the top.
    pub page: PageRef,
    /// The number of directories above a row page.
    pub height: u8,
}

/// The first piece of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamRef {
    /// The place; the checksum covers `length_bytes` bytes.
    pub page: PageRef,
    /// The length of the piece, including its header; 0 is an empty stream.
    pub length_bytes: u32,
}

impl StreamRef {
    /// Encodes it: 24 bytes.
    pub fn encode(self) -> [u8; 24] {
        let mut out = [0; 24];
        put(&mut out, 0, &self.page.encode());
        put(&mut out, 16, &self.length_bytes.to_le_bytes());
        out
    }

    /// Decodes one.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        let page = PageRef::decode(reader)?;
        let length_bytes = reader.u32()?;
        let spare = reader.u32()?;
        if spare != 0 || length_bytes as usize > STREAM_PIECE_BYTES_MAX + STREAM_HEADER_BYTES {
            return Err(reader.error("impossible stream reference"));
        }
        Ok(Self { page, length_bytes })
    }
}

/// Encodes a piece of a stream, given its content and the reference to the next piece.
pub fn encode_stream_piece(next: StreamRef, content: &[u8]) -> Vec<u8> {
    debug_assert!(content.len() <= STREAM_PIECE_BYTES_MAX);
    let mut out = Vec::with_capacity(STREAM_HEADER_BYTES + content.len());
    out.extend_from_slice(&next.encode());
    out.extend_from_slice(&(content.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(content);
    out
}

/// Decodes a piece of a stream: returns the reference to the next piece, and the content of this
/// one.
pub fn decode_stream_piece(piece: &[u8]) -> Result<(StreamRef, &[u8]), FormatError> {
    let mut reader = Reader::new(piece);
    let next = StreamRef::decode(&mut reader)?;
    let length = reader.u32()? as usize;
    reader.u32()?;
    if length != reader.remaining() {
        return Err(reader.error("a stream piece of a wrong length"));
    }
    let content = reader.bytes(length)?;
    Ok((next, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_pieces_survive() {
        let page = PageRef { place: Place { segment: 3, offset_units: 64 }, checksum: 77 };
        let mut directory = [0; PAGE_BYTES];
        page.put_in_directory(&mut directory, 255);
        assert_eq!(PageRef::in_directory(&directory, 255), page);
        assert!(PageRef::in_directory(&directory, 0).is_none());
        let next = StreamRef { page, length_bytes: 40 };
        let piece = encode_stream_piece(next, b"content");
        assert_eq!(decode_stream_piece(&piece), Ok((next, &b"content"[..])));
        assert!(decode_stream_piece(&piece[..piece.len() - 1]).is_err());
        assert!(decode_stream_piece(&piece[..5]).is_err());
    }
}
