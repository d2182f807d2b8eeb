//! The commits that a front end has in hand.

use std::collections::BTreeMap;
use std::io;

use store::Commit;
use sys::{Buffers, Transfers};

use crate::disk::SimDisk;
use crate::rng::Rng;

/// Commits on their way to the device, through the same [`Transfers`] that a ring has: they are
/// written and flushed step by step, tried again, and end in any order; and it is heard of their
/// ends in any order as well.
#[derive(Default)]
pub(crate) struct Commits {
    transfers: Transfers,
    /// By what their transfers are called.
    under_way: BTreeMap<u64, Commit>,
    ended: Vec<(Commit, io::Result<()>)>,
    next: u64,
}

impl Commits {
    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.ended.is_empty()
    }

    /// Nobody waits for them any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// One more begins, to the byte `at` of the device.
    pub(crate) fn begin(&mut self, disk: &SimDisk, at: u64, mut commit: Commit) {
        self.next += 1;
        let frames = std::mem::take(&mut commit.frames);
        let persist = commit.persist;
        let queued = self.transfers.write(disk.retrying(), self.next, at, frames, persist);
        match queued {
            Ok(()) => drop(self.under_way.insert(self.next, commit)),
            Err(error) => self.ended.push((commit, Err(error))),
        }
    }

    /// One step of one of them, by chance, or one that has ended, if there are any.
    pub(crate) fn step(
        &mut self,
        disk: &SimDisk,
        rng: &mut Rng,
    ) -> Option<(Commit, io::Result<()>)> {
        let mut out = Vec::new();
        if self.transfers.ready_count() == 0 || rng.chance(50) {
            self.transfers.wake_all(disk.retrying(), &mut out);
        }
        let ready = self.transfers.ready_count() as u64;
        let told = !self.ended.is_empty() && (ready == 0 || rng.chance(50));
        if ready > 0 && !told {
            let nth = rng.below(ready) as usize;
            self.transfers.step(disk.retrying(), nth, &mut out);
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
}
