//! Telling people once of what goes wrong again and again.

use std::time::Duration;

/// For how long it must have gone well before people are told of the next failure.
const EPISODE: Duration = Duration::from_secs(60);

/// Something that goes wrong again and again: people are told when it begins, and when it is over.
#[derive(Debug, Default)]
pub struct Episode {
    count: u64,
    last: Duration,
}

impl Episode {
    /// It has gone wrong. Whether that is the first time.
    pub fn note(&mut self, now: Duration) -> bool {
        self.count += 1;
        self.last = now;
        self.count == 1
    }

    /// How often it has gone wrong, once it has not for a while.
    pub fn end(&mut self, now: Duration) -> Option<u64> {
        let is_over = self.count > 0 && now >= self.last + EPISODE;
        is_over.then(|| std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_once_an_episode() {
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
