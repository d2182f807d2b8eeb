//! Numbers of any width in LEB128: seven bits a byte, the lowest first.

/// The maximum bytes of a number of 64 bits, and of 128.
pub(crate) const NUMBER_BYTES_MAX: usize = 10;
pub(crate) const LONG_BYTES_MAX: usize = 19;

/// Appends a number.
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a byte off the front of `left`; `None` at the end.
pub(crate) fn byte(left: &mut &[u8]) -> Option<u8> {
    let (first, rest) = left.split_first()?;
    *left = rest;
    Some(*first)
}

/// Takes a number off the front of `left`; `None` if there is none.
pub(crate) fn long(left: &mut &[u8]) -> Option<u128> {
    let mut number = 0;
    for place in 0..LONG_BYTES_MAX as u32 {
        let byte = byte(left)?;
        let part = u128::from(byte & 0x7f);
        // A number that does not fit was not written by this code.
        number |= part.checked_shl(7 * place).filter(|it| it >> (7 * place) == part)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Takes a number of 64 bits off the front of `left`; `None` if there is none.
pub(crate) fn number(left: &mut &[u8]) -> Option<u64> {
    u64::try_from(long(left)?).ok()
}
