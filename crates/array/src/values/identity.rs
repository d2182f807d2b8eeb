//! The names that volumes have on the wire: serial numbers and NAA designators.
//!
//! ```text
//! serial   24 upper-case hex digits = 56 bits of the pool's id, 40 bits of the volume's id
//! NAA      6 | company identifier (24 bits) | 0 | serial (96 bits)          = 16 bytes
//! ```
//!
//! A volume's id is never reused in a pool, and 56 random bits distinguish pools, so serials don't
//! repeat. The company identifier is stored with a new volume: changing the setting affects only
//! the names of later volumes.

use std::fmt;

use block::VolumeId;

use crate::error::Error;

/// An IEEE company identifier (OUI), 24 bits: the organisation that makes NAA names globally unique
/// (SPC-4 7.8.6.6.5, NAA IEEE Registered Extended).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompanyId(u32);

/// The first volume id that no longer fits a serial: a trillion volumes.
const VOLUME_ID_END: u64 = 1 << 40;

impl CompanyId {
    /// The default, 02-48-46. Its first byte has the "local" bit set, so it is in no registry and
    /// identifies no company. It differs from every registered one, but another vendor may have
    /// chosen the same. A vendor that must exclude that registers an identifier with the IEEE and
    /// configures it.
    pub const LOCAL_DEFAULT: Self = Self(0x02_48_46);

    /// Returns the identifier with a number.
    ///
    /// # Errors
    /// `invalid_company_id` if it has more than 24 bits.
    pub fn new(number: u32) -> Result<Self, Error> {
        if number >> 24 == 0 {
            return Ok(Self(number));
        }
        let text = format!("The company identifier {number:#x} has more than 24 bits.");
        Err(Error::invalid("invalid_company_id", text))
    }

    /// Parses six hex digits, as `024846`, `02-48-46` or `02:48:46`.
    ///
    /// # Errors
    /// `invalid_company_id`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = || {
            let shown: String = text.chars().take(20).collect();
            let text = format!(
                "The company identifier {shown:?} must be six hex digits, such as 02-48-46."
            );
            Error::invalid("invalid_company_id", text)
        };
        let digits: String = text.chars().filter(|c| !matches!(c, '-' | ':')).collect();
        if digits.len() != 6 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(refuse());
        }
        u32::from_str_radix(&digits, 16).map_err(|_| refuse()).and_then(Self::new)
    }

    /// Returns the number.
    pub fn get(self) -> u32 {
        self.0
    }

    /// Returns whether it is unregistered: the "local" bit of its first byte is set.
    pub fn is_local(self) -> bool {
        self.0 & 0x02_00_00 != 0
    }
}

impl Default for CompanyId {
    fn default() -> Self {
        Self::LOCAL_DEFAULT
    }
}

impl fmt::Display for CompanyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [_, a, b, c] = self.0.to_be_bytes();
        write!(f, "{a:02x}-{b:02x}-{c:02x}")
    }
}

/// The 96 bits that identify a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Serial([u8; 12]);

impl Serial {
    /// Returns the serial of a volume; `None` if the pool has had more volumes than there are
    /// serials.
    pub(crate) fn new(pool_id: &[u8; 16], volume: VolumeId) -> Option<Self> {
        if volume.0 >= VOLUME_ID_END {
            return None;
        }
        let mut bytes = [0; 12];
        let (pool_part, volume_part) = bytes.split_at_mut(7);
        // Folds all 16 bytes, whichever of them are random.
        let (low, high) = pool_id.split_at(8);
        for (byte, (a, b)) in pool_part.iter_mut().zip(low.iter().zip(high)) {
            *byte = a ^ b;
        }
        let [_, _, _, id @ ..] = volume.0.to_be_bytes();
        volume_part.copy_from_slice(&id);
        Some(Self(bytes))
    }

    /// Returns the NAA type 6 designator (SPC-4 table 605).
    pub(crate) fn naa(self, company: CompanyId) -> [u8; 16] {
        let head = (0x6000_0000 | (company.0 << 4)).to_be_bytes();
        let mut naa = [0; 16];
        naa[..4].copy_from_slice(&head);
        naa[4..].copy_from_slice(&self.0);
        naa
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 24];
        f.write_str(hex(&self.0, b"0123456789ABCDEF", &mut digits))
    }
}

/// Returns a designator as hosts show it: `naa.6…`.
pub fn naa_text(naa: &[u8; 16]) -> String {
    let mut digits = [0; 32];
    format!("naa.{}", hex(naa, b"0123456789abcdef", &mut digits))
}

/// Converts bytes to hex digits, without formatting machinery: lists contain many thousands of
/// names of volumes.
fn hex<'a>(bytes: &[u8], alphabet: &[u8; 16], digits: &'a mut [u8]) -> &'a str {
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        pair[0] = alphabet[usize::from(byte >> 4)];
        pair[1] = alphabet[usize::from(byte & 0xf)];
    }
    // All digits are ASCII.
    std::str::from_utf8(digits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_designator_is_six_company_zero_serial() {
        let pool = [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
        let serial = Serial::new(&pool, VolumeId(0x1f)).unwrap();
        assert_eq!(serial.to_string(), "01020304050607000000001F");
        let company = CompanyId::parse("24-A9-37").unwrap();
        let naa = naa_text(&serial.naa(company));
        assert_eq!(naa, "naa.624a937001020304050607000000001f");
        assert!(!company.is_local() && CompanyId::default().is_local());
    }

    #[test]
    fn serials_are_never_repeated() {
        assert!(Serial::new(&[0; 16], VolumeId(VOLUME_ID_END)).is_none());
        let last = Serial::new(&[0; 16], VolumeId(VOLUME_ID_END - 1)).unwrap();
        assert_ne!(Some(last), Serial::new(&[0; 16], VolumeId(VOLUME_ID_END - 2)));
    }

    #[test]
    fn company_identifiers_are_six_digits() {
        assert_eq!(CompanyId::parse("02:48:46").unwrap(), CompanyId::LOCAL_DEFAULT);
        assert_eq!(CompanyId::LOCAL_DEFAULT.to_string(), "02-48-46");
        for bad in ["", "02484", "0248466", "+24846", "0x4846", "gg-hh-ii"] {
            assert_eq!(CompanyId::parse(bad).unwrap_err().code(), "invalid_company_id", "{bad}");
        }
        assert!(CompanyId::new(1 << 24).is_err());
    }
}
