//! Problems that devices report of their own health.

use std::collections::BTreeMap;

use api::DeviceHealth;
use array::{AlertCode, Seen, Severity};

use super::judge::{DAY_MS, holds};

/// The percentage of rated endurance from which a device is worn.
const WEAR_WARNING_PERCENT: u64 = 90;

/// The recorded state of each device.
#[derive(Default)]
pub(super) struct Health(BTreeMap<String, Errors>);

/// The errors of a device's medium.
struct Errors {
    count: u64,
    /// When the number last increased, and by how much.
    grew: Option<(u64, u64)>,
}

impl Health {
    /// Returns all conditions of these devices, at a time in milliseconds since 1970.
    pub(super) fn judge(&mut self, now_ms: u64, devices: &[(String, DeviceHealth)]) -> Vec<Seen> {
        self.0.retain(|name, _| devices.iter().any(|(device, _)| device == name));
        devices.iter().filter_map(|(name, health)| self.one(now_ms, name, health)).collect()
    }

    fn one(&mut self, now_ms: u64, name: &str, health: &DeviceHealth) -> Option<Seen> {
        let mut reported = Vec::new();
        if health.passed == Some(false) {
            reported.push("it reports that it is failing".to_owned());
        }
        if let Some(wear) = health.wear_percent.filter(|wear| *wear >= WEAR_WARNING_PERCENT) {
            reported.push(format!("{wear}% of its endurance is used"));
        }
        if let Some((errors, more)) = self.errors(now_ms, name, health.media_errors) {
            reported.push(format!("it has {errors} media errors, {more} more than before"));
        }
        let is_failing = health.passed == Some(false);
        let severity = if is_failing { Severity::Critical } else { Severity::Warning };
        let expected = "it reports that it is healthy";
        let actual = reported.join("; ");
        (!reported.is_empty())
            .then(|| holds(AlertCode::DeviceHealth, name, severity, actual, expected))
    }

    /// Returns the number of errors, and the number of new ones, if there were new ones within a
    /// day.
    fn errors(&mut self, now_ms: u64, name: &str, reported: Option<u64>) -> Option<(u64, u64)> {
        let count = reported?;
        let known = self.0.entry(name.to_owned()).or_insert(Errors { count, grew: None });
        if count > known.count {
            known.grew = Some((now_ms, count - known.count));
        }
        known.count = count;
        let (_, more) = known.grew.filter(|(at_ms, _)| now_ms.saturating_sub(*at_ms) < DAY_MS)?;
        Some((count, more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(health: &mut Health, now_ms: u64, of: DeviceHealth) -> Option<(Severity, String)> {
        let seen = health.judge(now_ms, &[("0 (/dev/sda)".to_owned(), of)]);
        seen.into_iter().next().map(|seen| match seen {
            Seen::Holds(held) => {
                assert_eq!(
                    (held.code, &*held.component),
                    (AlertCode::DeviceHealth, "0 (/dev/sda)")
                );
                (held.severity, held.actual)
            }
            Seen::Unsure(..) => panic!("it is always known"),
        })
    }

    fn sound() -> DeviceHealth {
        let (passed, wear_percent, media_errors) = (Some(true), Some(89), Some(5));
        DeviceHealth { passed, wear_percent, media_errors, ..DeviceHealth::default() }
    }

    #[test]
    fn a_device_that_fails_is_critical_and_a_worn_one_a_warning() {
        let mut health = Health::default();
        assert_eq!(reported(&mut health, 0, sound()), None);
        assert_eq!(reported(&mut health, 0, DeviceHealth::default()), None, "nothing is reported");
        let worn = DeviceHealth { wear_percent: Some(90), ..sound() };
        let actual = "90% of its endurance is used".to_owned();
        assert_eq!(reported(&mut health, 0, worn.clone()), Some((Severity::Warning, actual)));
        let failing = DeviceHealth { passed: Some(false), ..worn };
        let (severity, actual) = reported(&mut health, 0, failing).unwrap();
        assert_eq!(severity, Severity::Critical);
        assert!(actual.contains("it is failing; 90%"), "{actual}");
    }

    #[test]
    fn media_errors_are_reported_while_they_grow() {
        let mut health = Health::default();
        let errors = |media_errors| DeviceHealth { media_errors, ..sound() };
        assert_eq!(reported(&mut health, 0, errors(Some(5))), None, "they may be old");
        let more = "it has 7 media errors, 2 more than before".to_owned();
        assert_eq!(
            reported(&mut health, 10, errors(Some(7))),
            Some((Severity::Warning, more.clone()))
        );
        assert_eq!(reported(&mut health, DAY_MS, errors(Some(7))), Some((Severity::Warning, more)));
        assert_eq!(reported(&mut health, DAY_MS + 10, errors(Some(7))), None);
        assert_eq!(reported(&mut health, DAY_MS + 10, errors(None)), None);
        // A replacement device has its own count.
        assert_eq!(reported(&mut health, DAY_MS + 20, errors(Some(1))), None);
        assert!(reported(&mut health, DAY_MS + 30, errors(Some(2))).is_some());
        health.judge(DAY_MS + 40, &[]);
        assert_eq!(reported(&mut health, DAY_MS + 50, errors(Some(9))), None);
    }
}
