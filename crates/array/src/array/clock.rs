//! Array time passes as the caller reports the time: see [`crate::tables::time`].

use store::Change;

use super::Array;
use crate::error::Error;
use crate::record;

impl Array {
    /// Reports the time of the wall clock, in milliseconds since 1970, and of a monotonic clock, in
    /// milliseconds. Call it about once a second. Returns by how many milliseconds the wall clock
    /// has jumped since the last call: 0 unless it is more than a minute. At the first call after a
    /// start, all but 10 minutes of the time for which the array was off count as a jump.
    ///
    /// # Errors
    /// Those of the store, which stores the time every few minutes while something is destroyed or
    /// a released LUN rests.
    /// The reported time is in effect nevertheless.
    pub fn pass_time(&self, wall_ms: u64, uptime_ms: u64) -> (i64, Result<(), Error>) {
        let (jump_ms, is_wanted) = {
            let state = &mut *self.write();
            let jump_ms = state.time.pass(wall_ms, uptime_ms);
            let are_doomed = !state.doomed().is_empty() || !state.doomed_groups().is_empty();
            (jump_ms, are_doomed || state.releases.is_any_resting(state.time.known_ms()))
        };
        (jump_ms, if is_wanted { self.keep_time() } else { Ok(()) })
    }

    /// Returns the last jump of the clock within the last day, in milliseconds; negative if it went
    /// back. `None` if there was none while the array ran.
    pub fn clock_jump_ms(&self) -> Option<i64> {
        self.read().time.recent_jump_ms()
    }

    fn keep_time(&self) -> Result<(), Error> {
        if self.read().time.due_record().is_none() {
            return Ok(());
        }
        let _turn = self.turn();
        let Some(record) = self.read().time.due_record() else { return Ok(()) };
        let config = vec![record::time_row(record)?];
        self.backing().change(Change { config, ..Change::default() })?;
        self.write().time.stored(record);
        Ok(())
    }
}
