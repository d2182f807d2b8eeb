//! Fields of parameter lists. A missing field reads as zero, so no list can cause a panic; each
//! parser checks the lengths that its standard requires.

use block::DataOut;

use crate::sense::Sense;

/// Returns the bytes `at..at + N`, zero beyond the end of the list.
fn field<const N: usize>(list: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    for (index, byte) in out.iter_mut().enumerate() {
        *byte = list.get(at + index).copied().unwrap_or(0);
    }
    out
}

/// Reads a byte.
pub(crate) fn be_u8(list: &[u8], at: usize) -> u8 {
    list.get(at).copied().unwrap_or(0)
}

/// Reads a big-endian field of two bytes.
pub(crate) fn be_u16(list: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(field(list, at))
}

/// Reads a big-endian field of four bytes.
pub(crate) fn be_u32(list: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(field(list, at))
}

/// Reads a big-endian field of eight bytes.
pub(crate) fn be_u64(list: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(field(list, at))
}

/// Returns the parameter list of a command whose CDB gives its length. If fewer bytes arrived, the
/// command is refused, because a truncated list would mean something else.
pub(crate) fn parameter_list(data: &DataOut, length: usize) -> Result<Vec<u8>, Sense> {
    if data.len() < length {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let mut list = vec![0; length];
    data.read_at(0, &mut list);
    Ok(list)
}

/// Writes an ASCII text field of fixed length, truncated or padded with blanks (SPC-4, 4.3.1).
pub(crate) fn put_text(out: &mut [u8], text: &str) {
    let mut bytes = text.bytes().filter(|byte| (0x20..0x7f).contains(byte));
    for slot in out {
        *slot = bytes.next().unwrap_or(b' ');
    }
}
