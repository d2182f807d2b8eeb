//! When a change of persistent state is durable, and may be acknowledged.
//!
//! A change takes effect in memory at once, for all to see, but its command completes, and others
//! are notified, only when it is durable. There is no I/O here: the command waits, and the layer
//! that does the I/O
//!
//! 1. takes the state to be written from [`Target::unsaved`], as of *that time*,
//! 2. makes it durable,
//! 3. reports this with [`Target::saved`],
//! 4. continues the commands that waited: [`Target::outcome`].
//!
//! One worker does 1 to 3 for a volume at a time, so that later writes contain newer state. If a
//! write fails, all changes that are not durable are rolled back together, and each of their
//! commands reports failure: so the state in force is what was acknowledged.
//!
//! The end of a RESERVE by a reset or by the loss of its nexus is not acknowledged to any nexus. It
//! takes effect at once, is never rolled back, and is made durable with the next turn that
//! succeeds.

use std::collections::{BTreeMap, VecDeque};

use block::VolumeId;

use crate::kept::Kept;
use crate::reservations::Effect;

/// The reason why a change could not be made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveError {
    /// There is no space.
    NoRoom,
    /// The device or the store failed.
    Failed,
}

/// What a change concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The state of a volume.
    Volume(VolumeId),
    /// ROD tokens.
    Tokens,
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is done and durable, because nothing has changed.
    Durable,
    /// It is done once the change with this number is durable.
    Unsaved(u64),
}

/// State that must be made durable.
#[derive(Debug)]
pub struct Unsaved {
    pub(crate) volume: VolumeId,
    /// The last change that it includes.
    change: u64,
    kept: Kept,
}

impl Unsaved {
    /// Returns the state to write; `None` if nothing must be stored any longer.
    pub fn record(&self) -> Option<&Kept> {
        assert!(self.kept.flaw().is_none(), "the written state is valid");
        (!self.kept.is_empty()).then_some(&self.kept)
    }
}

/// How far the changes of a volume are durable.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    /// The number of the last change that had to be made durable.
    last_change: u64,
    /// The state to roll back to if saving fails, while there are changes that are not durable yet.
    pub(crate) base: Option<Box<Kept>>,
    /// The effects of these changes on others, by their numbers, in order.
    waiting: VecDeque<(u64, Effect)>,
    /// Changes that were rolled back, until their commands have reported it.
    failed: BTreeMap<u64, SaveError>,
    /// The last change that can't be rolled back: the end of a RESERVE.
    forced: u64,
    /// The last durable change.
    durable: u64,
}

impl Saving {
    /// Records a change. Returns its number.
    pub(crate) fn begin(&mut self, before: Kept, effect: Effect) -> u64 {
        self.base.get_or_insert_with(|| Box::new(before));
        self.last_change += 1;
        self.waiting.push_back((self.last_change, effect));
        self.last_change
    }

    /// Records a change that can't be rolled back: the end of a RESERVE.
    pub(crate) fn force(&mut self, now: &Kept) {
        assert!(now.exclusive.is_none(), "only the end of a RESERVE can be forced");
        self.base.get_or_insert_with(|| Box::new(now.clone())).exclusive = None;
        self.last_change += 1;
        self.forced = self.last_change;
    }

    /// Notes that everything up to this change is durable. Returns its effects, in order.
    pub(crate) fn saved(&mut self, saved: Unsaved) -> Vec<Effect> {
        self.durable = saved.change;
        // There are later changes, or (fewer) the volume was destroyed meanwhile.
        self.base = (self.last_change > saved.change).then(|| Box::new(saved.kept));
        if let Some(base) = self.base.as_mut().filter(|_| self.forced > saved.change) {
            base.exclusive = None;
        }
        let count = self.waiting.iter().take_while(|(change, _)| *change <= saved.change).count();
        self.waiting.drain(..count).map(|(_, effect)| effect).collect()
    }

    /// Rolls back all changes that are not durable: restores the state that stays in force, and
    /// keeps what must be saved of it with the next turn.
    pub(crate) fn failed(&mut self, kept: &mut Kept, error: SaveError) {
        if let Some(base) = self.base.take() {
            let shown = std::mem::replace(kept, *base);
            if shown != *kept {
                // Keys that could be read no longer exist.
                kept.generation = shown.generation.wrapping_add(1);
            }
        }
        if self.forced > self.durable {
            self.base = Some(Box::new(kept.clone())); // which must still be saved
        }
        self.failed.extend(self.waiting.drain(..).map(|(change, _)| (change, error)));
    }

    /// Returns the state that must be made durable now; `None` if all of it is.
    pub(crate) fn unsaved(&self, volume: VolumeId, kept: &Kept) -> Option<Unsaved> {
        self.base.as_ref()?;
        Some(Unsaved { volume, change: self.last_change, kept: kept.clone() })
    }

    /// Returns why a change was rolled back, if it was. Returned once.
    pub(crate) fn take_failure(&mut self, change: u64) -> Option<SaveError> {
        self.failed.remove(&change)
    }
}
