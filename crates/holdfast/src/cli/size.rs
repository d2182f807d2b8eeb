//! Sizes as people type and read them: binary multiples, whatever the spelling.

const UNITS: [(char, u32); 6] = [('B', 0), ('K', 10), ('M', 20), ('G', 30), ('T', 40), ('P', 50)];

/// Parses `10G`, `64T`, `1.5TiB`, `512 M` or `1048576` as bytes. A K is 1024.
///
/// # Errors
/// One line that shows the form of a size.
pub fn parse(text: &str) -> Result<u64, String> {
    let refuse =
        |why: &str| Err(format!("{text:?} {why}; a size looks like 512M, 10G, 1.5T or 1073741824"));
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let Some(shift) = unit_shift(unit.trim()) else {
        return refuse("is not a size");
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 9 {
        return refuse("is not a size");
    }
    let Ok(digits) = format!("{whole}{fraction}").parse::<u128>() else {
        return refuse("is not a size");
    };
    let scale = 10_u128.pow(fraction.len() as u32);
    let Some(scaled) = digits.checked_mul(1 << shift) else {
        return refuse("is too big");
    };
    if scaled % scale != 0 {
        return refuse("is not a whole number of bytes");
    }
    u64::try_from(scaled / scale).or_else(|_| refuse("is too big"))
}

/// Returns the shift of `G`, `g`, `GB` or `GiB`; 0 for no unit.
fn unit_shift(unit: &str) -> Option<u32> {
    let upper = unit.to_ascii_uppercase();
    let mut letters = upper.chars();
    let Some(first) = letters.next() else { return Some(0) };
    let (_, shift) = *UNITS.iter().find(|(letter, _)| *letter == first)?;
    match (letters.as_str(), shift) {
        ("", _) => Some(shift),
        ("B" | "IB", 10..) => Some(shift),
        _ => None,
    }
}

/// Returns `10 GiB`, `1.5 TiB`, `512 B`: exact if that is short, otherwise with two decimals.
pub fn human(bytes: u64) -> String {
    let (letter, shift) =
        UNITS.into_iter().rev().find(|(_, shift)| bytes >> shift > 0).unwrap_or(('B', 0));
    if shift == 0 {
        return format!("{bytes} B");
    }
    let value = bytes as f64 / (1_u64 << shift) as f64;
    let mut text = format!("{value:.2}");
    while text.ends_with('0') {
        text.pop();
    }
    format!("{} {letter}iB", text.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_in_any_spelling() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("1k", 1024),
            ("512M", 512 << 20),
            ("10G", 10 << 30),
            ("10GB", 10 << 30),
            ("10 GiB", 10 << 30),
            (" 64T ", 64 << 40),
            ("1.5T", 3 << 39),
            ("0.5K", 512),
            ("16383P", 16_383 << 50),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn an_invalid_size_is_refused_in_one_line() {
        for text in [
            "",
            "G",
            "-1",
            "1.",
            ".5G",
            "1.2.3G",
            "10X",
            "10Gi",
            "10iB",
            "BB",
            "1e9",
            "0.3K",
            "16384P",
            "18446744073709551616",
            "1.0000000001T",
            "10 G B",
            "１",
            "99999999999999999999999999999999999999999P",
        ] {
            let error = parse(text).unwrap_err();
            assert!(!error.contains('\n') && error.contains("10G"), "{error}");
        }
    }

    #[test]
    fn sizes_are_shown_in_suitable_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (10 << 30, "10 GiB"),
            (3 << 39, "1.5 TiB"),
            (100 << 20, "100 MiB"),
            ((1 << 30) + (1 << 20), "1 GiB"),
            ((5 << 30) / 4, "1.25 GiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }
}
