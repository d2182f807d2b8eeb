//! The secrets of requests: API tokens, the token of the run file, and sessions.

use std::fmt;

use array::TokenHash;
use subtle::ConstantTimeEq;

/// A generated secret. `Debug` does not show it.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Returns 64 hex digits from 32 random bytes.
    pub fn from_entropy(entropy: &[u8; 32]) -> Self {
        Self(hex(entropy))
    }

    /// Returns an API token: 128 of the random bits as 8-4-4-4-12 hex digits, the format that
    /// clients of REST 2.x expect.
    pub fn of_api(entropy: &[u8; 32]) -> Self {
        let digits = hex(entropy.get(..16).unwrap_or_default());
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
        Self(parts.join("-"))
    }

    /// Returns the secret, to be written only where its owner can read it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the hash that the pool stores.
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(self.0.as_bytes())
    }

    /// Compares the secret with `other` in constant time.
    pub(super) fn is(&self, other: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(other).into()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_their_formats_and_are_not_shown() {
        let entropy: [u8; 32] = std::array::from_fn(|n| n as u8);
        let api = Token::of_api(&entropy);
        assert_eq!(api.expose(), "00010203-0405-0607-0809-0a0b0c0d0e0f");
        assert_eq!(Token::from_entropy(&entropy).expose().len(), 64);
        assert!(api.is(b"00010203-0405-0607-0809-0a0b0c0d0e0f") && !api.is(b"00010203"));
        assert_eq!(format!("{api:?}"), "Token(…)");
    }
}
