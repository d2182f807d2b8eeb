//! ROD tokens, as they are kept in the key-value space.
//!
//! ```text
//! 'S' 'k'                       version 1, incarnation 8, key 32, identifiers set aside 8
//! 'S' 't' identifier 8          a token:
//!  0  1  version: 1
//!  1  8  incarnation in which it was made
//!  9  8  volume that it is a copy of
//! 17  4  inactivity timeout, in seconds
//! 21 512 the token
//!     1  length of the initiator's name, then the name
//!     1  how many pieces, then of each: first sector 8, sectors 8; in the array's own volume
//! ```
//!
//! Keep the key of tokens as secret as the volumes: whoever has it can forge a token for any ROD.

use block::{SectorRange, VolumeId};

use super::{VERSION, end, version};
use crate::FormatError;
use crate::codec::Reader;

/// The length of a token.
pub const TOKEN_BYTES: usize = 512;
/// The maximum number of pieces of a token.
pub const TOKEN_PIECES_MAX: usize = u8::MAX as usize;

/// The key and counter for making tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredTokenMaker {
    /// The incarnation whose tokens it makes.
    pub incarnation: u64,
    /// The key that signs them.
    pub key: [u8; 32],
    /// The next identifier: those of all existing tokens are lower.
    pub next_id: u64,
}

impl std::fmt::Debug for StoredTokenMaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoredTokenMaker({}, …, {})", self.incarnation, self.next_id)
    }
}

impl StoredTokenMaker {
    /// Encodes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.incarnation.to_le_bytes());
        out.extend_from_slice(&self.key);
        out.extend_from_slice(&self.next_id.to_le_bytes());
        out
    }

    /// Decodes one.
    ///
    /// # Errors
    /// If it is not valid.
    pub fn decode(value: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(value);
        version(&mut reader)?;
        let (incarnation, key, next_id) = (reader.u64()?, reader.array()?, reader.u64()?);
        end(&reader)?;
        Ok(Self { incarnation, key, next_id })
    }
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredToken {
    /// The incarnation in which it was made.
    pub incarnation: u64,
    /// The volume of which it is a copy.
    pub source: VolumeId,
    /// Its inactivity timeout, in seconds.
    pub inactivity_s: u32,
    /// The token.
    pub token: [u8; TOKEN_BYTES],
    /// The initiator that made it.
    pub initiator: String,
    /// The ranges of its data in the array's own volume.
    pub pieces: Vec<SectorRange>,
}

impl StoredToken {
    /// Encodes it.
    ///
    /// # Panics
    /// If there are more than [`TOKEN_PIECES_MAX`] pieces, or the name has more than 255 bytes.
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.initiator.len() <= usize::from(u8::MAX), "a name is too long");
        assert!(self.pieces.len() <= TOKEN_PIECES_MAX, "more pieces than fit");
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.incarnation.to_le_bytes());
        out.extend_from_slice(&self.source.0.to_le_bytes());
        out.extend_from_slice(&self.inactivity_s.to_le_bytes());
        out.extend_from_slice(&self.token);
        out.push(self.initiator.len() as u8);
        out.extend_from_slice(self.initiator.as_bytes());
        out.push(self.pieces.len() as u8);
        for piece in &self.pieces {
            out.extend_from_slice(&piece.start.0.to_le_bytes());
            out.extend_from_slice(&piece.count.0.to_le_bytes());
        }
        out
    }

    /// Decodes one.
    ///
    /// # Errors
    /// If it is not valid.
    pub fn decode(value: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(value);
        version(&mut reader)?;
        let (incarnation, source) = (reader.u64()?, VolumeId(reader.u64()?));
        let (inactivity_s, token) = (reader.u32()?, reader.array()?);
        let length = usize::from(reader.u8()?);
        let initiator = str::from_utf8(reader.bytes(length)?);
        let initiator = initiator.map_err(|_| reader.error("a name that is not UTF-8"))?.to_owned();
        let count = reader.u8()?;
        let piece = |_| Ok(SectorRange::new(reader.u64()?, reader.u64()?));
        let pieces = (0..count).map(piece).collect::<Result<_, FormatError>>()?;
        end(&reader)?;
        Ok(Self { incarnation, source, inactivity_s, token, initiator, pieces })
    }
}
