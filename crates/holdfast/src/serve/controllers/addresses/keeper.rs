//! Putting the plan in force: addresses that are here are renewed, those that are not to be here
//! any more are given back.

use std::io;

use super::plan::{KERNEL_MS, Plan, VALID_S, Whose};

/// How often an address is renewed.
const RENEW_MS: u64 = 500;
/// How often neighbours are told of an address that has come: at once, and a few times more, as the
/// first may be lost.
const ANNOUNCE_MS: u64 = 1000;
const ANNOUNCEMENTS: u32 = 5;

/// What is done to addresses, by their places.
pub(super) trait Kernel {
    /// The address is here, for [`VALID_S`] more.
    fn put(&mut self, at: usize) -> io::Result<()>;
    /// It is not here any more. Returns whether it was.
    fn remove(&mut self, at: usize) -> io::Result<bool>;
    /// Neighbours are told that it is here.
    fn announce(&mut self, at: usize) -> io::Result<()>;
}

/// What happens to addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// This one has come.
    Came(usize),
    /// This one is gone.
    Gone(usize),
    /// The first of the other controller's is here.
    OthersCome,
    /// Those of the other controller are about to go.
    OthersGo,
}

/// One address.
#[derive(Clone, Debug)]
struct Kept {
    whose: Whose,
    /// When it was put here last, if it is here.
    renewed_ms: Option<u64>,
    /// Until when the kernel may have it.
    gone_ms: u64,
    announced_ms: u64,
    announcements: u32,
}

impl Kept {
    /// Whether it is here for certain.
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
    /// Whether it was said that addresses of the other controller are here.
    others_are_here: bool,
}

impl<K: Kernel> Keeper<K> {
    /// A process before may have left addresses of the other controller.
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

    /// Does what is due. What fails is tried again in the next step: the first such error is
    /// returned, with the place of its address.
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
                // Before connections come.
                *others_are_here = true;
                note(Moved::OthersCome);
            }
            // It may be there even if that is said to have failed.
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

    /// Whether none of the other controller's can be here.
    pub(super) fn has_none_of_other(&self, now_ms: u64) -> bool {
        let is_gone = |it: &&Kept| it.whose == Whose::Own || it.gone_ms <= now_ms;
        !self.others_are_here && self.all.iter().all(|it| is_gone(&it))
    }
}
