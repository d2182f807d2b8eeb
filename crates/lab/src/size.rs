//! Parsing sizes.

/// Parses bytes as `4k`, `1M`, `2G`, `64T` (powers of 1024, upper or lower case, an `iB` or `B` may
/// follow) or a plain number.
pub fn parse(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let bare = lower.trim_end_matches('b').trim_end_matches('i');
    let (digits, shift) = match bare.as_bytes().last() {
        Some(b'k') => (&bare[..bare.len() - 1], 10),
        Some(b'm') => (&bare[..bare.len() - 1], 20),
        Some(b'g') => (&bare[..bare.len() - 1], 30),
        Some(b't') => (&bare[..bare.len() - 1], 40),
        _ => (bare, 0),
    };
    let wrong = || format!("{text:?} is not a size; use 4k, 16M, 2G or a number of bytes");
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse("4k"), Ok(4096));
        assert_eq!(parse("240M"), Ok(240 << 20));
        assert_eq!(parse("2GiB"), Ok(2 << 30));
        assert_eq!(parse("512"), Ok(512));
        assert!(parse("").is_err());
        assert!(parse("M").is_err());
        assert!(parse("99999999999T").is_err());
    }
}
