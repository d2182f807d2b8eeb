//! Background work, with requests between its I/Os.

use std::sync::Arc;

use store::{Durability, Next, ScrubStep, Store, StoreError};

use super::{Pool, World};
use crate::commits::Ground;
use crate::desk::Desk;
use crate::history::{Meanwhile, beside, locked};

/// The number of successive urgent turns.
const MAINTAIN_TURNS: usize = 100;

impl World {
    fn act<R>(
        &self,
        store: &Arc<Store>,
        meanwhile: Meanwhile,
        act: impl FnOnce(&Store) -> R,
    ) -> Result<R, String> {
        let set_hook = |hook| self.power.set_hook(hook);
        beside((&self.desk, store), self.plan.steps_beside, meanwhile, set_hook, act)
    }

    /// As long as one disk is healthy, nothing fails.
    fn done<T>(&self, what: &str, result: Result<T, StoreError>) -> Result<Option<T>, String> {
        match result {
            Ok(done) => Ok(Some(done)),
            Err(_) if self.power.has_failed() => Ok(None),
            Err(error) => Err(format!("{what}: {error}")),
        }
    }

    pub(super) fn checkpoint(&mut self, pool: &Pool) -> Result<(), String> {
        let mut meanwhile: Meanwhile = Desk::step;
        if self.plan.durability == Durability::Flush {
            // It waits for the commits in flight, which nothing else would finish.
            locked(&self.desk).finish_commits(&pool.store)?;
            meanwhile = Desk::step_beside;
        }
        if self.power.has_failed() {
            return Ok(());
        }
        self.power.note("checkpoint");
        let result = self.act(&pool.store, meanwhile, Store::checkpoint)?;
        self.seen.checkpoints += u64::from(self.done("checkpoint", result)?.is_some());
        locked(&self.desk).collect()
    }

    pub(super) fn maintain(&mut self, pool: &Pool) -> Result<(), String> {
        locked(&self.desk).finish_commits(&pool.store)?;
        for _ in 0..MAINTAIN_TURNS {
            if self.power.has_failed() {
                break;
            }
            self.power.note("maintain");
            let next = self.act(&pool.store, Desk::step_beside, Store::maintain)?;
            if self.done("maintain", next)? != Some(Next::AtOnce) {
                break;
            }
        }
        locked(&self.desk).collect()
    }

    /// Does a turn of reclaim, or a step of scrubbing.
    pub(super) fn background(&mut self, pool: &Pool) -> Result<(), String> {
        locked(&self.desk).finish_commits(&pool.store)?;
        if self.power.has_failed() {
            return Ok(());
        }
        if self.rng.chance(50) {
            self.power.note("reclaim");
            // There may be nothing to reclaim.
            drop(self.act(&pool.store, Desk::step_beside, Store::reclaim_segment)?);
        } else {
            self.power.note("scrub");
            pool.store.scrub_start(1);
            let budget_blocks = self.rng.between(1, 2000);
            let scrub = |store: &Store| store.scrub_step(budget_blocks, 2);
            let step = self.act(&pool.store, Desk::step_beside, scrub)?;
            let step = self.done("scrubbing", step)?;
            if let Some(ScrubStep::Idle | ScrubStep::Busy) = step {
                return Err("no scrubbing".into());
            }
        }
        locked(&self.desk).collect()
    }
}
