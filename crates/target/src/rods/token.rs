//! The token itself, and the key that authenticates it.

/// A token: 512 bytes, of which the last 32 are a keyed hash of all the rest.
pub type Token = [u8; TOKEN_BYTES];
/// The length of a token, in bytes.
pub const TOKEN_BYTES: usize = 512;
/// The offset of the hash.
pub const SUM_AT: usize = TOKEN_BYTES - 32;
/// The offset of its identifier: the array's own number, big-endian (SPC-4, 5.17.6.4).
pub const ID_AT: usize = 8;

/// The key for the hash of tokens. A token grants access to its data, so it must not be possible to
/// forge one: the key is random, and never leaves the array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenKey(pub [u8; 32]);

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey(…)")
    }
}

impl TokenKey {
    fn sum(&self, token: &Token) -> blake3::Hash {
        blake3::keyed_hash(&self.0, &token[..SUM_AT])
    }

    /// Returns the identifier of a token that this key has signed; `None` for others. Takes the
    /// same time for each.
    pub(super) fn check(&self, token: &Token) -> Option<u64> {
        let told = blake3::Hash::from_slice(&token[SUM_AT..]).ok()?;
        let mut id = [0; 8];
        id.copy_from_slice(&token[ID_AT..ID_AT + 8]);
        (self.sum(token) == told).then(|| u64::from_be_bytes(id))
    }

    /// Adds identifier and hash to a token.
    pub(super) fn sign(&self, mut token: Token, id: u64) -> Token {
        token[ID_AT..ID_AT + 8].copy_from_slice(&id.to_be_bytes());
        let sum = self.sum(&token);
        token[SUM_AT..].copy_from_slice(sum.as_bytes());
        token
    }
}
