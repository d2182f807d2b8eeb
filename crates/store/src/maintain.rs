//! One turn of what goes on in the background, and what is done first.

use crate::StoreError;
use crate::map::Editor;
use crate::store::Store;

/// What is left to do in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, for now.
    Nothing,
    /// Something that can be spread over time: hosts are busy, and each turn holds them up.
    Gently,
    /// Something that goes on as hosts go on: look again in a few milliseconds.
    Soon,
    /// Something that is urgent, or that nobody minds.
    AtOnce,
}

/// Nodes freed in one turn of housekeeping: the writer is held for some tenths of a millisecond.
const HOUSEKEEPING_NODES: usize = 8;

impl Store {
    /// One turn of what goes on in the background: freeing dropped parts of maps, bringing back the
    /// index behind a start, a checkpoint that is due, moving some of a segment that is reclaimed.
    /// Jobs that wait for space are answered by it.
    ///
    /// # Errors
    /// Those of the store and of its device.
    pub fn maintain(&self) -> Result<Next, StoreError> {
        let dropped = self.housekeep();
        let more = dropped | self.world.refill_index();
        if self.checkpoint_due() {
            self.checkpoint()?;
            return Ok(Next::AtOnce);
        }
        let starving = self.is_starving();
        if starving && dropped {
            // What was dropped is the cheapest space of all.
            return Ok(Next::AtOnce);
        }
        if starving || self.reclaim_due() {
            match self.reclaim_turn()? {
                Next::Nothing => {}
                next => return Ok(next),
            }
        }
        let idle = self.writer.lock().is_idle();
        Ok(match (more, idle) {
            (false, _) => Next::Nothing,
            (true, true) => Next::AtOnce,
            (true, false) => Next::Gently,
        })
    }

    /// Frees nodes that nothing names any more, some at a time; returns whether more are left.
    pub fn housekeep(&self) -> bool {
        let mut writer = self.writer.lock();
        if writer.failed || writer.state.pending.is_empty() {
            return false;
        }
        let mut editor = Editor { world: &self.world, state: &mut writer.state };
        if editor.free_pending(HOUSEKEEPING_NODES).is_err() {
            writer.failed = true;
            return false;
        }
        !writer.state.pending.is_empty()
    }

    /// Whether [`Store::maintain`] would find something to do.
    pub fn maintenance_due(&self) -> bool {
        let writer = &mut *self.writer.lock();
        !writer.failed && (!writer.state.pending.is_empty() || !writer.starved.is_empty())
            || self.world.refill_due()
            || self.checkpoint_due_of(writer)
            || self.reclaim_due_of(writer)
    }
}
