//! Times without a response to a host, and what happened then.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// Shorter times are not kept.
const KEPT: Duration = Duration::from_millis(5);

/// Times without a response while commands were in flight.
#[derive(Debug, Default)]
pub struct Answers {
    /// The time of the last response; none if nothing is in flight.
    since: Option<Instant>,
    longest: Duration,
    /// Beginning and end of each. They do not overlap, so there are at most 200 per second.
    gaps: Vec<(Instant, Instant)>,
}

impl Answers {
    /// Records that commands are in flight from now on.
    pub fn begin(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// Records a response.
    pub fn answered(&mut self, now: Instant) {
        let Some(since) = self.since.replace(now) else { return };
        let gap = now.saturating_duration_since(since);
        self.longest = self.longest.max(gap);
        if gap >= KEPT {
            self.gaps.push((since, now));
        }
    }

    /// Records the response to the last command in flight.
    pub fn end(&mut self, now: Instant) {
        self.answered(now);
        self.since = None;
    }

    /// Returns the longest time without one.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns the longest one that ended between two times; zero if all were short. The time for
    /// which an event makes hosts wait ends after it, and began with the last response before it.
    fn longest_ended(&self, from: Instant, to: Instant) -> Duration {
        let within = self.gaps.iter().filter(|(_, end)| *end >= from && *end < to);
        within.map(|(begin, end)| *end - *begin).max().unwrap_or_default()
    }
}

/// Something that happened to the array, and for how long hosts had no response then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// What happened.
    pub what: String,
    /// When, in milliseconds since the first of them.
    pub at_ms: u64,
    /// The longest time without a response to the host that deploys, from then until the next
    /// event.
    pub gap_ms: u64,
    /// The same for the host that takes a lock repeatedly.
    pub lock_gap_ms: u64,
}

/// Reads events (a line each: milliseconds since 1970, a blank, what it was), and finds the times
/// without a response that belong to each.
pub fn events(path: &Path, deploying: &Answers, locking: &Answers) -> Result<Vec<Event>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let now = Instant::now();
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
    let instant = |ms: u64| {
        let ago = u64::try_from(now_ms).unwrap_or(u64::MAX).saturating_sub(ms);
        now.checked_sub(Duration::from_millis(ago)).unwrap_or(now)
    };
    let lines = parse(&text).ok_or_else(|| format!("{}: MILLISECONDS WHAT", path.display()))?;
    let first = lines.first().map_or(0, |(ms, _)| *ms);
    let ends = lines.iter().skip(1).map(|(ms, _)| instant(*ms)).chain([now]);
    let one = |((ms, what), end): (&(u64, String), Instant)| {
        let gap = |answers: &Answers| {
            answers.longest_ended(instant(*ms), end).as_millis().try_into().unwrap_or(u64::MAX)
        };
        let (gap_ms, lock_gap_ms) = (gap(deploying), gap(locking));
        Event { what: what.clone(), at_ms: ms.saturating_sub(first), gap_ms, lock_gap_ms }
    };
    Ok(lines.iter().zip(ends).map(one).collect())
}

fn parse(text: &str) -> Option<Vec<(u64, String)>> {
    let line = |line: &str| {
        let (ms, what) = line.split_once(' ')?;
        Some((ms.parse().ok()?, what.to_owned()))
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_in_flight_count_as_unanswered() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut answers = Answers::default();
        answers.answered(at(900));
        assert_eq!(answers.longest(), Duration::ZERO);
        answers.begin(at(1000));
        for ms in [1001, 1003, 1043] {
            answers.answered(at(ms));
        }
        answers.end(at(1053));
        answers.begin(at(5000));
        answers.end(at(5004));
        assert_eq!(answers.longest(), Duration::from_millis(40));
        for (from, to, longest_ms) in
            [(0, 9000, 40), (1043, 1044, 40), (1044, 9000, 10), (0, 1043, 0), (1054, 9000, 0)]
        {
            let longest = answers.longest_ended(at(from), at(to));
            assert_eq!(longest, Duration::from_millis(longest_ms), "{from} to {to}");
        }
    }

    #[test]
    fn each_event_has_the_times_until_the_next() {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        let now = Instant::now();
        let ago = |ms| now.checked_sub(Duration::from_millis(ms)).unwrap();
        let mut answers = [Answers::default(), Answers::default()];
        for (answers, gap_ms) in answers.iter_mut().zip([100, 70]) {
            answers.begin(ago(3500));
            answers.answered(ago(3500 - gap_ms));
            answers.begin(ago(1500));
            answers.end(ago(1500 - 2 * gap_ms));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = format!("{} kill ct0\n{} a switch\n", now_ms - 4000, now_ms - 2000);
        std::fs::write(file.path(), text).unwrap();
        let event = |what: &str, at_ms, gap_ms, lock_gap_ms| Event {
            what: what.into(),
            at_ms,
            gap_ms,
            lock_gap_ms,
        };
        let expected = [event("kill ct0", 0, 100, 70), event("a switch", 2000, 200, 140)];
        assert_eq!(events(file.path(), &answers[0], &answers[1]).unwrap(), expected);
        std::fs::write(file.path(), "kill ct0\n").unwrap();
        assert!(events(file.path(), &answers[0], &answers[1]).is_err());
    }
}
