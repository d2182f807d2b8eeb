//! The schedule of a group's snapshots. The time is an argument, so the same times yield the same
//! snapshots.
//!
//! A schedule has *slots*: one every `frequency_ms` from the time at which it was switched on, or,
//! with a time of day, from the first such time after that. The last slot that has passed is due.
//! If several were missed while the array was off or the pool was full, one snapshot is taken, and
//! the slots stay where they are.

use std::ops::RangeInclusive;

use crate::error::Error;

/// A day, in milliseconds.
pub(crate) const DAY_MS: u64 = 86_400_000;
/// The range of intervals between snapshots, in milliseconds: 5 minutes to 400 days.
pub const FREQUENCY_MS: RangeInclusive<u64> = 300_000..=400 * DAY_MS;

/// When snapshots of a group are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSchedule {
    /// Whether the schedule is on.
    pub enabled: bool,
    /// The interval, in milliseconds.
    pub frequency_ms: u64,
    /// The time of day (UTC), in milliseconds from midnight; only if the interval is of whole days.
    pub at_ms: Option<u64>,
}

impl Default for SnapshotSchedule {
    /// Returns the default: off, with an interval of an hour.
    fn default() -> Self {
        Self { enabled: false, frequency_ms: 3_600_000, at_ms: None }
    }
}

impl SnapshotSchedule {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::invalid("invalid_schedule", text));
        if !FREQUENCY_MS.contains(&self.frequency_ms) {
            return refuse(format!(
                "Snapshots can be taken every 5 minutes to every 400 days; not every {} ms.",
                self.frequency_ms
            ));
        }
        match self.at_ms {
            Some(at) if at >= DAY_MS => {
                refuse(format!("A time of day is less than {DAY_MS} ms from midnight; not {at}."))
            }
            Some(_) if !self.frequency_ms.is_multiple_of(DAY_MS) => refuse(format!(
                "A time of day (`at`) needs a frequency of whole days, multiples of {DAY_MS} \
                     ms; for another, send `at`: null."
            )),
            _ => Ok(()),
        }
    }

    /// Returns the first slot of a schedule that is switched on now.
    pub(crate) fn first(&self, now_ms: u64) -> u64 {
        let Some(at) = self.at_ms else { return now_ms };
        let today = now_ms / DAY_MS * DAY_MS + at;
        if today >= now_ms { today } else { today.saturating_add(DAY_MS) }
    }

    /// Returns the slot after the current time if the slot `next_ms` has passed, and `None`
    /// otherwise. A slot too far in the future was computed before the clock was set back: then
    /// slots start again. Small corrections of the clock are common, and are ignored.
    pub(crate) fn due(&self, next_ms: u64, now_ms: u64) -> Option<u64> {
        let most = self.frequency_ms + FREQUENCY_MS.start();
        let is_lost = next_ms > now_ms.saturating_add(most);
        let next_ms = if is_lost { self.first(now_ms) } else { next_ms };
        if now_ms < next_ms {
            return None;
        }
        let missed = (now_ms - next_ms) / self.frequency_ms;
        Some(next_ms.saturating_add(missed.saturating_add(1).saturating_mul(self.frequency_ms)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    fn every(frequency_ms: u64, at_ms: Option<u64>) -> SnapshotSchedule {
        SnapshotSchedule { enabled: true, frequency_ms, at_ms }
    }

    #[test]
    fn schedules_are_checked() {
        for good in [every(300_000, None), every(DAY_MS, Some(0)), every(400 * DAY_MS, Some(1))] {
            assert!(good.check().is_ok(), "{good:?}");
        }
        let wrong = [
            every(299_999, None),
            every(400 * DAY_MS + 1, None),
            every(HOUR_MS, Some(0)),
            every(DAY_MS, Some(DAY_MS)),
        ];
        for wrong in wrong {
            assert_eq!(wrong.check().unwrap_err().code(), "invalid_schedule", "{wrong:?}");
        }
    }

    #[test]
    fn slots_stay_where_they_are_and_missed_ones_are_taken_once() {
        let daily = every(DAY_MS, Some(2 * HOUR_MS));
        assert_eq!(daily.first(HOUR_MS), 2 * HOUR_MS);
        assert_eq!(daily.first(2 * HOUR_MS), 2 * HOUR_MS);
        assert_eq!(daily.first(2 * HOUR_MS + 1), DAY_MS + 2 * HOUR_MS);
        assert_eq!(daily.due(2 * HOUR_MS, 2 * HOUR_MS - 1), None);
        assert_eq!(daily.due(2 * HOUR_MS, 2 * HOUR_MS), Some(DAY_MS + 2 * HOUR_MS));
        assert_eq!(daily.due(2 * HOUR_MS, 9 * DAY_MS), Some(9 * DAY_MS + 2 * HOUR_MS));
        // The clock is set back by a year: the schedule does not wait for a year.
        let year = 365 * DAY_MS;
        assert_eq!(daily.due(year, 3 * HOUR_MS), None);
        assert_eq!(every(HOUR_MS, None).due(year, 7), Some(HOUR_MS + 7));
    }

    proptest! {
        /// Compares with slots that are counted one by one.
        #[test]
        fn the_next_slot_is_the_first_in_the_future(
            frequency in 1..100u64,
            next in 0..1_000u64,
            passed in 0..10_000u64,
        ) {
            let schedule = every(frequency * 300_000, None);
            let (next, now) = (next * 1_000, next * 1_000 + passed * 60_000);
            let slots = (0..).map(|n| next + n * schedule.frequency_ms);
            let expected = slots.skip(1).find(|slot| *slot > now).unwrap();
            prop_assert_eq!(schedule.due(next, now), Some(expected));
        }
    }
}
