//! How long nothing was answered.

use std::time::{Duration, Instant};

/// The longest time in which no command ended.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    last_end: Instant,
    longest: Duration,
}

impl Silence {
    /// None yet: commands are under way from `now` on.
    pub fn since(now: Instant) -> Self {
        Self { last_end: now, longest: Duration::ZERO }
    }

    /// A command has ended, `now`.
    pub fn ended_one(&mut self, now: Instant) {
        self.longest = self.until(now);
        self.last_end = now;
    }

    /// The longest up to `now`, with the one that has not ended.
    pub fn until(&self, now: Instant) -> Duration {
        self.longest.max(now.saturating_duration_since(self.last_end))
    }
}
