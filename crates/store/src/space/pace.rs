//! Pacing: while free segments are very short, hosts write no faster than space is won for them.
//!
//! Moving what is live in a segment, and writing the checkpoint that frees it, win what was dead
//! there. Without a pace hosts would run until the last free segment is gone, and then wait for a
//! whole one; so they get what is won in small parts, as the work goes on: half of it as it is
//! moved, and half as the checkpoint is written, which wins nothing more. Their writes wait among
//! those that wait for space (`starved`); what needs no space does not wait.
//!
//! One checkpoint may follow another, of metadata that was compacted or as room for it was short.
//! Nothing is kept for hosts then, and they would be silent for as long as it is written. So they
//! get at least a small part of what it writes: each frees segments of data or of metadata, and
//! what must stay free stays in any case (`room`).

/// From this shortage on (in thousandths) hosts are paced.
pub(crate) const PACED_PERMILLE: u64 = 600;

/// Where so little of what is moved is won, moves take longer than checkpoints by far: hosts get
/// all of it at once.
const KEPT_PERMILLE: u64 = 100;

/// Of a checkpoint hosts get at least one in so many of the parts that they get of what is won: a
/// sixteenth where they would have to wait for a whole segment.
const CHECKPOINT_DIVISOR: u64 = 4;

/// What hosts may write for each turn that frees nodes or compacts metadata, and moves no data.
const TURN_BYTES: i64 = 8 << 10;

/// How fast hosts may write.
pub(crate) struct Pace {
    /// What they may write ahead of the work.
    bytes_max: i64,
    /// None while they are not paced.
    now: Option<Budget>,
}

/// What hosts may write.
#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    /// Bytes of log; below zero where a record took more than was left.
    bytes: i64,
    /// Bytes that a thousand bytes that are moved win for them.
    share_permille: u64,
    /// Bytes of log that a thousand bytes of a checkpoint give them at least.
    checkpoint_permille: u64,
    /// What was won and not given yet: they get it while the checkpoint is written that frees it.
    kept_bytes: u64,
}

/// What hosts get of what is won, in thousandths: one and a half times that where the shortage
/// begins to be felt, a quarter where they would have to wait for a whole segment.
fn generosity_permille(shortage_permille: u64) -> u64 {
    let into = shortage_permille.clamp(PACED_PERMILLE, 1000) - PACED_PERMILLE;
    1500 - 1250 * into / (1000 - PACED_PERMILLE)
}

impl Pace {
    /// None, until there is a shortage.
    pub(crate) fn new(bytes_max: u32) -> Self {
        Self { bytes_max: bytes_max.into(), now: None }
    }

    /// What hosts may write now, where they are paced.
    pub(crate) fn budget_bytes(&self) -> Option<i64> {
        self.now.map(|budget| budget.bytes)
    }

    /// A segment is emptied in which so many units are live and dead, at such a shortage.
    pub(crate) fn set(&mut self, shortage_permille: u64, live_units: u64, dead_units: u64) {
        if shortage_permille < PACED_PERMILLE {
            self.now = None;
            return;
        }
        let generosity_permille = generosity_permille(shortage_permille);
        let share_permille = generosity_permille * dead_units / live_units.max(1);
        let checkpoint_permille = generosity_permille / CHECKPOINT_DIVISOR;
        let new = Budget { bytes: self.bytes_max, ..Budget::default() };
        let old = self.now.unwrap_or(new);
        self.now = Some(Budget { share_permille, checkpoint_permille, ..old });
    }

    /// There is nothing to be won: hosts may have what is left.
    pub(crate) fn end(&mut self) {
        self.now = None;
    }

    /// Hosts have taken so much of the log.
    pub(crate) fn spend(&mut self, bytes: u64) {
        if let Some(budget) = &mut self.now {
            budget.bytes -= bytes as i64;
        }
    }

    /// A turn has won space, but there is no figure for how much.
    pub(crate) fn win_turn(&mut self) {
        if let Some(budget) = &mut self.now {
            budget.bytes = (budget.bytes + TURN_BYTES).min(self.bytes_max);
        }
    }

    /// So many bytes of a segment that is emptied were moved.
    pub(crate) fn win(&mut self, moved_bytes: u64) {
        if let Some(budget) = &mut self.now {
            let won = moved_bytes * budget.share_permille / 1000;
            let kept = if budget.share_permille < KEPT_PERMILLE { 0 } else { won / 2 };
            budget.kept_bytes += kept;
            budget.bytes = (budget.bytes + (won - kept) as i64).min(self.bytes_max);
        }
    }

    /// So many bytes of a checkpoint were written, of `left_bytes` that were still to be: gives
    /// hosts that part of what is kept for them, or the least that they get if that is more.
    pub(crate) fn win_by_checkpoint(&mut self, bytes: u64, left_bytes: u64) {
        if let Some(budget) = &mut self.now {
            let part = u128::from(budget.kept_bytes) * u128::from(bytes) / u128::from(left_bytes);
            let given = budget.kept_bytes.min(part as u64);
            budget.kept_bytes -= given;
            let least = bytes * budget.checkpoint_permille / 1000;
            let room = (self.bytes_max - budget.bytes).max(0) as u64;
            budget.bytes += given.max(least.min(room)) as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_get_less_of_what_is_won_the_shorter_it_is() {
        assert_eq!([0, 600, 800, 1000, 2000].map(generosity_permille), [1500, 1500, 875, 250, 250]);
    }

    /// What is given for a checkpoint of 16 MiB in 64 parts, of which the hosts use all at once.
    fn given_by_a_checkpoint(pace: &mut Pace) -> Vec<i64> {
        let (part, total) = (256 << 10, 16 << 20);
        let parts = (0..64).map(|done| {
            let before = pace.budget_bytes().unwrap();
            pace.win_by_checkpoint(part, total - done * part);
            let given = pace.budget_bytes().unwrap() - before;
            pace.spend(given as u64);
            given
        });
        parts.collect()
    }

    #[test]
    fn a_checkpoint_right_after_another_lets_hosts_go_on() {
        let mut pace = Pace::new(1 << 20);
        pace.set(1000, 1000, 1000);
        pace.spend(1 << 20);
        pace.win(64 << 20);
        pace.spend(pace.budget_bytes().unwrap() as u64);
        let kept = given_by_a_checkpoint(&mut pace);
        assert_eq!(kept.iter().sum::<i64>(), 8 << 20, "half of what was won");
        let least = given_by_a_checkpoint(&mut pace);
        assert!(least.iter().all(|given| *given == (256 << 10) * 62 / 1000), "{least:?}");
    }

    #[test]
    fn hosts_that_write_little_save_up_no_more_by_checkpoints() {
        let mut pace = Pace::new(1 << 20);
        pace.set(600, 1000, 1000);
        for _ in 0..100 {
            pace.win_by_checkpoint(1 << 20, 1 << 20);
        }
        assert_eq!(pace.budget_bytes(), Some(1 << 20));
    }
}
