//! Text: `key=value` pairs, each terminated by a zero byte (RFC 7143, 6.1), and binary values.

/// The longest key (RFC 7143, 6.1: 63 bytes).
const KEY_BYTES_MAX: usize = 63;
/// The longest value (RFC 7143, 6.1: 255 bytes, unless the key says otherwise; CHAP challenges
/// in hexadecimal are the longest).
const VALUE_BYTES_MAX: usize = 8192;

/// Returns the pairs of a text; `None` if it is malformed.
pub(crate) fn parse(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut pairs = Vec::new();
    for item in text.split('\0').filter(|item| !item.is_empty()) {
        let (key, value) = item.split_once('=')?;
        if key.is_empty() || key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return None;
        }
        pairs.push((key.to_owned(), value.to_owned()));
    }
    Some(pairs)
}

/// Appends a pair.
pub(crate) fn push(out: &mut Vec<u8>, key: &str, value: &str) {
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// Parses a number, decimal or hexadecimal.
pub(crate) fn number(value: &str) -> Option<u64> {
    match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
        Some(hex) if hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u64::from_str_radix(hex, 16).ok()
        }
        Some(_) => None,
        None if value.bytes().all(|byte| byte.is_ascii_digit()) => value.parse().ok(),
        None => None,
    }
}

/// Parses a binary value: `0x…` hexadecimal or `0b…` base64.
pub(crate) fn binary(value: &str) -> Option<Vec<u8>> {
    let (prefix, digits) = value.split_at_checked(2)?;
    match prefix {
        "0x" | "0X" => hexadecimal(digits.as_bytes()),
        "0b" | "0B" => base64(digits.as_bytes()),
        _ => None,
    }
}

/// Encodes a binary value in hexadecimal.
pub(crate) fn to_hexadecimal(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 + bytes.len() * 2);
    out.push_str("0x");
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    out
}

fn hexadecimal(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut out = Vec::with_capacity(digits.len().div_ceil(2));
    let (odd, even) = digits.split_at(digits.len() % 2);
    if let [first] = odd {
        out.push(digit(*first)?);
    }
    for pair in even.chunks_exact(2) {
        if let [high, low] = pair {
            out.push(digit(*high)? << 4 | digit(*low)?);
        }
    }
    Some(out)
}

fn base64(digits: &[u8]) -> Option<Vec<u8>> {
    let used = digits.len() - digits.iter().rev().take_while(|byte| **byte == b'=').count();
    if digits.len() - used > 2 || used % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(used / 4 * 3 + 2);
    let (mut bits, mut count) = (0u32, 0);
    for byte in digits.get(..used)? {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(digit)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_values_in_both_notations() {
        assert_eq!(binary("0x0aFF").as_deref(), Some(&[10, 255][..]));
        assert_eq!(binary("0xfff").as_deref(), Some(&[15, 255][..]));
        assert_eq!(binary("0bSGVsbG8=").as_deref(), Some(&b"Hello"[..]));
        assert_eq!(binary("0bSGVsbG8h").as_deref(), Some(&b"Hello!"[..]));
        for wrong in ["", "0", "12", "0xzz", "0bA", "0bA===", "0b*", "0x€"] {
            assert_eq!(binary(wrong), None, "{wrong}");
        }
        assert_eq!(binary(&to_hexadecimal(b"\x00\x7f")).as_deref(), Some(&b"\x00\x7f"[..]));
    }

    #[test]
    fn malformed_pairs_are_refused() {
        assert_eq!(parse(b"a=1\0b=\0\0").map(|pairs| pairs.len()), Some(2));
        for wrong in [&b"a\0"[..], b"=1\0", b"\xff=1\0", &[b'k'; 100]] {
            assert_eq!(parse(wrong), None);
        }
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(number("0x10"), Some(16));
        assert_eq!(number("512"), Some(512));
        for wrong in ["+1", "-1", "0x+1", "1k", "99999999999999999999"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }
}
