//! One turn of background work, and its order.

use crate::StoreError;
use crate::edits::preload;
use crate::map::tree::Editor;
use crate::space::need::Need;
use crate::upkeep::Store;
use crate::upkeep::read_ahead::ReadAhead;
use crate::world::view::View;

/// What is left to do in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, for now.
    Nothing,
    /// Work that can be spread over time: hosts are busy, and each turn delays them.
    Gently,
    /// Work in step with the hosts: check again in a few milliseconds.
    Soon,
    /// Work that is urgent, or that delays no request.
    AtOnce,
}

/// The number of nodes freed in one turn of housekeeping: this blocks the writer for some tenths of
/// a millisecond. Each is a leaf of 1 MiB or covers 256 MiB and more, so a turn every 2 ms frees 1
/// TiB a second of shared data, and 8 GiB of unshared data.
const HOUSEKEEPING_NODES: usize = 16;
/// The number of such batches in one turn while hosts wait for space: nothing is cheaper to free.
const HOUSEKEEPING_TIMES: usize = 8;

impl Store {
    /// Does one turn of background work: freeing dropped parts of maps, refilling the index after a
    /// start, a due checkpoint, moving a part of a segment that is being reclaimed. Answers jobs
    /// that wait for space.
    ///
    /// # Errors
    /// Those of the store and of its device.
    pub fn maintain(&self) -> Result<Next, StoreError> {
        self.maintain_with(&mut ReadAhead::none())
    }

    /// Does the same for a thread that does turn after turn: what it moves next is read meanwhile.
    ///
    /// # Errors
    /// As [`Store::maintain`].
    pub fn maintain_with(&self, ahead: &mut ReadAhead) -> Result<Next, StoreError> {
        match self.maintain_turn(ahead) {
            // Nothing has changed. What waits for space or memory is refused; reads continue, and
            // writes do once the pool has grown or something was removed.
            Err(StoreError::NoRoom { needed_bytes, free_bytes }) => {
                if self.is_pass_why(&self.checkpointing.lock()) {
                    return Ok(Next::Soon);
                }
                self.refuse_starving(Need::Upkeep);
                self.refuse_for_memory();
                Err(StoreError::NoRoom { needed_bytes, free_bytes })
            }
            result => result,
        }
    }

    fn maintain_turn(&self, ahead: &mut ReadAhead) -> Result<Next, StoreError> {
        self.refuse_overdue();
        self.revive_forgotten();
        let dropped = self.housekeep();
        if dropped {
            self.worked_a_turn();
        }
        let more = dropped | self.world.refill_index();
        if self.has_bad_copies() {
            self.repair_copies()?;
            return Ok(Next::AtOnce);
        }
        if self.checkpoint_due() {
            self.checkpoint()?;
            return Ok(Next::AtOnce);
        }
        let starving = self.is_starving();
        if starving && dropped && (1..HOUSEKEEPING_TIMES).all(|_| self.housekeep()) {
            return self.reclaim_beside(ahead);
        }
        // Before reclaim, which never ends while hosts overwrite a full pool; but not while they
        // wait for it.
        let lacks = !starving && self.catch_up_turn();
        if starving || self.reclaim_due() {
            match self.reclaim_turn(ahead)? {
                Next::Nothing => {}
                next => return Ok(next),
            }
        }
        let mirrors = self.mirror_turn()?;
        let lays = !starving && self.lay_turn()?;
        let more = more | mirrors | lacks | lays;
        let idle = self.writer.lock().is_idle();
        if !more && idle {
            self.note_rest();
        }
        let more = more || self.discard_turn();
        Ok(match (more, idle) {
            (false, _) => Next::Nothing,
            (true, true) => Next::AtOnce,
            (true, false) if dropped => Next::Soon,
            (true, false) => Next::Gently,
        })
    }

    /// Writes a record after the last one, if the log was idle since the previous call.
    pub(crate) fn note_rest(&self) {
        let begun = {
            let mut writer = self.writer.lock();
            writer.log.has_rested() && writer.begin_rest(&self.world)
        };
        if begun {
            self.commit_here();
        }
    }

    fn revive_forgotten(&self) {
        let mut answers = Vec::new();
        {
            let mut writer = self.writer.lock();
            if !writer.forgets_some(&self.world) {
                return;
            }
            writer.take_waiting(&self.world, &mut answers);
        }
        self.answer(answers);
        self.hand_over();
    }

    /// Frees unreferenced nodes, some at a time; returns whether more are left. What they refer to
    /// is read before the writer is locked.
    pub fn housekeep(&self) -> bool {
        self.read_released();
        let next = {
            let mut writer = self.writer.lock();
            if writer.has_failed() || writer.state.pending.is_empty() {
                return false;
            }
            let count = writer.nodes_to_free(&self.world, HOUSEKEEPING_NODES);
            let pending = &writer.state.pending;
            pending[pending.len().saturating_sub(count)..].to_vec()
        };
        if next.is_empty() {
            // A checkpoint allows more to be freed. If it does not fit, that waits.
            return self.checkpoint().is_ok();
        }
        let plan = self.world.memory.plans.hold();
        for id in &next {
            // What can't be read is put aside below.
            let _ = preload::freeing(View::from(&self.world).planning(plan.number), *id);
        }
        let mut writer = self.writer.lock();
        if writer.has_failed() {
            return false;
        }
        writer.turn_plans(&self.world);
        // Commits may have freed some of them meanwhile, and dropped others.
        let pending = &mut writer.state.pending;
        let end = pending.split_off(pending.len().saturating_sub(next.len()));
        let (found, others): (Vec<_>, Vec<_>) = end.into_iter().partition(|id| next.contains(id));
        pending.extend(others);
        let mut editor = Editor { world: &self.world, state: &mut writer.state };
        if found.into_iter().rev().any(|id| editor.free_node(id).is_err()) {
            writer.fail();
            return false;
        }
        !writer.state.pending.is_empty()
    }

    /// Reads the rows of abandoned staged chunks, so that a record can release them. Unreadable
    /// ones stay until a recovery.
    fn read_released(&self) {
        let released = self.writer.lock().released().to_vec();
        if released.is_empty() {
            return;
        }
        let plan = self.world.memory.plans.hold();
        let view = View::from(&self.world).planning(plan.number);
        let there = |(first, count): &(_, u32)| preload::are_rows_there(view, *first, *count);
        let lost: Vec<_> = released.into_iter().filter(|run| !there(run)).collect();
        let mut writer = self.writer.lock();
        writer.leave_released(&lost);
        if !writer.has_failed() {
            writer.log_released(&self.world);
        }
    }

    /// Returns whether [`Store::maintain`] would find something to do.
    pub fn maintenance_due(&self) -> bool {
        let writer = &mut *self.writer.lock();
        !writer.has_failed() && (writer.has_to_free() || writer.queues.has_starved())
            || writer.forgets_some(&self.world)
            || self.world.refill_due()
            || self.has_bad_copies()
            || self.catch_up.is_under_way()
            || self.is_laying_due(writer)
            || writer.is_mirroring_due(self.metadata_units())
            || writer.is_dividing_due(&self.world)
            || writer.state.segments.has_to_discard(self.world.medium.segments_wanted())
            || self.checkpoint_due_of(writer)
            || self.reclaim_due_of(writer)
    }
}
