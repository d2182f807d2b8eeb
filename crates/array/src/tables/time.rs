//! Array time: how much time has passed for the array. The delay before eradication is counted in
//! array time, so a clock that jumps does not shorten the delay.
//!
//! Array time advances with the wall clock while that agrees with the monotonic clock. If they
//! diverge by more than a minute, the wall clock was set or the machine was suspended: the
//! difference does not count. The pool stores both times every few minutes. The time of a restart
//! counts, but [`OFF_MAX_MS`] at most, because the clock may be wrong.
//!
//! In a pool without such a record, array time begins with the wall clock.

use crate::objects::time::TimeRecord;

/// The maximum drift between the wall clock and the monotonic clock.
const DRIFT_MAX_MS: i64 = 60_000;

/// The maximum time between the last record and a start that counts.
const OFF_MAX_MS: u64 = 600_000;

/// The maximum age of the record while something is destroyed or a released LUN rests; less than
/// [`OFF_MAX_MS`].
pub(crate) const RECORD_MS: u64 = 300_000;

/// For how long retention destroys nothing after the clock has jumped ahead.
const HOLD_MS: u64 = 3_600_000;

/// How long a jump of the clock is reported: one day.
const JUMP_REPORT_MS: u64 = 86_400_000;

/// The time of the array.
#[derive(Debug, Default)]
pub(crate) struct ArrayTime {
    /// The difference of the wall clock to array time.
    skew_ms: i64,
    /// The array time at the last [`Array::pass_time`]; `None` before the first.
    now_ms: Option<u64>,
    wall_ms: u64,
    /// The wall clock and the monotonic clock when the skew was determined.
    anchor: Option<(u64, u64)>,
    /// The record in the pool.
    stored: Option<TimeRecord>,
    /// Whether the clock has jumped since that was stored.
    has_jumped: bool,
    hold_until_ms: u64,
    /// The last jump of the clock while the array ran, in milliseconds, and its array time.
    last_jump: Option<(i64, u64)>,
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

impl ArrayTime {
    pub(crate) fn load(&mut self, stored: TimeRecord) {
        self.skew_ms = signed(stored.wall_ms).saturating_sub(signed(stored.array_ms));
        self.stored = Some(stored);
    }

    /// Updates array time with the times of both clocks. Returns by how much the wall clock has
    /// jumped, in milliseconds.
    pub(crate) fn pass(&mut self, wall_ms: u64, uptime_ms: u64) -> i64 {
        let expected_ms = match (self.anchor, self.stored) {
            (Some((wall, uptime)), _) => wall.saturating_add(uptime_ms.saturating_sub(uptime)),
            (None, Some(stored)) => {
                wall_ms.clamp(stored.wall_ms, stored.wall_ms.saturating_add(OFF_MAX_MS))
            }
            (None, None) => wall_ms,
        };
        let jump_ms = signed(wall_ms).saturating_sub(signed(expected_ms));
        let was_running = self.anchor.is_some();
        let has_jumped = jump_ms.saturating_abs() > DRIFT_MAX_MS;
        if has_jumped {
            self.skew_ms = self.skew_ms.saturating_add(jump_ms);
            self.has_jumped = true;
        }
        if has_jumped || self.anchor.is_none() {
            self.anchor = Some((wall_ms, uptime_ms));
        }
        self.wall_ms = wall_ms;
        let now_ms = self.of_wall(wall_ms).max(self.now_ms.unwrap_or(0));
        self.now_ms = Some(now_ms);
        if has_jumped && was_running {
            self.last_jump = Some((jump_ms, now_ms));
        }
        if has_jumped && jump_ms > 0 {
            self.hold_until_ms = now_ms.saturating_add(HOLD_MS);
        }
        if has_jumped { jump_ms } else { 0 }
    }

    fn of_wall(&self, wall_ms: u64) -> u64 {
        u64::try_from(signed(wall_ms).saturating_sub(self.skew_ms)).unwrap_or(0)
    }

    /// Returns the array time; derived from `wall_ms` if [`ArrayTime::pass`] was never called.
    pub(crate) fn now(&self, wall_ms: u64) -> u64 {
        self.now_ms.unwrap_or_else(|| self.of_wall(wall_ms))
    }

    /// Returns the array time, as far as it is known: that of the record before the first
    /// [`ArrayTime::pass`].
    pub(crate) fn known_ms(&self) -> u64 {
        self.now_ms.or(self.stored.map(|stored| stored.array_ms)).unwrap_or(0)
    }

    /// Returns the array time from which a delay is counted: that of `wall_ms` if the clock has
    /// advanced since the last [`ArrayTime::pass`].
    pub(crate) fn beginning(&self, wall_ms: u64) -> u64 {
        self.now(wall_ms).max(self.of_wall(wall_ms))
    }

    /// Returns an array time as a time of the wall clock, in milliseconds since 1970, assuming that
    /// it does not jump.
    pub(crate) fn shown(&self, array_ms: u64) -> u64 {
        u64::try_from(signed(array_ms).saturating_add(self.skew_ms)).unwrap_or(0)
    }

    /// Returns whether retention waits, because the clock has recently jumped ahead.
    pub(crate) fn is_held(&self) -> bool {
        self.now_ms.is_some_and(|now| now < self.hold_until_ms)
    }

    /// See [`crate::Array::clock_jump_ms`].
    pub(crate) fn recent_jump_ms(&self) -> Option<i64> {
        let (jump_ms, at_ms) = self.last_jump?;
        (self.now_ms? - at_ms < JUMP_REPORT_MS).then_some(jump_ms)
    }

    /// Returns the record to store, if one is due.
    pub(crate) fn due_record(&self) -> Option<TimeRecord> {
        let now = TimeRecord { array_ms: self.now_ms?, wall_ms: self.wall_ms };
        let is_old = |kept: TimeRecord| now.array_ms.saturating_sub(kept.array_ms) >= RECORD_MS;
        (self.has_jumped || self.stored.is_none_or(is_old)).then_some(now)
    }

    pub(crate) fn stored(&mut self, record: TimeRecord) {
        self.stored = Some(record);
        self.has_jumped = false;
    }
}
