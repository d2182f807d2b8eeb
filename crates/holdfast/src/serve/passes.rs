//! Background passes over the whole pool: when one begins, and how it gives way to hosts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sys::Clock;

use front::Counters;
use sys::attendant::{Attendant, LOOK_INTERVAL};

/// A restart forgets when the last pass ended: the first one begins this long afterwards.
const FIRST_PASS: Duration = Duration::from_secs(600);

/// Passes of one kind.
pub(super) trait Passes: Send + 'static {
    /// Begins a pass.
    fn begin(&mut self);

    /// Returns whether a pass is to begin although none is due.
    fn is_wanted(&self) -> bool {
        false
    }

    /// Continues the pass in progress, if any, whoever has begun it.
    fn step(&mut self) -> Step;
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: no pass is in progress.
    Nothing,
    /// Nothing that can be done now, whether a pass is in progress or not: retry after this time.
    Later(Duration),
    /// A part of a pass: the next one may follow after this time.
    More(Duration),
    /// The last part of a pass, or one after which it does not continue.
    Last,
}

/// Starts a thread for the passes of one kind. `interval`: from the end of one pass to the
/// beginning of the next; `None`: it begins none.
pub(super) fn start(
    name: &str,
    interval: Option<Duration>,
    clock: Clock,
    mut passes: impl Passes,
) -> io::Result<Attendant> {
    let mut schedule = Schedule::new(interval, clock.now());
    Attendant::start(name, Arc::default(), move |_| {
        let (now, step) = (clock.now(), passes.step());
        if passes.is_wanted() {
            schedule.want(now);
        }
        match schedule.next(step, now) {
            Turn::Begin => {
                passes.begin();
                Duration::ZERO
            }
            Turn::Wait(pause) => pause,
        }
    })
}

/// Determines when the next pass begins by itself.
struct Schedule {
    interval: Option<Duration>,
    due: Option<Duration>,
    under_way: bool,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    Begin,
    Wait(Duration),
}

impl Schedule {
    fn new(interval: Option<Duration>, now: Duration) -> Self {
        let due = interval.map(|interval| now + interval.min(FIRST_PASS));
        Self { interval, due, under_way: false }
    }

    /// Makes a pass due: it begins now or, if one is in progress, when it is wanted after that.
    fn want(&mut self, now: Duration) {
        self.due = Some(now);
    }

    /// Returns what to do after a step that began at `now`.
    fn next(&mut self, step: Step, now: Duration) -> Turn {
        match step {
            Step::Later(pause) => return Turn::Wait(pause),
            Step::More(pause) => {
                self.under_way = true;
                return Turn::Wait(pause);
            }
            Step::Nothing if !self.under_way => {
                if self.due.is_some_and(|due| now >= due) {
                    self.under_way = true;
                    return Turn::Begin;
                }
            }
            // A pass that was stopped has ended too, and is not begun again at once.
            Step::Nothing | Step::Last => {
                self.under_way = false;
                self.due = self.interval.map(|interval| now + interval);
            }
        }
        Turn::Wait(LOOK_INTERVAL)
    }
}

/// Detects whether hosts use the array.
pub(super) struct Traffic {
    counters: Arc<Counters>,
    seen_bytes: u64,
}

impl Traffic {
    /// Starts with zero: what hosts have transferred before counts as new at the first call.
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self { counters, seen_bytes: 0 }
    }

    /// Returns whether they have transferred anything since the last call.
    pub(super) fn has_moved(&mut self) -> bool {
        let wire = self.counters.wire();
        let moved = wire.received_bytes + wire.sent_bytes;
        moved != std::mem::replace(&mut self.seen_bytes, moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const LOOK: Turn = Turn::Wait(LOOK_INTERVAL);

    #[test]
    fn an_interval_is_from_the_end_of_a_pass_to_the_next_beginning() {
        let mut schedule = Schedule::new(Some(HOUR), Duration::ZERO);
        assert_eq!(schedule.next(Step::Nothing, FIRST_PASS - LOOK_INTERVAL), LOOK);
        assert_eq!(schedule.next(Step::Nothing, FIRST_PASS), Turn::Begin);
        let pause = Duration::from_millis(7);
        assert_eq!(schedule.next(Step::More(pause), HOUR), Turn::Wait(pause));
        assert_eq!(schedule.next(Step::Last, HOUR * 3), LOOK);
        assert_eq!(schedule.next(Step::Nothing, HOUR * 4 - LOOK_INTERVAL), LOOK);
        assert_eq!(schedule.next(Step::Nothing, HOUR * 4), Turn::Begin);
        // Stopped on request, in the middle or before the first step.
        assert_eq!(schedule.next(Step::More(pause), HOUR * 9), Turn::Wait(pause));
        assert_eq!(schedule.next(Step::Nothing, HOUR * 9), LOOK);
        assert_eq!(schedule.next(Step::Nothing, HOUR * 10), Turn::Begin);
        assert_eq!(schedule.next(Step::Nothing, HOUR * 10), LOOK);
        assert_eq!(schedule.next(Step::Nothing, HOUR * 11 - LOOK_INTERVAL), LOOK);
        // A pass begun on request postpones the next one; a short interval applies from the start.
        assert_eq!(schedule.next(Step::Last, HOUR * 10 + HOUR / 2), LOOK);
        assert_eq!(schedule.next(Step::Nothing, HOUR * 11), LOOK);
        let mut schedule = Schedule::new(Some(pause), HOUR);
        assert_eq!(schedule.next(Step::Nothing, HOUR + pause), Turn::Begin);
    }

    #[test]
    fn without_an_interval_no_pass_begins_by_itself() {
        let mut schedule = Schedule::new(None, Duration::ZERO);
        assert_eq!(schedule.next(Step::Nothing, HOUR * 1000), LOOK);
        assert_eq!(schedule.next(Step::Last, HOUR * 2000), LOOK);
        assert_eq!(schedule.next(Step::Nothing, HOUR * 5000), LOOK);
    }

    #[test]
    fn a_step_that_must_wait_does_not_change_the_schedule() {
        let pause = Duration::from_millis(7);
        let mut schedule = Schedule::new(Some(HOUR), Duration::ZERO);
        assert_eq!(schedule.next(Step::Later(pause), FIRST_PASS), Turn::Wait(pause));
        assert_eq!(schedule.next(Step::Nothing, FIRST_PASS), Turn::Begin);
        assert_eq!(schedule.next(Step::Later(pause), FIRST_PASS), Turn::Wait(pause));
        assert_eq!(schedule.next(Step::Nothing, HOUR), LOOK);
        assert_eq!(schedule.next(Step::Nothing, HOUR * 2 - LOOK_INTERVAL), LOOK);
        assert_eq!(schedule.next(Step::Nothing, HOUR * 2), Turn::Begin);
    }

    #[test]
    fn a_requested_pass_begins_at_once() {
        let mut schedule = Schedule::new(None, Duration::ZERO);
        let mut wanted = |step, now| {
            schedule.want(now);
            schedule.next(step, now)
        };
        assert_eq!(wanted(Step::Nothing, Duration::ZERO), Turn::Begin);
        // It has begun, or another one is in progress: the next begins when that has ended.
        let pause = Duration::from_millis(7);
        assert_eq!(wanted(Step::More(pause), HOUR), Turn::Wait(pause));
        assert_eq!(wanted(Step::Last, HOUR), LOOK);
        assert_eq!(wanted(Step::Nothing, HOUR), Turn::Begin);
    }

    #[test]
    fn hosts_are_busy_while_bytes_move() {
        let counters = Arc::new(Counters::new(1, vec![1]));
        let mut traffic = Traffic::new(counters.clone());
        assert!(!traffic.has_moved());
        let received = &counters.wire_of(0).received_bytes;
        received.fetch_add(48, std::sync::atomic::Ordering::Relaxed);
        assert!(traffic.has_moved() && !traffic.has_moved());
    }
}
