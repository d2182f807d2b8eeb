//! Background work and growing: the world continues between their I/Os.

use std::sync::{Arc, Mutex, PoisonError};

use format::geometry::SEGMENT_BYTES_MIN;
use store::{Durability, Finding, Next, Repair, ScrubStep, Store, StoreError, What};

use super::{History, locked};
use crate::desk::Desk;
use crate::disk::Hook;
use crate::plan::Plan;

/// What the requests in flight do between two I/Os of other work.
pub(crate) type Meanwhile = fn(&mut Desk, &Store) -> Result<(), String>;

/// The number of successive urgent turns: moving a segment of 16 MiB takes 64 of them. The array's
/// own thread has no such limit; with much fewer, paced hosts would make little progress, and the
/// pool would never become full.
const MAINTAIN_TURNS: usize = 100;
/// The maximum number of segments by which a pool grows at once.
const GROWTH_SEGMENTS_MAX: u64 = 3;

/// Does blocking work; requests proceed by this many steps after each of its writes or flushes,
/// called by `set_hook`.
pub(crate) fn beside<R>(
    (desk, store): (&Arc<Mutex<Desk>>, &Arc<Store>),
    steps: usize,
    meanwhile: Meanwhile,
    set_hook: impl Fn(Option<Hook>),
    act: impl FnOnce(&Store) -> R,
) -> Result<R, String> {
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    let (desk, inside, seen) = (desk.clone(), store.clone(), failure.clone());
    set_hook(Some(Box::new(move || {
        let mut desk = locked(&desk);
        let mut result = Ok(());
        for _ in 0..steps {
            if !desk.disk.has_failed() {
                result = result.and_then(|()| meanwhile(&mut desk, &inside));
            }
        }
        if let Err(reason) = result {
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
        }
    })));
    let result = act(store);
    set_hook(None);
    match failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(reason) => Err(reason),
        None => Ok(result),
    }
}

impl History {
    /// Does blocking work, while requests proceed between its I/Os.
    pub(super) fn act<R>(
        &self,
        store: &Arc<Store>,
        meanwhile: Meanwhile,
        act: impl FnOnce(&Store) -> R,
    ) -> Result<R, String> {
        let set_hook = |hook| self.disk.set_hook(hook);
        let steps = self.plan.steps_beside;
        beside((&self.desk, store), steps, meanwhile, set_hook, act)
    }

    /// Does a turn of reclaim, of the background pass, or of scrubbing. They wait for commits of
    /// their own.
    pub(super) fn background(&mut self, store: &Arc<Store>) -> Result<(), String> {
        locked(&self.desk).finish_commits(store)?;
        if self.disk.has_failed() {
            return Ok(());
        }
        self.done.turns += 1;
        // Reads and writes may fail here as anywhere: the model checks the consequences.
        match self.rng.weighted(&[3, 3, 2]) {
            0 => {
                self.disk.note("reclaim");
                drop(self.act(store, Desk::step_beside, Store::reclaim_segment)?);
            }
            1 => {
                self.disk.note("background pass");
                store.optimize();
                drop(self.act(store, Desk::step_beside, Store::optimize_step)?);
            }
            _ => self.scrub(store)?,
        }
        locked(&self.desk).collect()
    }

    /// Does what the array's own thread does all the time: without it no space would be reclaimed.
    pub(super) fn maintain(&mut self, store: &Arc<Store>) -> Result<(), String> {
        locked(&self.desk).finish_commits(store)?;
        for _ in 0..MAINTAIN_TURNS {
            if self.disk.has_failed() {
                break;
            }
            self.disk.note("maintain");
            let next = self.act(store, Desk::step_beside, Store::maintain)?;
            if !matches!(next, Ok(Next::AtOnce)) {
                break;
            }
        }
        locked(&self.desk).collect()
    }

    /// Does a step of a scrubbing pass. Everything was written correctly, so it may find only a bad
    /// superblock, and a record that a crash has torn, which recovery has from the copy in the next
    /// one.
    fn scrub(&mut self, store: &Arc<Store>) -> Result<(), String> {
        self.disk.note("scrub");
        store.scrub_start(1);
        let budget_blocks = self.rng.between(1, 2000);
        let step =
            self.act(store, Desk::step_beside, |store| store.scrub_step(budget_blocks, 2))?;
        match step {
            Ok(ScrubStep::Idle | ScrubStep::Busy) => {
                Err(format!("scrubbing was {step:?} although a pass had started"))
            }
            Ok(_) => {
                let may_be = |finding: &Finding| match finding.what {
                    What::Superblock(_) | What::Label(_) => self.plan.bad_places,
                    What::Record(_) => self.done.crashes > 0 && finding.repair == Repair::Done,
                    _ => false,
                };
                match store.damage().findings.iter().find(|finding| !may_be(finding)) {
                    Some(finding) => Err(format!("scrubbing found {finding:?}")),
                    None => Ok(()),
                }
            }
            Err(_) if self.disk.has_failed() => Ok(()),
            Err(error) => Err(format!("scrubbing: {error}")),
        }
    }

    /// Writes a checkpoint.
    pub(super) fn checkpoint(&mut self, store: &Arc<Store>) -> Result<(), String> {
        let done = self.checkpoint_like(store, "checkpoint", Store::checkpoint)?;
        self.done.checkpoints += u64::from(done);
        Ok(())
    }

    /// Upgrades the pool to the latest version, if necessary.
    pub(super) fn upgrade(&mut self, store: &Arc<Store>) -> Result<(), String> {
        self.checkpoint_like(store, "upgrade", |store| store.upgrade().map(drop))?;
        self.check_version(store)
    }

    /// Checks that the pool has at least its previous version, and has lost no features.
    pub(super) fn check_version(&mut self, store: &Store) -> Result<(), String> {
        let status = store.upgrade_status();
        let found = (status.version, status.is_latest);
        if found < self.form {
            return Err(format!("a pool of form {:?} became one of {found:?}", self.form));
        }
        self.done.upgrades += u64::from(found > self.form);
        self.form = found;
        Ok(())
    }

    /// Grows the pool by some segments, if the plan allows it.
    pub(super) fn grow(&mut self, store: &Arc<Store>) -> Result<(), String> {
        let Plan { segment_bytes, .. } = self.plan;
        let more = segment_bytes * self.rng.between(1, GROWTH_SEGMENTS_MAX);
        // The first segment is the pool's own, and does not count as capacity.
        let next = self.capacity_bytes + more;
        if next + SEGMENT_BYTES_MIN > self.plan.pool_bytes_max {
            return Ok(());
        }
        self.capacity_bytes_next = Some(next);
        let told = format!("grow to {next:#x}");
        if self.checkpoint_like(store, &told, |store| store.grow(next + SEGMENT_BYTES_MIN))? {
            self.done.growths += 1;
            (self.capacity_bytes, self.capacity_bytes_next) = (next, None);
            let found = store.pool_status().capacity_bytes;
            if found != next {
                return Err(format!("the pool has {found} bytes, not {next}"));
            }
        }
        Ok(())
    }

    /// Does a checkpoint, or what mainly consists of one; returns whether it was done.
    fn checkpoint_like(
        &mut self,
        store: &Arc<Store>,
        told: &str,
        act: impl FnOnce(&Store) -> Result<(), StoreError>,
    ) -> Result<bool, String> {
        let mut meanwhile: Meanwhile = Desk::step;
        if self.plan.durability == Durability::Flush {
            // It waits for the commits in flight, which nothing else would finish; again if the
            // device refuses a part of it, so that none may be taken in between.
            locked(&self.desk).finish_commits(store)?;
            meanwhile = Desk::step_beside;
            if self.disk.has_failed() {
                return Ok(false);
            }
        }
        self.disk.note(told);
        let refused = self.disk.refused_count();
        let result = self.act(store, meanwhile, act)?;
        locked(&self.desk).collect()?;
        match result {
            Ok(()) => Ok(true),
            Err(_) if self.disk.has_failed() => Ok(false),
            // No location is left that accepts it. It is tried again when the device has changed.
            Err(StoreError::NoRoom { .. }) if self.disk.refused_count() > refused => Ok(false),
            Err(error) => Err(format!("{told}: {error}")),
        }
    }
}
