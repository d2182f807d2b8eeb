//! Times without a response.

use std::time::{Duration, Instant};

/// The longest time in which no command ended.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    last_end: Instant,
    longest: Duration,
}

impl Silence {
    /// Creates one without silence yet: commands are in flight from `now` on.
    pub fn since(now: Instant) -> Self {
        Self { last_end: now, longest: Duration::ZERO }
    }

    /// Records the end of a command, `now`.
    pub fn ended_one(&mut self, now: Instant) {
        self.longest = self.until(now);
        self.last_end = now;
    }

    /// Returns the longest silence up to `now`, including the current one.
    pub fn until(&self, now: Instant) -> Duration {
        self.longest.max(now.saturating_duration_since(self.last_end))
    }
}
