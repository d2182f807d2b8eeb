//! Limiting how many copies move data at once.
//!
//! Data that a copy moves is read, and waits for its record, in memory: up to 4 MiB for a part of a
//! staged copy, and as much for what goes with one commit. A window of copies would need a hundred
//! times that. So each part, and each commit of a copy that moves much
//! ([`Tuning::placeless_blocks_max`]), needs one of a few slots from its first read until it is in
//! a record; copies without a slot wait in order.

use std::sync::Arc;

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(doc)]
use crate::tuning::Tuning;

#[derive(Debug, Default)]
struct Taken {
    count: AtomicUsize,
    /// Whether one was returned since the last query.
    given_back: AtomicBool,
}

/// The slots in use.
#[derive(Debug, Default)]
pub(crate) struct Places(Arc<Taken>);

/// A slot, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct PartPlace(Arc<Taken>);

impl Places {
    /// Returns how many of `most` are free.
    pub(crate) fn free(&self, most: usize) -> usize {
        most.saturating_sub(self.0.count.load(Ordering::Acquire))
    }

    /// Takes one, if one of `most` is free.
    pub(crate) fn take(&self, most: usize) -> Option<PartPlace> {
        let one_more = |taken: usize| (taken < most).then_some(taken + 1);
        self.0.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(PartPlace(self.0.clone()))
    }

    /// Returns whether some were returned since the last query.
    pub(crate) fn were_given_back(&self) -> bool {
        let given_back = &self.0.given_back;
        given_back.load(Ordering::Acquire) && given_back.swap(false, Ordering::AcqRel)
    }
}

impl Drop for PartPlace {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
        self.0.given_back.store(true, Ordering::Release);
    }
}
