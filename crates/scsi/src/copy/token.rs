//! ROD tokens: 512 bytes that a host carries from one place to another (SPC-4, 5.17.6.4).
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | ROD TYPE: point in time copy, default |
//! | 6..8 | ROD TOKEN LENGTH: 01F8h |
//! | 8..16 | COPY MANAGER ROD TOKEN IDENTIFIER |
//! | 16..48 | CREATOR LOGICAL UNIT DESCRIPTOR: an identification CSCD descriptor |
//! | 48..64 | NUMBER OF BYTES REPRESENTED |
//! | 96..128 | of disks: READ CAPACITY (16) data from the block length on |
//! | 480..512 | a keyed sum of all the rest |
//!
//! Who shows a token gets at the data that it stands for, so it must not be possible to make one
//! up: the key of the sum is new at each start, and never leaves the array.

use block::VolumeAttributes;

use crate::bytes::be_u64;
use crate::capacity::capacity_data;
use crate::copy::limits::CSCD_TYPE;

/// A token.
pub(crate) type Token = [u8; TOKEN_BYTES];
/// Its length.
pub(crate) const TOKEN_BYTES: usize = 512;
/// The part of a token in REPORT ALL ROD TOKENS: a management ROD token, without its sum.
pub(crate) const MANAGEMENT_BYTES: usize = 96;
/// Point in time copy, default.
pub(crate) const POINT_IN_TIME: u32 = 0x0080_0000;
/// Any point in time copy: what a host may ask for.
pub(crate) const POINT_IN_TIME_ANY: u32 = 0x0080_ffff;
/// The block device zero ROD token, which everybody knows (SBC-4, 4.28.4).
pub(crate) const BLOCK_ZERO: u32 = 0xffff_0001;
const SUM_AT: usize = TOKEN_BYTES - 32;

/// What makes sums of tokens.
pub(crate) struct TokenKey([u8; 32]);

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey(…)")
    }
}

impl TokenKey {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self(*key)
    }

    fn sum(&self, token: &Token) -> blake3::Hash {
        blake3::keyed_hash(&self.0, &token[..SUM_AT])
    }

    /// The identifier in a token that this key has made, or nothing. Takes the same time for each.
    pub(crate) fn check(&self, token: &Token) -> Option<u64> {
        let told = blake3::Hash::from_slice(&token[SUM_AT..]).ok()?;
        (self.sum(token) == told).then(|| be_u64(token, 8))
    }
}

/// Makes a token for `bytes` of a volume.
pub(crate) fn build(key: &TokenKey, id: u64, volume: &VolumeAttributes, bytes: u64) -> Token {
    let mut token = [0; TOKEN_BYTES];
    token[..4].copy_from_slice(&POINT_IN_TIME.to_be_bytes());
    token[6..8].copy_from_slice(&((TOKEN_BYTES - 8) as u16).to_be_bytes());
    token[8..16].copy_from_slice(&id.to_be_bytes());
    token[16] = CSCD_TYPE;
    token[20..24].copy_from_slice(&[0x01, 0x03, 0, 16]); // binary, NAA
    token[24..40].copy_from_slice(&volume.naa);
    token[44..48].copy_from_slice(&(volume.logical_block.bytes() as u32).to_be_bytes());
    token[56..64].copy_from_slice(&bytes.to_be_bytes());
    let capacity = capacity_data(volume);
    token[96..120].copy_from_slice(&capacity[8..32]);
    let sum = key.sum(&token);
    token[SUM_AT..].copy_from_slice(sum.as_bytes());
    token
}
