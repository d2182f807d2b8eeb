//! Fingerprints, by which certificates are pinned.

use std::fmt;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Computes the fingerprint of a certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(Sha256::digest(certificate).into())
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || "a fingerprint is 64 hex digits, with or without colons".to_owned();
        let digits: Vec<u32> = text
            .chars()
            .filter(|c| *c != ':')
            .map(|c| c.to_digit(16).ok_or_else(refuse))
            .collect::<Result<_, _>>()?;
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return Err(refuse());
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8);
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_64_digits() {
        let text = "0123456789abcdef".repeat(4);
        let one: Fingerprint = text.parse().unwrap();
        assert_eq!((one.to_string(), one.0[0], one.0[31]), (text.clone(), 0x01, 0xef));
        let upper: Vec<String> = one.0.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(upper.join(":").parse(), Ok(one));
        for bad in ["", "01", &text[1..], &format!("{}g0", &text[2..])] {
            assert!(bad.parse::<Fingerprint>().is_err(), "{bad}");
        }
    }
}
