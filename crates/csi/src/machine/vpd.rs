//! The identity of a device from its vital product data.

/// The designator type NAA (SPC-4 7.8.6.6).
const TYPE_NAA: u8 = 3;
/// The association with the logical unit (SPC-4 7.8.6.1).
const ASSOCIATION_UNIT: u8 = 0;

/// Returns the serial number in page 0x83: the last 96 bits of the 128-bit NAA designator, in upper
/// case.
pub fn serial_of_designators(page: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let mut rest = page.get(4..)?;
    rest = &rest[..length.min(rest.len())];
    while let [_, kind, _, length, after @ ..] = rest {
        let designator = after.get(..usize::from(*length))?;
        let is_unit = kind >> 4 & 0x3 == ASSOCIATION_UNIT;
        if is_unit && kind & 0xf == TYPE_NAA && designator.len() == 16 && designator[0] >> 4 == 6 {
            return Some(designator[4..].iter().map(|byte| format!("{byte:02X}")).collect());
        }
        rest = &after[designator.len()..];
    }
    None
}

/// Returns the serial number in page 0x80, in upper case.
pub fn unit_serial(page: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let text = std::str::from_utf8(page.get(4..4 + length)?).ok()?;
    Some(text.trim().to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a page with a T10 vendor designator, and an NAA one with this association.
    fn page(association: u8) -> Vec<u8> {
        let mut page = vec![0, 0x83, 0, 32, 0x02, 0x01, 0, 8];
        page.extend(b"HOLDFAST");
        page.extend([0x01, association << 4 | 3, 0, 16, 0x62, 0x4a, 0x93, 0x70]);
        page.extend([0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 0, 0, 0x2a]);
        page
    }

    #[test]
    fn the_serial_is_the_end_of_the_units_naa_designator() {
        let found = serial_of_designators(&page(0));
        assert_eq!(found.as_deref(), Some("0123456789ABCDEF0000002A"));
        // A port's designator does not identify the volume.
        assert_eq!(serial_of_designators(&page(1)), None);
        for end in 0..page(0).len() {
            assert_eq!(serial_of_designators(&page(0)[..end]), None, "{end}");
        }
        assert_eq!(unit_serial(b"\0\x80\0\x04ab12").as_deref(), Some("AB12"));
        assert_eq!(unit_serial(b"\0\x80\0\x05ab12"), None);
    }
}
