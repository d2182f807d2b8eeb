//! The rate at which devices catch up, or at which the content of leaving devices is moved to
//! others, and the remaining time.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use api::CatchingUp;
use parking_lot::Mutex;
use segments::{DeviceState, DeviceStatus, PartsUse};
use store::Store;

/// The time over which the rate is measured.
const WINDOW: Duration = Duration::from_secs(60);
/// The minimum time of observation for a rate.
const SEEN_AT_LEAST: Duration = Duration::from_secs(4);
/// The minimum interval of stored observations.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// An observed progress of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    at: Instant,
    /// In bytes for a device that catches up, in parts for one that leaves.
    done: u64,
}

/// The progress of a device in the last minute.
#[derive(Debug, Default)]
struct Pace {
    all: u64,
    /// In the order of time.
    looks: VecDeque<Look>,
}

impl Pace {
    fn note(&mut self, now: Instant, done: u64, all: u64) {
        // Less progress than before means another attempt.
        let is_other = self.looks.back().is_some_and(|last| last.done > done);
        if is_other || self.all != all {
            *self = Self { all, looks: VecDeque::new() };
        }
        let is_due = |last: &Look| now.duration_since(last.at) >= LOOK_PAUSE;
        if self.looks.back().is_none_or(is_due) {
            self.looks.push_back(Look { at: now, done });
        }
        while self.looks.front().is_some_and(|first| now.duration_since(first.at) > WINDOW) {
            self.looks.pop_front();
        }
    }

    /// Returns the remaining seconds; `None` if there is no progress, or it was not observed for
    /// long enough.
    fn left_s(&self, now: Instant, done: u64) -> Option<u64> {
        let first = self.looks.front()?;
        let elapsed = now.duration_since(first.at);
        let moved = u128::from(done.checked_sub(first.done)?);
        if elapsed < SEEN_AT_LEAST || moved == 0 {
            return None;
        }
        let left = u128::from(self.all.saturating_sub(done));
        let left_ms = (left * elapsed.as_millis()).div_ceil(moved);
        u64::try_from(left_ms.div_ceil(1000)).ok()
    }
}

/// The paces of devices with the same activity, by their numbers.
#[derive(Debug, Default)]
struct Group(Mutex<BTreeMap<u16, Pace>>);

impl Group {
    /// Records the progress of these devices, as (done, all), and drops all others; returns the
    /// remaining seconds of each, where known.
    fn note(&self, now: Instant, all: &BTreeMap<u16, (u64, u64)>) -> BTreeMap<u16, u64> {
        let mut paces = self.0.lock();
        paces.retain(|number, _| all.contains_key(number));
        let left = all.iter().filter_map(|(number, (done, all))| {
            let pace = paces.entry(*number).or_default();
            pace.note(now, *done, *all);
            Some((*number, pace.left_s(now, *done)?))
        });
        left.collect()
    }
}

/// Devices that catch up, and those that leave. Alerts check them every few seconds, so that the
/// rate is known to other callers.
#[derive(Debug, Default)]
pub(super) struct Paces {
    /// In bytes.
    catching_up: Group,
    /// In parts.
    leaving: Group,
}

impl Paces {
    /// Returns the progress of the devices that catch up, by their numbers.
    pub(super) fn look(&self, store: &Store) -> BTreeMap<u16, CatchingUp> {
        self.note(Instant::now(), &store.catching_up())
    }

    fn note(&self, now: Instant, all: &[store::CatchingUp]) -> BTreeMap<u16, CatchingUp> {
        let far = all.iter().map(|found| (found.device, (found.done_bytes, found.all_bytes)));
        let left = self.catching_up.note(now, &far.collect());
        let progress = |found: &store::CatchingUp| {
            let store::CatchingUp { device, done_bytes, all_bytes } = *found;
            (device, CatchingUp { done_bytes, all_bytes, left_s: left.get(&device).copied() })
        };
        all.iter().map(progress).collect()
    }

    /// Returns the seconds until the content of each leaving device is on others, by their numbers.
    pub(super) fn look_at_leaving(&self, all: &[DeviceStatus]) -> BTreeMap<u16, u64> {
        let leaving = all.iter().filter_map(|device| {
            let parts = device.parts.filter(|parts| is_leaving(device.state, *parts))?;
            Some((device.number, parts))
        });
        self.note_leaving(Instant::now(), &leaving.collect())
    }

    fn note_leaving(&self, now: Instant, all: &BTreeMap<u16, PartsUse>) -> BTreeMap<u16, u64> {
        let far = |parts: &PartsUse| {
            (u64::from(parts.all.saturating_sub(parts.used)), u64::from(parts.all))
        };
        let all = all.iter().map(|(number, parts)| (*number, far(parts)));
        self.leaving.note(now, &all.collect())
    }
}

/// Returns whether the content of a device is being moved to others.
fn is_leaving(state: DeviceState, parts: PartsUse) -> bool {
    let is_gone = matches!(state, DeviceState::Out | DeviceState::Missing);
    parts.used > 0 && (parts.is_emptied || is_gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Returns the remaining seconds of device 3, `at_s` seconds after the start.
    fn left_s(paces: &Paces, start: Instant, at_s: u64, done: u64, all: u64) -> Option<u64> {
        let (done_bytes, all_bytes) = (done * MIB, all * MIB);
        let progress = store::CatchingUp { device: 3, done_bytes, all_bytes };
        let reported = paces.note(start + Duration::from_secs(at_s), &[progress]);
        assert_eq!((reported[&3].done_bytes, reported[&3].all_bytes), (done_bytes, all_bytes));
        reported[&3].left_s
    }

    #[test]
    fn the_time_left_follows_the_rate_of_the_last_minute() {
        let (paces, start) = (Paces::default(), Instant::now());
        assert_eq!(left_s(&paces, start, 0, 0, 1000), None);
        assert_eq!(left_s(&paces, start, 1, 10, 1000), None, "it was not seen for long");
        assert_eq!(left_s(&paces, start, 5, 50, 1000), Some(95));
        for at_s in 6..=65 {
            left_s(&paces, start, at_s, 50, 1000);
        }
        assert_eq!(left_s(&paces, start, 66, 50, 1000), None, "it stands still");
        assert_eq!(left_s(&paces, start, 126, 350, 1000), Some(130), "5 MiB in a second");
        assert_eq!(left_s(&paces, start, 126, 1000, 1000), Some(0));
    }

    #[test]
    fn another_attempt_begins_anew() {
        let (paces, start) = (Paces::default(), Instant::now());
        left_s(&paces, start, 0, 0, 1000);
        assert!(left_s(&paces, start, 10, 500, 1000).is_some());
        assert_eq!(left_s(&paces, start, 11, 10, 1000), None);
        assert_eq!(left_s(&paces, start, 16, 60, 1000), Some(94));
        assert_eq!(left_s(&paces, start, 17, 70, 1200), None, "of more bytes");
        assert!(left_s(&paces, start, 27, 170, 1200).is_some());
        // It had completed, and starts again later.
        assert!(paces.note(start + Duration::from_secs(28), &[]).is_empty());
        assert_eq!(left_s(&paces, start, 38, 200, 1200), None);
    }

    #[test]
    fn the_time_left_of_a_leaving_device_follows_its_parts() {
        let (paces, start) = (Paces::default(), Instant::now());
        let left_s = |at_s, used| {
            let parts = PartsUse { all: 100, used, is_emptied: true };
            let now = start + Duration::from_secs(at_s);
            paces.note_leaving(now, &BTreeMap::from([(3, parts)])).get(&3).copied()
        };
        assert_eq!([left_s(0, 90), left_s(2, 80)], [None, None], "it was not seen for long");
        assert_eq!(left_s(10, 40), Some(8), "5 parts in a second");
        assert_eq!(left_s(20, 0), Some(0));
    }

    #[test]
    fn only_leaving_devices_are_tracked() {
        let parts = |used, is_emptied| PartsUse { all: 9, used, is_emptied };
        assert!(!is_leaving(DeviceState::In, parts(3, false)));
        assert!(!is_leaving(DeviceState::CatchingUp, parts(3, false)));
        assert!(is_leaving(DeviceState::In, parts(3, true)));
        assert!(is_leaving(DeviceState::Out, parts(3, false)));
        assert!(!is_leaving(DeviceState::Out, parts(0, false)));
    }

    #[test]
    fn frequent_samples_take_bounded_memory() {
        let (paces, start) = (Paces::default(), Instant::now());
        for millis in 0..100_000 {
            let (done_bytes, all_bytes) = (millis, 1 << 40);
            let progress = store::CatchingUp { device: 3, done_bytes, all_bytes };
            paces.note(start + Duration::from_millis(millis), &[progress]);
        }
        assert!(paces.catching_up.0.lock()[&3].looks.len() <= 61);
    }
}
