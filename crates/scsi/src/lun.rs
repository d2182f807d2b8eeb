//! Logical unit numbers (SAM-5, 4.7).

/// The meaning of a logical unit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lun {
    /// A unit that may have a volume: 0..=16383.
    Unit(u16),
    /// The REPORT LUNS well-known logical unit.
    ReportLuns,
    /// A number that is not supported.
    Unknown,
}

/// The REPORT LUNS well-known logical unit number.
pub(crate) const REPORT_LUNS: [u8; 8] = [0xc1, 0x01, 0, 0, 0, 0, 0, 0];

/// Decodes a logical unit number: one level, peripheral or flat addressing.
#[inline]
pub(crate) fn decode(lun: [u8; 8]) -> Lun {
    if lun == REPORT_LUNS {
        return Lun::ReportLuns;
    }
    if lun[2..] != [0; 6] {
        return Lun::Unknown;
    }
    match lun[0] {
        0 => Lun::Unit(lun[1].into()),
        0x40..=0x7f => Lun::Unit(u16::from_be_bytes([lun[0] & 0x3f, lun[1]])),
        _ => Lun::Unknown,
    }
}

/// Encodes a logical unit number: peripheral addressing below 256, flat above.
pub(crate) fn encode(lun: u16) -> [u8; 8] {
    let [high, low] = lun.to_be_bytes();
    let first = if high == 0 { 0 } else { 0x40 | high };
    [first, low, 0, 0, 0, 0, 0, 0]
}
