//! The machine's wall clock, and whether its time can be written as a date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The first second of the year 10000, after 1970. HTTP, mail and certificates write four digits.
const YEAR_10000: Duration = Duration::from_secs(253_402_300_800);

/// Returns the wall-clock time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns whether the clock is between 1970 and 9999. At any other time, code below that writes a
/// date (HTTP, mail) or reads one (TLS) panics, and must not be called.
pub fn is_dated() -> bool {
    is_date(SystemTime::now())
}

fn is_date(time: SystemTime) -> bool {
    time.duration_since(UNIX_EPOCH).is_ok_and(|since| since < YEAR_10000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_from_1970_to_9999() {
        let second = Duration::from_secs(1);
        assert!(is_dated());
        assert!(is_date(UNIX_EPOCH) && !is_date(UNIX_EPOCH - second));
        assert!(is_date(UNIX_EPOCH + YEAR_10000 - second) && !is_date(UNIX_EPOCH + YEAR_10000));
    }
}
