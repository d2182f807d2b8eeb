//! ROD tokens: 512 bytes that a host carries from one volume to another (SPC-4, 5.17.6.4).
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | ROD TYPE: point in time copy, default |
//! | 6..8 | ROD TOKEN LENGTH: 01F8h |
//! | 8..16 | COPY MANAGER ROD TOKEN IDENTIFIER |
//! | 16..48 | CREATOR LOGICAL UNIT DESCRIPTOR: an identification CSCD descriptor |
//! | 48..64 | NUMBER OF BYTES REPRESENTED |
//! | 96..128 | of disks: READ CAPACITY (16) data from the block length on |
//! | 480..512 | a keyed hash of all the rest |
//!
//! [`target::Rods`], which knows the data of a token and has the key, fills bytes 8..16 and
//! 480..512.

use block::{SECTOR_BYTES, SectorRange, VolumeAttributes};
use target::rods::TOKEN_BYTES;
use target::{Token, TokenError};

use crate::limits::{CSCD_TYPE, POINT_IN_TIME};
use crate::sense::{Sense, SenseKey};
use crate::unit::capacity::capacity_data;

/// The part of a token in REPORT ALL ROD TOKENS: a management ROD token, without its hash.
pub(crate) const MANAGEMENT_BYTES: usize = 96;
/// Returns the sense data for a token that is invalid, or can't be created: INSUFFICIENT RESOURCES
/// TO CREATE ROD TOKEN, or INVALID TOKEN OPERATION with TOKEN UNKNOWN, CORRUPT, REVOKED, EXPIRED or
/// DELETED.
pub(crate) fn sense(error: TokenError) -> Sense {
    let (asc, ascq) = match error {
        TokenError::NoRoom => (0x55, 0x0d),
        TokenError::Unknown => (0x23, 0x04),
        TokenError::Corrupt => (0x23, 0x05),
        TokenError::Revoked => (0x23, 0x06),
        TokenError::Expired => (0x23, 0x07),
        TokenError::Deleted => (0x23, 0x09),
    };
    Sense::new(SenseKey::IllegalRequest, asc, ascq)
}

/// Builds an unsigned token for ranges of a volume.
pub(crate) fn build(volume: &VolumeAttributes, ranges: &[SectorRange]) -> Token {
    let bytes: u64 = ranges.iter().map(|range| range.count.0 * SECTOR_BYTES).sum();
    let mut token = [0; TOKEN_BYTES];
    token[..4].copy_from_slice(&POINT_IN_TIME.to_be_bytes());
    token[6..8].copy_from_slice(&((TOKEN_BYTES - 8) as u16).to_be_bytes());
    token[16] = CSCD_TYPE;
    token[20..24].copy_from_slice(&[0x01, 0x03, 0, 16]); // binary, NAA
    token[24..40].copy_from_slice(&volume.naa);
    token[44..48].copy_from_slice(&(volume.logical_block.bytes() as u32).to_be_bytes());
    token[56..64].copy_from_slice(&bytes.to_be_bytes());
    let capacity = capacity_data(volume);
    token[96..120].copy_from_slice(&capacity[8..32]);
    token
}
