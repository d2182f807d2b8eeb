//! Text of keys and values (RFC 7143, 6.1).

use crate::violation::Violation;

/// Pairs in the order received.
pub(crate) type Pairs = Vec<(String, String)>;

/// Appends a pair.
pub(crate) fn push(out: &mut Vec<u8>, key: &str, value: &str) {
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// Parses a complete text.
pub(crate) fn parse(bytes: &[u8]) -> Result<Pairs, Violation> {
    let text = std::str::from_utf8(bytes).map_err(|_| Violation::Text)?;
    let Some(text) = text.strip_suffix('\0') else {
        return if text.is_empty() { Ok(Vec::new()) } else { Err(Violation::Text) };
    };
    text.split('\0')
        .map(|pair| match pair.split_once('=') {
            Some((key, value)) if !key.is_empty() && key.len() <= 63 => {
                Ok((key.to_owned(), value.to_owned()))
            }
            _ => Err(Violation::Text),
        })
        .collect()
}

/// Parses a number: decimal, or hexadecimal with 0x.
pub(crate) fn number(value: &str) -> Option<u32> {
    let (digits, radix) = match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (value, 10),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(digits, radix).ok()).flatten()
}
