//! Applies the plan: renews addresses that belong here, and gives back those that no longer do.

use std::io;

use super::plan::{KERNEL_MS, Plan, VALID_S, Whose};

/// The interval for renewing an address.
const RENEW_MS: u64 = 500;
/// The interval for announcing a new address to neighbours: at once, and a few more times, because
/// the first announcement may be lost.
const ANNOUNCE_MS: u64 = 1000;
const ANNOUNCEMENTS: u32 = 5;

/// Operations on addresses, by index.
pub(super) trait Kernel {
    /// Adds or renews the address for another [`VALID_S`].
    fn put(&mut self, at: usize) -> io::Result<()>;
    /// Removes the address. Returns whether it was present.
    fn remove(&mut self, at: usize) -> io::Result<bool>;
    /// Announces the address to neighbours.
    fn announce(&mut self, at: usize) -> io::Result<()>;
}

/// Changes of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// This one was added.
    Came(usize),
    /// This one was removed.
    Gone(usize),
    /// The first address of the other controller is about to be added.
    OthersCome,
    /// The addresses of the other controller are about to be given back.
    OthersGo,
}

/// The state of one address.
#[derive(Clone, Debug)]
struct Kept {
    whose: Whose,
    /// When it was last renewed, if it is present.
    renewed_ms: Option<u64>,
    /// The time until which the kernel may have it.
    gone_ms: u64,
    announced_ms: u64,
    announcements: u32,
}

impl Kept {
    /// Returns whether it is certainly present.
    fn is_here(&self, now_ms: u64) -> bool {
        self.renewed_ms.is_some_and(|at| now_ms < at + u64::from(VALID_S) * 1000)
    }

    fn is_announcement_due(&self, now_ms: u64) -> bool {
        self.announcements < ANNOUNCEMENTS
            && (self.announcements == 0 || now_ms >= self.announced_ms + ANNOUNCE_MS)
    }
}

/// All addresses, and the kernel.
pub(super) struct Keeper<K> {
    pub(super) kernel: K,
    all: Vec<Kept>,
    /// Whether [`Moved::OthersCome`] was reported, and not its opposite since.
    others_are_here: bool,
}

impl<K: Kernel> Keeper<K> {
    /// Creates the state. An earlier process may have left addresses of the other controller.
    pub(super) fn new(kernel: K, all: Vec<Whose>, now_ms: u64) -> Self {
        let kept = |whose| Kept {
            whose,
            renewed_ms: None,
            gone_ms: if whose == Whose::Others { now_ms + KERNEL_MS } else { 0 },
            announced_ms: 0,
            announcements: 0,
        };
        Self { kernel, all: all.into_iter().map(kept).collect(), others_are_here: false }
    }

    /// Does what is due. Failures are retried in the next step; returns the first error, with the
    /// index of its address.
    pub(super) fn step(
        &mut self,
        now_ms: u64,
        plan: &Plan,
        may_serve: bool,
        is_there: bool,
        mut note: impl FnMut(Moved),
    ) -> Result<(), (usize, io::Error)> {
        let mut result = Ok(());
        for at in 0..self.all.len() {
            let kept = &self.all[at];
            let has = kept.is_here(now_ms);
            let done = match plan.wants(kept.whose, now_ms, has, may_serve, is_there) {
                true => self.keep(at, now_ms, &mut note),
                false => self.give_back(at, &mut note),
            };
            if result.is_ok() {
                result = done.map_err(|error| (at, error));
            }
        }
        result
    }

    fn keep(&mut self, at: usize, now_ms: u64, note: &mut impl FnMut(Moved)) -> io::Result<()> {
        let Self { kernel, all, others_are_here } = self;
        let kept = &mut all[at];
        let is_new = !kept.is_here(now_ms);
        if kept.renewed_ms.is_none_or(|renewed| now_ms >= renewed + RENEW_MS) {
            if kept.whose == Whose::Others && !*others_are_here {
                // Before connections arrive.
                *others_are_here = true;
                note(Moved::OthersCome);
            }
            // It may be present even if the call has failed.
            kept.gone_ms = now_ms + KERNEL_MS;
            kernel.put(at)?;
            kept.renewed_ms = Some(now_ms);
            if is_new {
                kept.announcements = 0;
                note(Moved::Came(at));
            }
        }
        if kept.is_announcement_due(now_ms) {
            (kept.announced_ms, kept.announcements) = (now_ms, kept.announcements + 1);
            kernel.announce(at)?;
        }
        Ok(())
    }

    fn give_back(&mut self, at: usize, note: &mut impl FnMut(Moved)) -> io::Result<()> {
        let Self { kernel, all, others_are_here } = self;
        let kept = &mut all[at];
        if kept.gone_ms == 0 {
            return Ok(());
        }
        if kept.whose == Whose::Others && std::mem::take(others_are_here) {
            note(Moved::OthersGo);
        }
        kept.renewed_ms = None;
        let was_here = kernel.remove(at)?;
        kept.gone_ms = 0;
        if was_here {
            note(Moved::Gone(at));
        }
        Ok(())
    }

    /// Returns whether certainly no address of the other controller is present.
    pub(super) fn has_none_of_other(&self, now_ms: u64) -> bool {
        let is_gone = |it: &&Kept| it.whose == Whose::Own || it.gone_ms <= now_ms;
        !self.others_are_here && self.all.iter().all(|it| is_gone(&it))
    }
}
