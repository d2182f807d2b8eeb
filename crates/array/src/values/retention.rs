//! The retention of a group's snapshots. It depends only on their times and the current time.
//!
//! All are kept for `all_for_s`. Of each day (UTC) that ended longer ago than that, `per_day` stay,
//! spread over the day, for another `days` days.

use std::collections::BTreeMap;

use super::schedule::DAY_MS;
use crate::error::Error;

/// The maximum time for which all snapshots are kept, in seconds: 400 days.
pub const ALL_FOR_S_MAX: u64 = 400 * 86_400;
/// The maximum number of snapshots kept for each day.
pub const PER_DAY_MAX: u32 = 1_440;
/// The maximum number of days for which these are kept.
pub const DAYS_MAX: u32 = 4_000;

/// For how long the snapshots of a group's schedule are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How long all of them are kept, in seconds.
    pub all_for_s: u64,
    /// The number of snapshots of each day that are kept after that.
    pub per_day: u32,
    /// The number of days for which these are kept.
    pub days: u32,
}

impl Default for Retention {
    /// Returns the default: all for a day, then four per day for a week.
    fn default() -> Self {
        Self { all_for_s: 86_400, per_day: 4, days: 7 }
    }
}

/// The snapshots to destroy, and when there may be more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LetGo {
    /// Indexes into the given list.
    pub(crate) places: Vec<usize>,
    /// The time at which there may be more; `None`: not before further snapshots are made.
    pub(crate) next_ms: Option<u64>,
}

impl Retention {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self { all_for_s, per_day, days } = *self;
        let is_right =
            (1..=ALL_FOR_S_MAX).contains(&all_for_s) && per_day <= PER_DAY_MAX && days <= DAYS_MAX;
        if is_right {
            return Ok(());
        }
        let text = format!(
            "All snapshots are kept for 1 to {ALL_FOR_S_MAX} seconds, then up to {PER_DAY_MAX} a \
             day for up to {DAYS_MAX} days."
        );
        Err(Error::invalid("invalid_retention", text))
    }

    fn all_for_ms(&self) -> u64 {
        self.all_for_s.saturating_mul(1_000)
    }

    /// Returns the time at which a snapshot is destroyed regardless of the others.
    fn end_ms(&self, made_ms: u64) -> u64 {
        let days = if self.per_day == 0 { 0 } else { u64::from(self.days) };
        made_ms.saturating_add(self.all_for_ms()).saturating_add(days * DAY_MS)
    }

    /// Returns the snapshots to destroy among those made at these times, in ascending order.
    pub(crate) fn let_go(&self, made_ms: &[u64], now_ms: u64) -> LetGo {
        let (mut found, mut days) = (LetGo::default(), BTreeMap::<u64, Vec<usize>>::new());
        let mut later = |when: u64| {
            found.next_ms = Some(found.next_ms.map_or(when, |next| next.min(when)));
        };
        for (place, made) in made_ms.iter().enumerate() {
            if self.end_ms(*made) <= now_ms {
                found.places.push(place);
            } else {
                later(self.end_ms(*made));
                days.entry(made / DAY_MS).or_default().push(place);
            }
        }
        let per_day = self.per_day as usize;
        for (day, places) in days.into_iter().filter(|(_, places)| places.len() > per_day) {
            // A day is thinned out when all of it is old enough: before that, the remaining
            // snapshots can't be spread over it.
            let over = (day + 1).saturating_mul(DAY_MS).saturating_add(self.all_for_ms());
            if over > now_ms {
                later(over);
                continue;
            }
            let kept: Vec<usize> = (0..per_day).map(|n| n * places.len() / per_day).collect();
            let gone = places.iter().enumerate().filter(|(n, _)| !kept.contains(n));
            found.places.extend(gone.map(|(_, place)| *place));
        }
        found
    }
}

#[cfg(test)]
mod tests;
