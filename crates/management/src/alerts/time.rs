//! Problems of the clock, according to time servers.

use std::time::Duration;

use array::{AlertCode, Seen, Severity};
use network::ClockState;

use super::judge::holds;

/// The subject of alerts of the clock.
const CLOCK: &str = "clock";
/// The offset of the clock from which it is a warning.
const OFFSET_MAX_S: f64 = 1.0;
/// How long all servers may be silent.
const SILENT_MAX: Duration = Duration::from_secs(600);

/// Returns the condition. As long as no server responds, an earlier offset persists.
pub(super) fn judge(clock: &ClockState) -> Option<Seen> {
    if !clock.is_asked {
        return None;
    }
    if let Some(offset_s) = clock.offset_s {
        let way = if offset_s < 0.0 { "ahead" } else { "behind" };
        let actual = format!("it is {:.3} s {way}", offset_s.abs());
        let expected = "less than 1 s";
        let is_off = offset_s.abs() > OFFSET_MAX_S;
        return is_off
            .then(|| holds(AlertCode::ClockOff, CLOCK, Severity::Warning, actual, expected));
    }
    let silent = clock.silent.unwrap_or_default();
    if silent < SILENT_MAX {
        return Some(Seen::Unsure(AlertCode::ClockOff, CLOCK.into()));
    }
    let actual = format!("none for {} minutes", silent.as_secs() / 60);
    let code = AlertCode::TimeServersSilent;
    Some(holds(code, CLOCK, Severity::Warning, actual, "at least one answers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(clock: ClockState) -> Option<(AlertCode, String)> {
        match judge(&clock) {
            Some(Seen::Holds(held)) => Some((held.code, held.actual)),
            _ => None,
        }
    }

    #[test]
    fn a_wrong_clock_and_silent_time_servers_are_reported() {
        let off = |offset_s| ClockState { is_asked: true, offset_s: Some(offset_s), silent: None };
        assert_eq!(reported(ClockState::default()), None);
        assert_eq!((reported(off(0.99)), reported(off(-1.0))), (None, None));
        let expected = Some((AlertCode::ClockOff, "it is 90.500 s behind".to_owned()));
        assert_eq!(reported(off(90.5)), expected);
        assert_eq!(reported(off(-2.0)).unwrap().1, "it is 2.000 s ahead");
        let silent = |seconds| ClockState {
            is_asked: true,
            offset_s: None,
            silent: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(reported(silent(599)), None);
        assert!(matches!(judge(&silent(599)), Some(Seen::Unsure(AlertCode::ClockOff, _))));
        let expected = Some((AlertCode::TimeServersSilent, "none for 10 minutes".to_owned()));
        assert_eq!(reported(silent(600)), expected);
    }
}
