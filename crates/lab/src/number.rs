//! Formatting numbers with their units.

/// Shown if there is no value.
pub const NONE: &str = "–";

/// Formats a number with three significant digits and thousands separators: "0.0123", "12.3",
/// "12,345".
pub fn three(value: f64) -> String {
    if !value.is_finite() {
        return String::from(NONE);
    }
    let decimals = 2usize.saturating_add_signed(-exponent(value) as isize).min(12);
    let decimals = if exponent(value) > 2 || value == 0.0 { 0 } else { decimals };
    group(&format!("{value:.decimals$}"))
}

/// Formats seconds: "0.0123 s", "12.3 s".
pub fn seconds(value: f64) -> String {
    with_unit(&three(value), "s")
}

/// Formats bytes with a decimal prefix, as in the papers: MB is 10^6.
pub fn bytes(value: f64) -> String {
    const PREFIXES: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    if !value.is_finite() {
        return String::from(NONE);
    }
    let step = (exponent(value) / 3).clamp(0, PREFIXES.len() as i32 - 1);
    if step == 0 {
        return with_unit(&whole(value), "B");
    }
    with_unit(&three(value / 1000f64.powi(step)), PREFIXES[step as usize])
}

/// Formats a count: "65,536".
pub fn count(value: u64) -> String {
    group(&value.to_string())
}

/// Formats a whole number, which may be negative: "-1,000".
pub fn whole(value: f64) -> String {
    group(&format!("{value:.0}"))
}

/// Formats a number with a unit: seconds and bytes as above.
pub fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "B" => bytes(value),
        unit => with_unit(&three(value), unit),
    }
}

fn with_unit(number: &str, unit: &str) -> String {
    if unit.is_empty() || number == NONE {
        return number.to_owned();
    }
    // They belong together: a no-break space.
    format!("{number}\u{a0}{unit}")
}

/// Returns the power of ten of the first digit, if the number has three.
fn exponent(value: f64) -> i32 {
    let text = format!("{value:.2e}");
    text.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0)
}

/// Adds a comma before every three digits of the integer part.
fn group(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, rest) = number.find('.').map_or((number, ""), |at| number.split_at(at));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, quantity, seconds, three};

    #[test]
    fn three_digits_are_kept() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_123_4, "0.000123"),
            (0.012_34, "0.0123"),
            (0.999_9, "1.00"),
            (1.0, "1.00"),
            (9.999, "10.0"),
            (99.95, "100"),
            (123.4, "123"),
            (12_345.6, "12,346"),
            (1_234_567.0, "1,234,567"),
            (-1.5, "-1.50"),
            (-123_456.0, "-123,456"),
            (1e-30, "0.000000000000"),
        ] {
            assert_eq!(three(value), text, "{value}");
        }
        assert_eq!(three(f64::NAN), "–");
        assert_eq!(three(f64::INFINITY), "–");
    }

    #[test]
    fn bytes_have_decimal_prefixes() {
        for (value, text) in [
            (0.0, "0\u{a0}B"),
            (512.0, "512\u{a0}B"),
            (999.0, "999\u{a0}B"),
            (1_000.0, "1.00\u{a0}kB"),
            (999_999.0, "1.00\u{a0}MB"),
            (1_048_576.0, "1.05\u{a0}MB"),
            (100e9, "100\u{a0}GB"),
            (12e18, "12,000\u{a0}PB"),
            (-2_000_000.0, "-2.00\u{a0}MB"),
        ] {
            assert_eq!(bytes(value), text, "{value}");
        }
        assert_eq!(bytes(f64::NAN), "–");
    }

    #[test]
    fn units_follow_their_numbers() {
        assert_eq!(seconds(12.34), "12.3\u{a0}s");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
        assert_eq!(quantity(1e6, "B"), "1.00\u{a0}MB");
        assert_eq!(quantity(1500.0, "IOPS"), "1,500\u{a0}IOPS");
        assert_eq!(quantity(2.0, ""), "2.00");
        assert_eq!(quantity(f64::NAN, "ms"), "–");
    }
}
