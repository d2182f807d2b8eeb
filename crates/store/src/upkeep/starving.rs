//! Turns for what waits for space, and what hosts get of what is won.

use crate::space::need::Need;
use crate::upkeep::Store;

/// The most work while no job is fed, or all that the pool has if that is less: 1 GiB. Longer than
/// that takes no host waits.
const WORK_BYTES_MAX: u64 = 1 << 30;
impl Store {
    /// Lets jobs go on for which there is space now; whether others still wait for some.
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

    /// The most work for what waits while nothing is fed.
    pub(crate) fn work_bytes_max(&self) -> u64 {
        self.world.medium.geometry().pool_bytes().min(WORK_BYTES_MAX)
    }

    /// Begins a turn for what waits for space: see invariants 3 and 4.
    pub(crate) fn refuse_overdue(&self) {
        let most = self.work_bytes_max();
        let answers = self.writer.lock().refuse_overdue(&self.world, most);
        if !answers.is_empty() {
            self.answer(answers);
            self.hand_over();
        }
    }

    /// No checkpoint finds room: refuses what waits for the memory that one would bring back.
    pub(crate) fn refuse_for_memory(&self) {
        let answers = self.writer.lock().refuse_for_memory(&self.world);
        self.answer(answers);
        self.hand_over();
    }

    /// Refuses what waits for space, because there is none to be had for this.
    pub(crate) fn refuse_starving(&self, need: Need) {
        let answers = self.writer.lock().refuse_starved(&self.world, need);
        self.answer(answers);
        self.hand_over();
    }

    /// A turn has freed dropped nodes, or compacted metadata. That may go on for seconds, so hosts
    /// may write a little for each turn.
    pub(crate) fn worked_a_turn(&self) {
        self.writer.lock().pace.win_turn();
    }

    /// So many bytes were moved to bring back space: lets hosts have half of what that wins.
    pub(crate) fn moved(&self, bytes: u64) {
        {
            let mut writer = self.writer.lock();
            writer.count_work(bytes);
            writer.pace.win(bytes);
        }
        self.is_starving();
    }

    /// So many bytes of a checkpoint were written, of `left_bytes` that were still to be: lets
    /// hosts have as much of the other half.
    pub(crate) fn checkpointed(&self, bytes: u64, left_bytes: u64) {
        {
            let mut writer = self.writer.lock();
            writer.count_work(bytes);
            writer.pace.win_by_checkpoint(bytes, left_bytes.max(bytes));
        }
        self.is_starving();
    }
}
