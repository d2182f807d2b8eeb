//! Turns for jobs that wait for space, and the share of hosts in what is recovered.

use crate::space::need::Need;
use crate::upkeep::Store;

/// The maximum work while no job is admitted, or the size of the pool if that is less: 1 GiB. Hosts
/// don't wait longer than that takes.
const WORK_BYTES_MAX: u64 = 1 << 30;
impl Store {
    /// Continues jobs for which there is space now; returns whether others still wait.
    pub(crate) fn is_starving(&self) -> bool {
        let (answers, starving) = {
            let mut writer = self.writer.lock();
            if !writer.queues.has_starved() {
                return false;
            }
            let mut answers = Vec::new();
            writer.take_waiting(&self.world, &mut answers);
            (answers, writer.queues.has_starved())
        };
        self.answer(answers);
        self.hand_over();
        starving
    }

    /// Returns the maximum work while no waiting job is admitted.
    pub(crate) fn work_bytes_max(&self) -> u64 {
        self.world.medium.geometry().pool_bytes().min(WORK_BYTES_MAX)
    }

    /// Begins a turn for jobs that wait for space: see invariants 3 and 4 of `starved`.
    pub(crate) fn refuse_overdue(&self) {
        let most = self.work_bytes_max();
        let answers = self.writer.lock().refuse_overdue(&self.world, most);
        if !answers.is_empty() {
            self.answer(answers);
            self.hand_over();
        }
    }

    /// Refuses jobs that wait for the memory that a checkpoint would free, because none finds room.
    pub(crate) fn refuse_for_memory(&self) {
        let answers = self.writer.lock().refuse_for_memory(&self.world);
        self.answer(answers);
        self.hand_over();
    }

    /// Refuses jobs that wait for space, because there is none for this need.
    pub(crate) fn refuse_starving(&self, need: Need) {
        let answers = self.writer.lock().refuse_starved(&self.world, need);
        self.answer(answers);
        self.hand_over();
    }

    /// Records a turn that has freed dropped nodes, or compacted metadata. That may take seconds,
    /// so hosts may write a little for each turn.
    pub(crate) fn worked_a_turn(&self) {
        self.writer.lock().pace.win_turn();
    }

    /// Records that this many bytes were moved to recover space: hosts get half of what that gains.
    pub(crate) fn moved(&self, bytes: u64) {
        {
            let mut writer = self.writer.lock();
            writer.count_work(bytes);
            writer.pace.win(bytes);
        }
        self.is_starving();
    }

    /// Records that this many bytes of a checkpoint were written, of `left_bytes` that were still
    /// to be: hosts get that fraction of the other half.
    pub(crate) fn checkpointed(&self, bytes: u64, left_bytes: u64) {
        {
            let mut writer = self.writer.lock();
            writer.count_work(bytes);
            writer.pace.win_by_checkpoint(bytes, left_bytes.max(bytes));
        }
        self.is_starving();
    }
}
