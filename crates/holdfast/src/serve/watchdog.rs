//! Reports to the supervisor that the array is alive, as long as all front-end threads take turns.
//!
//! A thread that takes none, because it waits for something that never happens, serves no host, and
//! others soon wait for it. Its supervisor then gets no more reports, kills the process and starts
//! another one: everything acknowledged is in the log.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use front::episode::Episode;
use sys::attendant::Attendant;

use super::shared::Shared;
use super::supervisor::{tell_alive, watchdog_limit};

/// The time without a turn after which a thread is stuck. An idle thread takes one each half
/// second; the longest work of one turn is far shorter than this, even with a slow device.
const STUCK_AFTER: Duration = Duration::from_secs(30);
/// The last turn of a thread that has ended.
const ENDED: u64 = u64::MAX;

/// When each front-end thread took its last turn, in milliseconds of the array's clock.
pub(super) struct Turns(Vec<AtomicU64>);

impl Turns {
    /// Creates the state of this many threads, which start now.
    pub(super) fn new(threads: usize, now: Duration) -> Self {
        Self((0..threads).map(|_| AtomicU64::new(ms(now))).collect())
    }

    /// Notes that a thread takes a turn.
    pub(super) fn note(&self, thread: usize, now: Duration) {
        self.0[thread].store(ms(now), Ordering::Relaxed);
    }

    /// Notes that a thread has ended.
    pub(super) fn end(&self, thread: usize) {
        self.0[thread].store(ENDED, Ordering::Relaxed);
    }

    /// Returns the first thread that is stuck.
    fn stuck(&self, now: Duration) -> Option<usize> {
        let is_stuck = |last: u64| ms(now).saturating_sub(last) > ms(STUCK_AFTER);
        self.0.iter().position(|last| is_stuck(last.load(Ordering::Relaxed)))
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(ENDED - 1)
}

/// Starts the reporting thread, if the supervisor expects reports.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<Option<Attendant>> {
    let Some(limit) = watchdog_limit() else { return Ok(None) };
    let (shared, pause) = (shared.clone(), limit / 8);
    let mut failed = Episode::default();
    // At normal priority, unlike other attendants: otherwise reports could be late without a
    // problem.
    Attendant::spawn("watchdog", Arc::default(), move |bell| {
        while bell.wait(pause) {
            let now = shared.clock.now();
            if let Some(thread) = shared.turns.stuck(now) {
                if failed.note(now) {
                    let seconds = STUCK_AFTER.as_secs();
                    tracing::error!(
                        "front-end thread {thread} has done nothing for {seconds} s: the \
                         supervisor should restart the array"
                    );
                }
            } else if let Err(error) = tell_alive()
                && failed.note(now)
            {
                tracing::warn!("can't report that the array is alive: {error}");
            }
        }
    })
    .map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_turns_is_stuck_and_one_that_has_ended_is_not() {
        let at = Duration::from_secs;
        let turns = Turns::new(3, at(5));
        assert_eq!(turns.stuck(at(35)), None);
        assert_eq!(turns.stuck(at(36)), Some(0));
        turns.note(0, at(20));
        turns.end(1);
        assert_eq!(turns.stuck(at(36)), Some(2));
        turns.note(2, at(30));
        assert_eq!(turns.stuck(at(50)), None);
        assert_eq!(turns.stuck(at(51)), Some(0));
        turns.end(0);
        turns.end(2);
        assert_eq!(turns.stuck(Duration::MAX), None);
    }
}
