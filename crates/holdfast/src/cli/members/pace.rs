//! How fast devices catch up, and how long that takes yet.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use api::CatchingUp;
use parking_lot::Mutex;
use store::Store;

/// The rate is that of so long a time.
const WINDOW: Duration = Duration::from_secs(60);
/// It is not known before so long a time was seen.
const SEEN_AT_LEAST: Duration = Duration::from_secs(4);
/// Of those who ask often not all looks are kept.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// How far a device was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    at: Instant,
    done_bytes: u64,
}

/// How far a device was in the last minute.
#[derive(Debug, Default)]
struct Pace {
    all_bytes: u64,
    /// From the first on.
    looks: VecDeque<Look>,
}

impl Pace {
    fn note(&mut self, now: Instant, done_bytes: u64, all_bytes: u64) {
        // Less than before is another attempt.
        let is_other = self.looks.back().is_some_and(|last| last.done_bytes > done_bytes);
        if is_other || self.all_bytes != all_bytes {
            *self = Self { all_bytes, looks: VecDeque::new() };
        }
        let is_due = |last: &Look| now.duration_since(last.at) >= LOOK_PAUSE;
        if self.looks.back().is_none_or(is_due) {
            self.looks.push_back(Look { at: now, done_bytes });
        }
        while self.looks.front().is_some_and(|first| now.duration_since(first.at) > WINDOW) {
            self.looks.pop_front();
        }
    }

    /// How many seconds it takes yet; `None` if it stands still, or is not known for long enough.
    fn left_s(&self, now: Instant, done_bytes: u64) -> Option<u64> {
        let first = self.looks.front()?;
        let elapsed = now.duration_since(first.at);
        let moved_bytes = u128::from(done_bytes.checked_sub(first.done_bytes)?);
        if elapsed < SEEN_AT_LEAST || moved_bytes == 0 {
            return None;
        }
        let left_bytes = u128::from(self.all_bytes.saturating_sub(done_bytes));
        let left_ms = (left_bytes * elapsed.as_millis()).div_ceil(moved_bytes);
        u64::try_from(left_ms.div_ceil(1000)).ok()
    }
}

/// Devices that catch up. Alerts look every few seconds, so that a rate is known when others ask.
#[derive(Debug, Default)]
pub(super) struct Paces(Mutex<BTreeMap<u16, Pace>>);

impl Paces {
    /// How far those are that catch up, by their numbers.
    pub(super) fn look(&self, store: &Store) -> BTreeMap<u16, CatchingUp> {
        self.note(Instant::now(), &store.catching_up())
    }

    fn note(&self, now: Instant, all: &[store::CatchingUp]) -> BTreeMap<u16, CatchingUp> {
        let mut paces = self.0.lock();
        paces.retain(|number, _| all.iter().any(|progress| progress.device == *number));
        let progress = |found: &store::CatchingUp| {
            let store::CatchingUp { device, done_bytes, all_bytes } = *found;
            let pace = paces.entry(device).or_default();
            pace.note(now, done_bytes, all_bytes);
            let left_s = pace.left_s(now, done_bytes);
            (device, CatchingUp { done_bytes, all_bytes, left_s })
        };
        all.iter().map(progress).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// What is told of device 3, so many seconds after the start.
    fn left_s(paces: &Paces, start: Instant, at_s: u64, done: u64, all: u64) -> Option<u64> {
        let (done_bytes, all_bytes) = (done * MIB, all * MIB);
        let progress = store::CatchingUp { device: 3, done_bytes, all_bytes };
        let told = paces.note(start + Duration::from_secs(at_s), &[progress]);
        assert_eq!((told[&3].done_bytes, told[&3].all_bytes), (done_bytes, all_bytes));
        told[&3].left_s
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
        // It had all, and goes on another time.
        assert!(paces.note(start + Duration::from_secs(28), &[]).is_empty());
        assert_eq!(left_s(&paces, start, 38, 200, 1200), None);
    }

    #[test]
    fn who_asks_often_takes_no_room() {
        let (paces, start) = (Paces::default(), Instant::now());
        for millis in 0..100_000 {
            let (done_bytes, all_bytes) = (millis, 1 << 40);
            let progress = store::CatchingUp { device: 3, done_bytes, all_bytes };
            paces.note(start + Duration::from_millis(millis), &[progress]);
        }
        assert!(paces.0.lock()[&3].looks.len() <= 61);
    }
}
