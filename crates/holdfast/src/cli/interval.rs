//! Durations, as they are typed and shown.

use std::time::Duration;

const UNITS: [(&str, u64); 4] = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)];

/// Parses `7d`, `12h`, `30m`, `45s`; returns `None` for `off`.
///
/// # Errors
/// One line that says what is allowed.
pub fn parse(text: &str) -> Result<Option<Duration>, String> {
    if text == "off" {
        return Ok(None);
    }
    let found = UNITS.iter().find_map(|(unit, seconds)| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(*seconds).filter(|seconds| *seconds > 0)
    });
    let refused =
        || format!("{text:?} is not a duration: it looks like \"7d\", \"12h\" or \"off\"");
    found.map(Duration::from_secs).map(Some).ok_or_else(refused)
}

/// Returns a number of seconds in the largest unit of which it is a multiple, in the form of
/// [`parse`].
pub fn text(seconds: u64) -> String {
    let whole = UNITS.iter().rev().find(|(_, unit)| seconds > 0 && seconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{seconds}s"), |(name, unit)| format!("{}{name}", seconds / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_one_unit() {
        assert_eq!(parse("7d"), Ok(Some(Duration::from_secs(604_800))));
        assert_eq!(parse("90m"), Ok(Some(Duration::from_secs(5400))));
        assert_eq!(parse("off"), Ok(None));
        for wrong in ["", "7", "d", "0s", "-1d", "1w", "1d2h", "999999999999999999d"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        for (seconds, shown) in [(0, "0s"), (90, "90s"), (5400, "90m"), (86_400, "1d")] {
            assert_eq!(text(seconds), shown);
        }
    }
}
