//! Time.

use std::time::{Duration, Instant};

/// A monotonic clock that starts at zero when it is created. Copies of it have the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts a clock now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Returns the time since the start. Never goes back.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns it like [`Clock::now`], in milliseconds.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.now().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_clock_have_the_same_advancing_time() {
        let clock = Clock::start();
        let copy = clock;
        let first = clock.now();
        std::thread::sleep(Duration::from_millis(2));
        let second = copy.now();
        assert!(second >= first + Duration::from_millis(2));
        assert!(clock.now() >= second);
    }
}
