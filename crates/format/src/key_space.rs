//! The key-value space: pairs, and the leaves that hold them.
//!
//! ```text
//! pair                      key length 1, value length 4, key, value
//! leaf                      pairs in the order of their keys: as many as fit a block, or one that
//!                           is longer. It is stored as a stream, in one piece or several.
//! leaf row, 32 bytes         0 24  reference and length of the first piece
//!                           24  7  zero
//!                           31  1  1: in use
//! ```
//!
//! The leaf table has a row for each leaf; there are 2^24 at most. Each key is in one leaf, and the
//! key ranges of leaves do not overlap. The number of a leaf does not follow from its keys: the
//! space is always read as a whole. Without the feature the pairs are one stream, in the format of
//! a leaf of any length.

use crate::FormatError;
use crate::codec::{Reader, put};
use crate::page::{STREAM_HEADER_BYTES, StreamRef};
use crate::row::ROW_BYTES;

/// Bytes of pairs in a leaf, unless it is one pair: with the header of the piece they fill a block.
pub const LEAF_BYTES_MAX: usize = 4096 - STREAM_HEADER_BYTES;
/// Numbers of leaves are lower than this: together leaves have 64 GiB, and memory holds all of
/// them.
pub const LEAF_NUMBERS_MAX: u64 = 1 << 24;
/// Bytes of a pair before its key.
const PAIR_HEADER_BYTES: usize = 5;

/// Returns the bytes of a pair.
pub fn pair_bytes(key: &[u8], value: &[u8]) -> usize {
    PAIR_HEADER_BYTES + key.len() + value.len()
}

/// Appends a pair. The key has 255 bytes at most.
pub fn encode_pair(key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    debug_assert!(key.len() <= usize::from(u8::MAX), "a key is too long");
    out.push(key.len() as u8);
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Decodes the pairs of a leaf, or of the stream, up to the first that is incomplete.
pub fn decode_pairs(bytes: &[u8]) -> impl Iterator<Item = Result<(&[u8], &[u8]), FormatError>> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(move || (reader.remaining() > 0).then(|| decode_pair(&mut reader))).scan(
        false,
        |failed, pair| {
            let ended = std::mem::replace(failed, pair.is_err());
            (!ended).then_some(pair)
        },
    )
}

fn decode_pair<'a>(reader: &mut Reader<'a>) -> Result<(&'a [u8], &'a [u8]), FormatError> {
    let key_bytes = usize::from(reader.u8()?);
    let value_bytes = reader.u32()? as usize;
    Ok((reader.bytes(key_bytes)?, reader.bytes(value_bytes)?))
}

/// The location of a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeafRow {
    /// The first piece; none if there is no such leaf.
    pub first: StreamRef,
}

impl LeafRow {
    /// Decodes a row; `None` if it is free or impossible.
    ///
    /// # Panics
    /// If `raw` is shorter than [`ROW_BYTES`].
    pub fn decode(raw: &[u8]) -> Option<Self> {
        let first = StreamRef::decode(&mut Reader::new(&raw[..24])).ok()?;
        let fits = first.length_bytes as usize > STREAM_HEADER_BYTES && !first.page.is_none();
        (fits && raw[24..31] == [0; 7] && raw[31] == 1).then_some(Self { first })
    }

    /// Encodes the row into `out`, which has [`ROW_BYTES`]; zeros if there is no such leaf.
    pub fn encode(&self, out: &mut [u8]) {
        out[..ROW_BYTES].fill(0);
        if self.first.length_bytes > 0 {
            put(out, 0, &self.first.encode());
            out[31] = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Place;
    use crate::page::PageRef;

    #[test]
    fn pairs_round_trip_and_a_truncated_one_is_an_error() {
        let pairs: [(&[u8], &[u8]); 3] =
            [(b"", b"value"), (b"key", b""), (&[7; 255], &[8; 70_000])];
        let mut bytes = Vec::new();
        pairs.iter().for_each(|(key, value)| encode_pair(key, value, &mut bytes));
        let lengths: usize = pairs.iter().map(|(key, value)| pair_bytes(key, value)).sum();
        assert_eq!(bytes.len(), lengths);
        let found: Result<Vec<_>, _> = decode_pairs(&bytes).collect();
        assert_eq!(found, Ok(pairs.to_vec()));
        let cut: Vec<_> = decode_pairs(&bytes[..bytes.len() - 1]).collect();
        assert_eq!((cut.len(), cut[2].is_err()), (3, true));
        assert_eq!(decode_pairs(&[]).count(), 0);
    }

    #[test]
    fn leaf_rows_round_trip_and_invalid_ones_are_none() {
        let page = PageRef { place: Place { segment: 3, offset_units: 64 }, checksum: 77 };
        let row = LeafRow { first: StreamRef { page, length_bytes: 40 } };
        let mut raw = [9; ROW_BYTES];
        row.encode(&mut raw);
        assert_eq!(LeafRow::decode(&raw), Some(row));
        for (at, value) in [(20, 1), (24, 1), (31, 0), (31, 2), (16, 32)] {
            let mut other = raw;
            other[at] = value;
            assert_eq!(LeafRow::decode(&other), None, "byte {at}");
        }
        LeafRow::default().encode(&mut raw);
        assert_eq!(raw, [0; ROW_BYTES]);
        assert_eq!(LeafRow::decode(&raw), None);
    }
}
