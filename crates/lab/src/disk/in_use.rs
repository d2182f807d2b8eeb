//! The blocks of a disk that are being read or written, and those that are about to be taken from
//! it.
//!
//! A request looks up the locations of its blocks, and then sends its commands. If a block were
//! released in between, the command would reach another file's block. So requests declare the
//! blocks they use, from the look-up until their commands have ended, and a task that releases
//! blocks claims them first: the claim waits for all requests that use them, and new ones wait for
//! it.
//!
//! A woken task checks once, and wakes no others. The readers of `async_lock::RwLock` wake each
//! other, endlessly if a writer returns quickly; in one thread nothing else runs then.

use std::cell::RefCell;
use std::ops::Range;

use event_listener::Event;

/// The current uses and claims. Both are few: as many as requests are in flight.
#[derive(Debug, Default)]
pub(crate) struct InUse {
    now: RefCell<Now>,
    changed: Event,
}

#[derive(Debug, Default)]
struct Now {
    used: Vec<Range<u64>>,
    claimed: Vec<Range<u64>>,
}

/// Blocks that are in use until this is dropped.
#[derive(Debug)]
pub(crate) struct Use<'a> {
    of: &'a InUse,
    blocks: Range<u64>,
}

/// Blocks that are unused until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    of: &'a InUse,
    blocks: Range<u64>,
}

fn overlap(all: &[Range<u64>], blocks: &Range<u64>) -> bool {
    all.iter().any(|one| one.start < blocks.end && blocks.start < one.end)
}

fn remove(all: &mut Vec<Range<u64>>, blocks: &Range<u64>) {
    if let Some(at) = all.iter().position(|one| one == blocks) {
        all.swap_remove(at);
    }
}

impl InUse {
    /// Uses blocks, once none of them is claimed. A task that uses some may use others only if they
    /// belong to another disk.
    pub(crate) async fn start(&self, blocks: Range<u64>) -> Use<'_> {
        loop {
            let changed = {
                let mut now = self.now.borrow_mut();
                if !overlap(&now.claimed, &blocks) {
                    now.used.push(blocks.clone());
                    return Use { of: self, blocks };
                }
                self.changed.listen()
            };
            changed.await;
        }
    }

    /// Claims blocks, and waits until none of them is in use. Overlapping claims take turns.
    pub(crate) async fn claim(&self, blocks: Range<u64>) -> Claim<'_> {
        let claim = loop {
            let changed = {
                let mut now = self.now.borrow_mut();
                if !overlap(&now.claimed, &blocks) {
                    now.claimed.push(blocks.clone());
                    break Claim { of: self, blocks: blocks.clone() };
                }
                self.changed.listen()
            };
            changed.await;
        };
        loop {
            let changed = {
                if !overlap(&self.now.borrow().used, &blocks) {
                    return claim;
                }
                self.changed.listen()
            };
            changed.await;
        }
    }
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        let now = &mut *self.of.now.borrow_mut();
        remove(&mut now.used, &self.blocks);
        if !now.claimed.is_empty() {
            self.of.changed.notify(usize::MAX);
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        remove(&mut self.of.now.borrow_mut().claimed, &self.blocks);
        self.of.changed.notify(usize::MAX);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_claim_waits_for_earlier_ones_and_blocks_later_ones() {
        let disk = InUse::default();
        let first = disk.start(3..5).now_or_never().unwrap();
        let same = disk.start(3..5).now_or_never().unwrap();
        let mut claim = Box::pin(disk.claim(4..8));
        assert!(claim.as_mut().now_or_never().is_none(), "two use block 4");
        drop(first);
        assert!(claim.as_mut().now_or_never().is_none(), "one uses block 4");
        // Others continue; users of claimed blocks wait, even before the claim is granted.
        let beside = disk.start(8..9).now_or_never().unwrap();
        let mut late = Box::pin(disk.start(7..9));
        assert!(late.as_mut().now_or_never().is_none());
        drop(same);
        let granted = claim.as_mut().now_or_never().expect("its blocks are unused");
        assert!(late.as_mut().now_or_never().is_none());
        let mut second = Box::pin(disk.claim(0..5));
        assert!(second.as_mut().now_or_never().is_none(), "claims overlap");
        drop(granted);
        assert!(late.as_mut().now_or_never().is_some());
        assert!(second.as_mut().now_or_never().is_some());
        drop((beside, late, second, claim));
        let now = disk.now.borrow();
        assert!(now.used.is_empty() && now.claimed.is_empty());
    }

    #[test]
    fn an_abandoned_claim_blocks_no_other() {
        let disk = InUse::default();
        let used = disk.start(0..1).now_or_never().unwrap();
        let mut claim = Box::pin(disk.claim(0..1));
        assert!(claim.as_mut().now_or_never().is_none());
        drop(claim);
        assert!(disk.start(0..1).now_or_never().is_some());
        drop(used);
    }
}
