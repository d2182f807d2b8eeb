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
use crate::target::Target;
use crate::volumes::Volume;

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
    volume: VolumeId,
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
    fn saved(&mut self, saved: Unsaved) -> Vec<Effect> {
        self.durable = saved.change;
        // There are later changes, or (less) the volume was destroyed meanwhile.
        self.base = (self.last_change > saved.change).then(|| Box::new(saved.kept));
        if let Some(base) = self.base.as_mut().filter(|_| self.forced > saved.change) {
            base.exclusive = None;
        }
        let count = self.waiting.iter().take_while(|(change, _)| *change <= saved.change).count();
        self.waiting.drain(..count).map(|(_, effect)| effect).collect()
    }
}

impl Volume {
    fn take_back(&mut self, error: SaveError) {
        if let Some(base) = self.saving.base.take() {
            let shown = std::mem::replace(&mut self.kept, *base);
            if shown != self.kept {
                // Keys that could be read are no longer there.
                self.kept.generation = shown.generation.wrapping_add(1);
            }
            self.assert_sound();
        }
        let saving = &mut self.saving;
        if saving.forced > saving.durable {
            saving.base = Some(Box::new(self.kept.clone())); // that is still to be saved
        }
        saving.failed.extend(saving.waiting.drain(..).map(|(change, _)| (change, error)));
    }
}

impl Target {
    /// What has to be made durable of a volume now; `None` if everything is.
    pub fn unsaved(&self, volume: VolumeId) -> Option<Unsaved> {
        self.volumes.with(volume, |state| {
            state.saving.base.as_ref()?;
            let (change, kept) = (state.saving.last_change, state.kept.clone());
            Some(Unsaved { volume, change, kept })
        })
    }

    /// What [`Target::unsaved`] gave is durable, or could not be made so.
    pub fn saved(&self, what: Unsaved, result: Result<(), SaveError>) {
        let volume = what.volume;
        self.volumes.with(volume, |state| match result {
            Ok(()) => {
                for effect in state.saving.saved(what) {
                    self.deliver(volume, &effect);
                }
            }
            Err(error) => state.take_back(error),
        });
    }

    /// What became of a change that had to be made durable. To be asked once, after
    /// [`Target::saved`].
    ///
    /// # Errors
    /// If it was taken back.
    pub fn outcome(&self, volume: VolumeId, change: u64) -> Result<(), SaveError> {
        self.volumes.with(volume, |state| state.saving.failed.remove(&change)).map_or(Ok(()), Err)
    }
}
