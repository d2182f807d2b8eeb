//! When a change of what is kept is durable, and may be answered.
//!
//! A change is made in memory at once, for all to see, but its command is answered, and others are
//! told, only when it is durable. There is no I/O here: the command waits, and whoever does the I/O
//!
//! 1. takes what is to be written from [`Target::unsaved`], as it is *then*,
//! 2. makes it durable,
//! 3. says so with [`Target::saved`],
//! 4. goes on with the commands that waited: [`Target::outcome`].
//!
//! One worker does 1 to 3 for a volume at a time, so that what is written later is newer. If it
//! fails, all changes that are not durable are taken back together, and each of their commands says
//! that it failed: so what is in force is what was answered.
//!
//! The end of a RESERVE by a reset or by the loss of its nexus is no answer to anybody. It is in
//! force at once, never taken back, and made durable with the next turn that succeeds.

use std::collections::{BTreeMap, VecDeque};

use block::VolumeId;

use crate::kept::Kept;
use crate::reservations::Effect;

/// Why a change could not be made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveError {
    /// There is no room.
    NoRoom,
    /// The device or the store failed.
    Failed,
}

/// What a change is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// What is kept of a volume.
    Volume(VolumeId),
    /// ROD tokens.
    Tokens,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is done and durable, as nothing is different.
    Durable,
    /// It is done when the change with this number is durable.
    Unsaved(u64),
}

/// What is to be made durable.
#[derive(Debug)]
pub struct Unsaved {
    pub(crate) volume: VolumeId,
    /// The last change that is in it.
    change: u64,
    kept: Kept,
}

impl Unsaved {
    /// What to write; `None` if nothing is to be kept any more.
    pub fn record(&self) -> Option<&Kept> {
        assert!(self.kept.flaw().is_none(), "what is written is sound");
        (!self.kept.is_empty()).then_some(&self.kept)
    }
}

/// How far the changes of a volume are durable.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    /// Counts the changes that had to be made durable.
    last_change: u64,
    /// What stays in force if saving fails, while there are changes that are not durable yet.
    pub(crate) base: Option<Box<Kept>>,
    /// What these changes do to others, by their numbers, in their order.
    waiting: VecDeque<(u64, Effect)>,
    /// Changes that were taken back, until their commands have said so.
    failed: BTreeMap<u64, SaveError>,
    /// The last change that can't be taken back: nobody holds the volume by RESERVE from then on.
    forced: u64,
    /// The last change that is durable.
    durable: u64,
}

impl Saving {
    /// A change has been made: its number.
    pub(crate) fn begin(&mut self, before: Kept, effect: Effect) -> u64 {
        self.base.get_or_insert_with(|| Box::new(before));
        self.last_change += 1;
        self.waiting.push_back((self.last_change, effect));
        self.last_change
    }

    /// A change has been made that can't be taken back: nobody holds the volume by RESERVE.
    pub(crate) fn force(&mut self, now: &Kept) {
        assert!(now.exclusive.is_none(), "that is all that can be forced");
        self.base.get_or_insert_with(|| Box::new(now.clone())).exclusive = None;
        self.last_change += 1;
        self.forced = self.last_change;
    }

    /// All up to this change is durable: its effects, in their order.
    pub(crate) fn saved(&mut self, saved: Unsaved) -> Vec<Effect> {
        self.durable = saved.change;
        // There are later changes, or (less) the volume was destroyed meanwhile.
        self.base = (self.last_change > saved.change).then(|| Box::new(saved.kept));
        if let Some(base) = self.base.as_mut().filter(|_| self.forced > saved.change) {
            base.exclusive = None;
        }
        let count = self.waiting.iter().take_while(|(change, _)| *change <= saved.change).count();
        self.waiting.drain(..count).map(|(_, effect)| effect).collect()
    }

    /// Nothing that is not durable yet will be: what stays in force, if that is anything else, and
    /// what is to be saved of it with the next turn.
    pub(crate) fn failed(&mut self, kept: &mut Kept, error: SaveError) {
        if let Some(base) = self.base.take() {
            let shown = std::mem::replace(kept, *base);
            if shown != *kept {
                // Keys that could be read are no longer there.
                kept.generation = shown.generation.wrapping_add(1);
            }
        }
        if self.forced > self.durable {
            self.base = Some(Box::new(kept.clone())); // that is still to be saved
        }
        self.failed.extend(self.waiting.drain(..).map(|(change, _)| (change, error)));
    }

    /// What has to be made durable now; `None` if everything is.
    pub(crate) fn unsaved(&self, volume: VolumeId, kept: &Kept) -> Option<Unsaved> {
        self.base.as_ref()?;
        Some(Unsaved { volume, change: self.last_change, kept: kept.clone() })
    }

    /// Why a change was taken back, if it was. To be asked once.
    pub(crate) fn take_failure(&mut self, change: u64) -> Option<SaveError> {
        self.failed.remove(&change)
    }
}
