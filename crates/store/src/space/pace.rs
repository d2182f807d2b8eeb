//! Pacing: when free segments are very short, hosts write no faster than space is freed for them.
//!
//! Moving the live data of a segment, and writing the checkpoint that frees it, recovers its dead
//! bytes. Without pacing hosts would run until the last free segment is used, and then wait for a
//! whole one; so they get what is recovered in small parts, as the work proceeds: half of it as
//! data is moved, and half as the checkpoint is written. Their writes wait among those that wait
//! for space (`starved`); what needs no space does not wait.
//!
//! One checkpoint may follow another, for compacted metadata or because room for it was short. Then
//! nothing is left for hosts, and they would stall while it is written. So they get at least a
//! small part of what it writes: each frees segments of data or of metadata, and what must stay
//! free stays in any case (`room`).

/// The shortage (in thousandths) from which on hosts are paced.
pub(crate) const PACED_PERMILLE: u64 = 600;

/// If less than this fraction of what is moved is recovered, moves take much longer than
/// checkpoints: hosts then get all of it at once.
const KEPT_PERMILLE: u64 = 100;

/// The divisor for the minimum that hosts get of a checkpoint, relative to their share of what is
/// recovered: a sixteenth if they would otherwise have to wait for a whole segment.
const CHECKPOINT_DIVISOR: u64 = 4;

/// What hosts may write for each turn that frees nodes or compacts metadata, and moves no data.
const TURN_BYTES: i64 = 8 << 10;

/// How fast hosts may write.
pub(crate) struct Pace {
    /// How far they may run ahead of the work.
    bytes_max: i64,
    /// None while they are not paced.
    now: Option<Budget>,
}

/// What hosts may write.
#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    /// Bytes of log; negative if a record took more than was left.
    bytes: i64,
    /// Bytes recovered for them per thousand bytes moved.
    share_permille: u64,
    /// The minimum bytes of log for them per thousand bytes of a checkpoint.
    checkpoint_permille: u64,
    /// What was recovered and not granted yet: they get it while the checkpoint that frees it is
    /// written.
    kept_bytes: u64,
}

/// Returns the fraction of what is recovered that hosts get, in thousandths: one and a half times
/// all of it at the beginning of the shortage, a quarter if they would have to wait for a whole
/// segment.
fn generosity_permille(shortage_permille: u64) -> u64 {
    let into = shortage_permille.clamp(PACED_PERMILLE, 1000) - PACED_PERMILLE;
    1500 - 1250 * into / (1000 - PACED_PERMILLE)
}

impl Pace {
    /// Creates a pace without limit, until there is a shortage.
    pub(crate) fn new(bytes_max: u32) -> Self {
        Self { bytes_max: bytes_max.into(), now: None }
    }

    /// Returns what hosts may write now, if they are paced.
    pub(crate) fn budget_bytes(&self) -> Option<i64> {
        self.now.map(|budget| budget.bytes)
    }

    /// Sets the pace for emptying a segment with this many live and dead units, at this shortage.
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

    /// Ends pacing: nothing can be recovered, so hosts may have what is left.
    pub(crate) fn end(&mut self) {
        self.now = None;
    }

    /// Charges bytes of log to hosts.
    pub(crate) fn spend(&mut self, bytes: u64) {
        if let Some(budget) = &mut self.now {
            budget.bytes -= bytes as i64;
        }
    }

    /// Grants hosts a fixed amount for a turn that has freed an unknown amount.
    pub(crate) fn win_turn(&mut self) {
        if let Some(budget) = &mut self.now {
            budget.bytes = (budget.bytes + TURN_BYTES).min(self.bytes_max);
        }
    }

    /// Grants hosts their share for bytes moved from a segment that is being emptied.
    pub(crate) fn win(&mut self, moved_bytes: u64) {
        if let Some(budget) = &mut self.now {
            let won = moved_bytes * budget.share_permille / 1000;
            let kept = if budget.share_permille < KEPT_PERMILLE { 0 } else { won / 2 };
            budget.kept_bytes += kept;
            budget.bytes = (budget.bytes + (won - kept) as i64).min(self.bytes_max);
        }
    }

    /// Grants hosts their share for `bytes` of a checkpoint, of which `left_bytes` were still to be
    /// written: that fraction of what is kept for them, or the minimum if that is more.
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
    fn the_share_of_hosts_shrinks_as_space_gets_shorter() {
        assert_eq!([0, 600, 800, 1000, 2000].map(generosity_permille), [1500, 1500, 875, 250, 250]);
    }

    /// Returns what is granted for a checkpoint of 16 MiB in 64 parts, each of which hosts use at
    /// once.
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
    fn hosts_continue_during_a_second_checkpoint_in_a_row() {
        let mut pace = Pace::new(1 << 20);
        pace.set(1000, 1000, 1000);
        pace.spend(1 << 20);
        pace.win(64 << 20);
        pace.spend(pace.budget_bytes().unwrap() as u64);
        let kept = given_by_a_checkpoint(&mut pace);
        assert_eq!(kept.iter().sum::<i64>(), 8 << 20, "half of what was recovered");
        let least = given_by_a_checkpoint(&mut pace);
        assert!(least.iter().all(|given| *given == (256 << 10) * 62 / 1000), "{least:?}");
    }

    #[test]
    fn hosts_that_write_little_do_not_accumulate_budget_from_checkpoints() {
        let mut pace = Pace::new(1 << 20);
        pace.set(600, 1000, 1000);
        for _ in 0..100 {
            pace.win_by_checkpoint(1 << 20, 1 << 20);
        }
        assert_eq!(pace.budget_bytes(), Some(1 << 20));
    }
}
