//! Commands at a steady rate, however fast the target is.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// When commands are due, and what waits to send them.
pub(super) struct Rate<T> {
    interval: Duration,
    next: Instant,
    idle: VecDeque<(Instant, T)>,
}

impl<T> Rate<T> {
    /// Creates a rate of `per_second` commands, the first at once.
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        let interval = Duration::from_secs(1) / per_second.max(1);
        Self { interval, next: now, idle: VecDeque::new() }
    }

    /// Adds a sender that can send a command from now on.
    pub(super) fn add(&mut self, sender: T, now: Instant) {
        self.idle.push_back((now, sender));
    }

    /// Returns a sender for a command that is due, and the beginning of its latency: now or, if all
    /// senders were busy when it became due, that time. So a stalled target is charged for commands
    /// that it prevented from being sent.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<(Instant, T)> {
        if now < self.next {
            return None;
        }
        let (since, sender) = self.idle.pop_front()?;
        let due = self.next;
        self.next += self.interval;
        Some((if since <= due { now } else { due }, sender))
    }

    /// Returns for how long nothing is due, in whole milliseconds, at most 100.
    pub(super) fn pause_ms(&self, now: Instant) -> i32 {
        if self.idle.is_empty() {
            return 100;
        }
        let pause = self.next.saturating_duration_since(now);
        pause.as_micros().div_ceil(1000).min(100) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_due_at_their_rate_and_latency_counts_from_then() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut rate = Rate::new(100, start);
        rate.add('a', at(0));
        assert_eq!(rate.take_due(at(3)), Some((at(3), 'a')));
        assert_eq!((rate.take_due(at(20)), rate.pause_ms(at(20))), (None, 100));
        // Two became due meanwhile: at 10 and at 20.
        rate.add('a', at(25));
        assert_eq!(rate.take_due(at(25)), Some((at(10), 'a')));
        rate.add('b', at(27));
        assert_eq!(rate.take_due(at(27)), Some((at(20), 'b')));
        rate.add('a', at(28));
        assert_eq!((rate.take_due(at(28)), rate.pause_ms(at(28))), (None, 2));
    }
}
