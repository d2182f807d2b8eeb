//! Detects silent controllers: which keys were registered with each device, and since when they are
//! unchanged.
//!
//! The sampling interval does not matter: a sign of life changes the key permanently, so an equal
//! key has not changed in between. If the observation is outdated, taking the device detects that.

use std::time::{Duration, Instant};

use sys::Registered;

use super::key::Key;
use super::{SIGN_INTERVAL, SILENCE, quorum};

/// How long a pool that this controller itself has left cleanly is left to the other one, which may
/// be waiting for it.
const LEFT_FOR: Duration = Duration::from_secs(1);
/// How long a quorum waits for the rest. An owner gives its signs of life, and leaves, at one
/// device after the other, so not all are silent at the same moment. A device that is not taken
/// then is missing, and the pool would lose redundancy for nothing.
const REST_WITHIN: Duration = SIGN_INTERVAL.saturating_mul(2);

/// The observation of a device.
#[derive(Clone, Debug)]
struct Seen {
    registered: Registered,
    since: Instant,
    last: Instant,
}

/// The observations of all devices of the pool.
#[derive(Debug)]
pub(super) struct Watch {
    /// The configured number of devices, present or not.
    devices: usize,
    /// A key of this controller, if it may leave the pool to the other one.
    own: Option<Key>,
    seen: Vec<Option<Seen>>,
}

/// A device that may be taken, and the keys that may be preempted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Takeable {
    pub index: usize,
    pub silent: Vec<u64>,
}

impl Watch {
    /// Creates the state for `devices` devices, of which `there` are present.
    pub(super) fn new(devices: usize, there: usize) -> Self {
        Self { devices, own: None, seen: vec![None; there] }
    }

    /// The same for a controller that lets the other one go first if it has itself left the
    /// pool.
    pub(super) fn polite(self, own: Key) -> Self {
        Self { own: Some(own), ..self }
    }

    /// Notes what a device returned to a request sent at `now`.
    pub(super) fn note(&mut self, index: usize, registered: Registered, now: Instant) {
        let seen = &mut self.seen[index];
        let before = seen.as_ref().filter(|it| it.registered == registered);
        let since = before.map_or(now, |it| it.since);
        *seen = Some(Seen { registered, since, last: now });
    }

    /// Forgets the observation of a device.
    pub(super) fn forget(&mut self, index: usize) {
        self.seen[index] = None;
    }

    /// Returns the devices that may be taken, if they are a quorum, and the others still belong to
    /// somebody. `all_answer`: whether each present device has returned its registrations.
    pub(super) fn takeable(&self, all_answer: bool) -> Option<Vec<Takeable>> {
        let all = self.seen.iter().enumerate();
        let there: Vec<_> = all.filter_map(|(at, seen)| Some((at, seen.as_ref()?))).collect();
        let now = there.iter().map(|(_, seen)| seen.last).max()?;
        let (mut found, mut since) = (Vec::new(), Vec::new());
        for (index, seen) in &there {
            let (silent, silent_at) = self.silent_at(seen);
            if silent_at <= seen.last {
                found.push(Takeable { index: *index, silent });
                since.push(silent_at);
            }
        }
        since.sort_unstable();
        let enough_at = *since.get(quorum(self.devices) - 1)?;
        let are_all = all_answer && found.len() == there.len();
        (are_all || now >= enough_at + REST_WITHIN).then_some(found)
    }

    /// Returns all keys of a device, and when they count as silent if they don't change.
    fn silent_at(&self, seen: &Seen) -> (Vec<u64>, Instant) {
        let Registered { keys, holder } = &seen.registered;
        let mut silent = keys.clone();
        silent.extend(holder.filter(|holder| !keys.contains(holder)));
        let was_left = silent.iter().all(|raw| Key::has_left(*raw));
        let by_itself =
            self.own.is_some_and(|own| silent.iter().any(|raw| own.is_same_controller(*raw)));
        let after = match (was_left, by_itself) {
            (false, _) => SILENCE,
            (true, true) => LEFT_FOR,
            (true, false) => Duration::ZERO,
        };
        (silent, seen.since + after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::controllers::Controller;

    const STEP: Duration = Duration::from_millis(250);

    fn key(raw: u64) -> Registered {
        Registered { keys: vec![raw], holder: Some(raw) }
    }

    fn indexes(watch: &Watch) -> Option<Vec<usize>> {
        Some(watch.takeable(true)?.into_iter().map(|it| it.index).collect())
    }

    #[test]
    fn free_devices_may_be_taken_at_once_and_silent_ones_after_a_while() {
        let (mut watch, mut now) = (Watch::new(3, 3), Instant::now());
        watch.note(0, Registered::default(), now);
        assert_eq!(indexes(&watch), None, "one of three");
        watch.note(2, Registered::default(), now);
        assert_eq!(indexes(&watch), Some(vec![0, 2]), "all that are there");
        let begin = now;
        while now - begin < SILENCE {
            for index in 0..3 {
                watch.note(index, key(7), now);
            }
            assert_eq!(indexes(&watch), None);
            now += STEP;
        }
        for index in 0..3 {
            watch.note(index, key(7), now);
        }
        assert_eq!(watch.takeable(true).unwrap()[1], Takeable { index: 1, silent: vec![7] });
    }

    /// Once, the pool was taken without the third device, which was healthy and counted as missing
    /// from then on.
    #[test]
    fn a_quorum_waits_for_the_remaining_devices() {
        let (mut watch, begin) = (Watch::new(3, 3), Instant::now());
        let at = |ms| begin + Duration::from_millis(ms);
        for index in 0..3 {
            watch.note(index, key(7), at(0));
        }
        // The last sign of life, which reached one device later than the others.
        watch.note(2, key(8), at(250));
        let mut see = |ms, last| {
            for (index, raw) in [7, 7, last].into_iter().enumerate() {
                watch.note(index, key(raw), at(ms));
            }
            indexes(&watch)
        };
        assert_eq!((see(2750, 8), see(3000, 8)), (None, None));
        assert_eq!(see(3250, 8), Some(vec![0, 1, 2]));
        // Its owner is alive: then the pool is taken without it.
        assert_eq!((see(3500, 9), see(3750, 9)), (None, None));
        assert_eq!(see(4000, 9), Some(vec![0, 1]));
    }

    #[test]
    fn a_quorum_does_not_wait_for_devices_that_do_not_answer() {
        let (mut watch, begin) = (Watch::new(3, 3), Instant::now());
        for (index, at) in [(0, SILENCE), (1, SILENCE), (2, STEP)] {
            watch.note(index, key(7), begin);
            watch.note(index, key(7), begin + at);
        }
        assert_eq!(indexes(&watch), None, "it may be slow");
        watch.forget(2);
        assert_eq!(indexes(&watch), Some(vec![0, 1]));
        assert_eq!(watch.takeable(false), None, "it may be slow from the beginning");
        for index in [0, 1] {
            watch.note(index, key(7), begin + SILENCE + REST_WITHIN);
        }
        assert!(watch.takeable(false).is_some());
    }

    #[test]
    fn a_sign_of_life_restarts_the_silence_and_a_pause_of_the_watcher_does_not() {
        let (mut watch, begin) = (Watch::new(1, 1), Instant::now());
        let mut see = |ms, raw| {
            watch.note(0, key(raw), begin + Duration::from_millis(ms));
            indexes(&watch).is_some()
        };
        assert!(!see(0, 7) && !see(2900, 7) && !see(2950, 8) && !see(3000, 8) && !see(5900, 8));
        assert!(see(9000, 8), "it is the same key, so there was no other one");
        assert!(!see(9100, 9));
        watch.forget(0);
        assert_eq!(indexes(&watch), None);
    }

    #[test]
    fn a_quorum_does_not_wait_for_a_controller_that_has_left() {
        let own = Key::new(Controller::Ct0, 1);
        let mut watch = Watch::new(2, 2);
        for index in 0..2 {
            watch.note(index, key(own.left().raw()), Instant::now());
        }
        assert_eq!(indexes(&watch), Some(vec![0, 1]));
        watch.note(1, key(own.raw()), Instant::now());
        assert_eq!(indexes(&watch), None);
    }

    /// Otherwise a switch would leave the pool to the restarted process.
    #[test]
    fn a_controller_that_has_left_lets_the_other_one_go_first() {
        let (own, begin) = (Key::new(Controller::Ct0, 1), Instant::now());
        let later = begin + LEFT_FOR;
        for (watcher, waits) in [(Controller::Ct0, true), (Controller::Ct1, false)] {
            let mut watch = Watch::new(1, 1).polite(Key::new(watcher, 7));
            watch.note(0, key(own.left().raw()), begin);
            assert_eq!(watch.takeable(true).is_none(), waits);
            watch.note(0, key(own.left().raw()), later);
            assert!(watch.takeable(true).is_some(), "there is nobody else");
        }
        let mut watch = Watch::new(1, 1).polite(own);
        watch.note(0, Registered::default(), begin);
        assert!(watch.takeable(true).is_some(), "it was nobody's");
    }
}
