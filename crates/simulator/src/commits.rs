//! The commits that a front end has in hand.

use std::collections::BTreeMap;
use std::io;

use store::{Commit, Store};
use sys::{Buffers, RetryingDisk, Transfers};

use crate::disk::{Below, SimDisk};
use crate::rng::Rng;

/// One disk or several, below a store.
pub(crate) trait Ground: Send + Sync {
    /// Adds a line to the trace that is not an I/O.
    fn note(&self, line: &str);

    /// Returns whether the power has failed, or a write has failed permanently.
    fn has_failed(&self) -> bool;

    /// Returns the number of reads so far.
    fn read_count(&self) -> u64;

    /// Returns the disk whose writes are done step by step. `None`: each write is one step.
    fn retrying(&self) -> Option<&RetryingDisk<Below>>;
}

impl Ground for SimDisk {
    fn note(&self, line: &str) {
        self.note(line);
    }

    fn has_failed(&self) -> bool {
        self.has_failed()
    }

    fn read_count(&self) -> u64 {
        self.read_count()
    }

    fn retrying(&self) -> Option<&RetryingDisk<Below>> {
        Some(self.retrying())
    }
}

/// Commits in flight, through the same [`Transfers`] that a ring has: they are written and flushed
/// step by step, retried, and end in any order; and their ends are reported in any order as well.
#[derive(Default)]
pub(crate) struct Commits {
    transfers: Transfers,
    /// By the names of their transfers.
    under_way: BTreeMap<u64, Commit>,
    /// Those that are written in one step.
    whole: Vec<Commit>,
    ended: Vec<(Commit, io::Result<()>)>,
    next: u64,
}

impl Commits {
    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.whole.is_empty() && self.ended.is_empty()
    }

    /// Drops them: no caller waits for them any longer.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Begins a commit.
    pub(crate) fn begin(&mut self, ground: &dyn Ground, store: &Store, mut commit: Commit) {
        let Some(disk) = ground.retrying() else { return self.whole.push(commit) };
        let at = store.segments().locate(commit.place);
        self.next += 1;
        let frames = std::mem::take(&mut commit.frames);
        let persist = commit.persist;
        let queued = self.transfers.write(disk, self.next, at, frames, persist);
        match queued {
            Ok(()) => drop(self.under_way.insert(self.next, commit)),
            Err(error) => self.ended.push((commit, Err(error))),
        }
    }

    /// Does one step of a random one of them, or returns one that has ended, if there are any.
    pub(crate) fn step(
        &mut self,
        ground: &dyn Ground,
        store: &Store,
        rng: &mut Rng,
    ) -> Option<(Commit, io::Result<()>)> {
        let Some(disk) = ground.retrying() else { return self.write_whole(store, rng) };
        let mut out = Vec::new();
        if self.transfers.ready_count() == 0 || rng.chance(50) {
            self.transfers.wake_all(disk, &mut out);
        }
        let ready = self.transfers.ready_count() as u64;
        let told = !self.ended.is_empty() && (ready == 0 || rng.chance(50));
        if ready > 0 && !told {
            let nth = rng.below(ready) as usize;
            self.transfers.step(disk, nth, &mut out);
        }
        for completion in out {
            if let Some(mut commit) = self.under_way.remove(&completion.user_data) {
                if let Buffers::Write(frames) = completion.buffers {
                    commit.frames = frames;
                }
                self.ended.push((commit, completion.result));
            }
        }
        told.then(|| self.ended.swap_remove(rng.below(self.ended.len() as u64) as usize))
    }

    /// Writes a random one of them, or completes one that has ended.
    fn write_whole(&mut self, store: &Store, rng: &mut Rng) -> Option<(Commit, io::Result<()>)> {
        let written = self.ended.len() as u64;
        if !self.whole.is_empty() && (written == 0 || rng.chance(50)) {
            let commit = self.whole.swap_remove(rng.below(self.whole.len() as u64) as usize);
            let result = store.segments().append_as(commit.place, &commit.frames, commit.persist);
            self.ended.push((commit, result));
            return None;
        }
        (written > 0).then(|| self.ended.swap_remove(rng.below(written) as usize))
    }
}
