//! Reports a recurring failure once per episode.

use std::time::Duration;

/// The failure-free time after which the next failure is reported again.
const EPISODE: Duration = Duration::from_secs(60);

/// A recurring failure, reported when it begins and when it is over.
#[derive(Debug, Default)]
pub struct Episode {
    count: u64,
    last: Duration,
}

impl Episode {
    /// Records a failure. Returns whether it begins an episode.
    pub fn note(&mut self, now: Duration) -> bool {
        self.count += 1;
        self.last = now;
        self.count == 1
    }

    /// Returns the number of failures of an episode that has just ended.
    pub fn end(&mut self, now: Duration) -> Option<u64> {
        let is_over = self.count > 0 && now >= self.last + EPISODE;
        is_over.then(|| std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_reported_once_per_episode() {
        let mut episode = Episode::default();
        let at = Duration::from_secs;
        assert_eq!(episode.end(at(0)), None);
        assert!(episode.note(at(1)));
        assert!(
            (2..100).all(|second| !episode.note(at(second)) && episode.end(at(second)).is_none())
        );
        assert_eq!((episode.end(at(158)), episode.end(at(159))), (None, Some(99)));
        assert_eq!(episode.end(at(1000)), None);
        assert!(episode.note(at(1001)));
    }
}
