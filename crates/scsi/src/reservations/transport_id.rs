//! TransportIDs: names of iSCSI initiator ports in parameter data (SPC-4, 7.6.4.6).
//!
//! ```text
//! byte  0     FORMAT CODE in bits 7 and 6, PROTOCOL IDENTIFIER (5h) in bits 3 to 0
//! byte  2..4  ADDITIONAL LENGTH: at least 20, a multiple of 4
//! byte  4..   format 00b: the iSCSI name, ended by a null, padded with nulls
//!             format 01b: the iSCSI name, ",i,0x", the ISID in hexadecimal, a null, nulls
//! ```

use target::HostPort;

use crate::bytes::{be_u8, be_u16};
use crate::nexus::{InitiatorPort, isid_of};

const HEADER_BYTES: usize = 4;
const ADDITIONAL_BYTES_MIN: usize = 20;
const PROTOCOL_ISCSI: u8 = 5;
const SEPARATOR: &[u8] = b",i,0x";
/// The longest iSCSI name (RFC 7143, 4.2.7.1).
const NAME_BYTES_MAX: usize = 223;

/// The longest valid TransportID, without unnecessary padding: the longest name, the separator, 12
/// digits and a null, in whole words.
pub(crate) const BYTES_MAX: usize =
    HEADER_BYTES + (NAME_BYTES_MAX + SEPARATOR.len() + 12 + 1).next_multiple_of(4);

/// The port or device that a TransportID identifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TransportId {
    /// Format 00b: an initiator device, that is, all of its ports.
    Device(String),
    /// Format 01b: one initiator port.
    Port(InitiatorPort),
}

/// Parses the TransportID at the front of a list, and returns its length in bytes; `None` if the
/// list is too short for it, or if it is not an iSCSI TransportID.
pub(crate) fn read(list: &[u8]) -> Option<(TransportId, usize)> {
    let additional = usize::from(be_u16(list, 2));
    let fits = additional >= ADDITIONAL_BYTES_MIN && additional.is_multiple_of(4);
    if !fits || be_u8(list, 0) & 0x0f != PROTOCOL_ISCSI {
        return None;
    }
    let body = list.get(HEADER_BYTES..HEADER_BYTES + additional)?;
    // The first null ends it, regardless of the length field. There must be one.
    let end = body.iter().position(|byte| *byte == 0)?;
    let text = &body[..end];
    let id = match be_u8(list, 0) >> 6 {
        0b00 => TransportId::Device(name(text)?),
        0b01 => {
            let at = text.windows(SEPARATOR.len()).position(|part| part == SEPARATOR)?;
            let isid = isid(&text[at + SEPARATOR.len()..])?;
            TransportId::Port(InitiatorPort { name: name(&text[..at])?, isid })
        }
        _ => return None,
    };
    Some((id, HEADER_BYTES + additional))
}

/// Parses an iSCSI name to lower case, in which names are compared (RFC 7143, 4.2.7.2): letters,
/// digits, `-`, `.` and `:`, and non-ASCII characters.
fn name(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.to_ascii_lowercase();
    let is_allowed =
        |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
    let is_name = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_allowed);
    is_name.then_some(text)
}

/// Parses up to twelve hexadecimal digits; leading zeros may be omitted.
fn isid(digits: &[u8]) -> Option<[u8; 6]> {
    if !(1..=12).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let number = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    number.to_be_bytes()[2..].try_into().ok()
}

/// Returns the TransportID of an initiator port, in format 01b.
pub(crate) fn of_port(host: &HostPort) -> Vec<u8> {
    let mut name = host.name.clone().into_bytes();
    name.extend(SEPARATOR);
    for byte in isid_of(host) {
        name.extend(format!("{byte:02x}").bytes());
    }
    name.push(0);
    name.resize(name.len().next_multiple_of(4).max(ADDITIONAL_BYTES_MIN), 0);
    let [high, low] = (name.len() as u16).to_be_bytes();
    let mut out = vec![0b01 << 6 | PROTOCOL_ISCSI, 0, high, low];
    out.extend(name);
    out
}
