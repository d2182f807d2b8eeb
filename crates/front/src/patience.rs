//! How long a thread busy-polls before it sleeps.
//!
//! A wake-up costs tens of microseconds, more on a virtual machine, and delays everything that
//! waits for the thread. Busy-polling costs processor time that others may need. So each command
//! that waits for a read earns the thread a little polling time, if several do: under load the
//! thread hardly ever sleeps, and no load pays more than that little per command. A thread that
//! sleeps serves a single waiting command, and commands that complete at once, best: a host on the
//! same machine runs meanwhile. A command that waits for a commit earns as much while no other
//! thread has any command. Otherwise it earns nothing: a commit ends the requests of many, on
//! whichever thread, and several threads that busy-polled for it would delay each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The time that a command earns: less than a read from the device costs by itself.
const A_COMMAND: Duration = Duration::from_micros(16);
/// Fewer commands in progress than this earn nothing.
const SEVERAL: usize = 4;
/// The most time that can accumulate: longer than a device takes for a read.
const MOST: Duration = Duration::from_micros(400);

/// The number of threads with commands in progress.
#[derive(Debug, Default)]
pub(super) struct BusyThreads(AtomicUsize);

/// A thread's remaining time for busy-polling.
#[derive(Debug)]
pub(super) struct Patience {
    left: Duration,
    looked_at: Duration,
    busy_threads: Arc<BusyThreads>,
    /// Whether this thread counts as busy.
    is_busy: bool,
}

impl Patience {
    /// Creates the state of one of the threads that `busy_threads` counts.
    pub(super) fn new(busy_threads: Arc<BusyThreads>) -> Self {
        let (left, looked_at) = (Duration::ZERO, Duration::ZERO);
        Self { left, looked_at, busy_threads, is_busy: false }
    }

    /// Notes how many commands the thread has in progress.
    pub(super) fn note_under_way(&mut self, under_way: usize) {
        let is_busy = under_way > 0;
        if is_busy != std::mem::replace(&mut self.is_busy, is_busy) {
            // Relaxed, because this is a heuristic: others need not see it at once.
            match is_busy {
                true => self.busy_threads.0.fetch_add(1, Ordering::Relaxed),
                false => self.busy_threads.0.fetch_sub(1, Ordering::Relaxed),
            };
        }
    }

    /// Adds the time for a command that waits for a commit, one of `under_way` in progress.
    pub(super) fn earn_by_commit(&mut self, under_way: usize) {
        if self.busy_threads.0.load(Ordering::Relaxed) <= usize::from(self.is_busy) {
            self.earn(under_way);
        }
    }

    /// Adds the time for a command that waits for reads, one of `under_way` in progress.
    pub(super) fn earn(&mut self, under_way: usize) {
        if under_way >= SEVERAL {
            self.left = (self.left + A_COMMAND).min(MOST);
        }
    }

    /// Returns whether to poll again instead of sleeping.
    pub(super) fn is_left(&self) -> bool {
        !self.left.is_zero()
    }

    /// Notes that the thread has polled at `now`. If it found nothing, the time since the last poll
    /// is spent.
    pub(super) fn looked(&mut self, now: Duration, found: bool) {
        if !found {
            self.left = self.left.saturating_sub(now.saturating_sub(self.looked_at));
        }
        self.looked_at = now;
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        self.note_under_way(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_time_is_earned_by_commands_and_spent_by_polling_in_vain() {
        let mut now = Duration::from_secs(1);
        let mut patience = Patience::new(Arc::default());
        assert!(!patience.is_left());
        patience.looked(now, true);
        patience.earn(SEVERAL - 1);
        assert!(!patience.is_left());
        patience.earn(SEVERAL);
        now += A_COMMAND / 2;
        patience.looked(now, false);
        assert!(patience.is_left());
        now += A_COMMAND;
        patience.looked(now, true);
        assert!(patience.is_left());
        now += A_COMMAND / 2;
        patience.looked(now, false);
        assert!(!patience.is_left());
        (0..1000).for_each(|_| patience.earn(SEVERAL));
        patience.looked(now + MOST, false);
        assert!(!patience.is_left());
    }

    #[test]
    fn only_a_single_busy_thread_polls_for_a_commit() {
        let all = Arc::<BusyThreads>::default();
        let [mut one, mut other] = [(); 2].map(|()| Patience::new(all.clone()));
        one.earn_by_commit(SEVERAL);
        assert!(one.is_left(), "no thread is busy yet");
        let mut now = Duration::from_secs(1);
        one.looked(now, false);
        one.note_under_way(SEVERAL);
        one.earn_by_commit(SEVERAL - 1);
        assert!(!one.is_left());
        one.earn_by_commit(SEVERAL);
        assert!(one.is_left());
        now += MOST;
        one.looked(now, false);
        other.note_under_way(1);
        one.earn_by_commit(SEVERAL);
        other.earn_by_commit(SEVERAL);
        assert!(!one.is_left() && !other.is_left());
        other.earn(SEVERAL);
        assert!(other.is_left(), "a thread polls for reads although others are busy");
        drop(other);
        one.earn_by_commit(SEVERAL);
        assert!(one.is_left());
    }
}
