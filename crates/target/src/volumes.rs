//! The state of all volumes. Each volume has its own lock, so that a change of one delays no
//! command of another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use block::VolumeId;
use parking_lot::RwLock;

use crate::access::AccessState;
use crate::kept::Kept;
use crate::nexus::NexusId;
use crate::reservations::{Access, Effect};
use crate::saving::{Change, SaveError, Saving};

/// The state of a volume: what is in force, and how far that is durable.
#[derive(Debug, Default)]
pub struct Volume {
    pub(crate) kept: Kept,
    pub(crate) saving: Saving,
    /// Whether [`Volumes::reserved`] and [`Volumes::set`] count this volume.
    counted: (bool, bool),
    /// Whether the volume was destroyed: a command that still holds the state changes nothing by
    /// it.
    gone: bool,
}

impl Volume {
    /// Returns the state in force.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Returns whether the durable state persists through a loss of power.
    pub fn is_kept_through_power_loss(&self) -> bool {
        self.saving.base.as_deref().unwrap_or(&self.kept).aptpl
    }

    /// Makes a change, completely or not at all. Its effects on others follow when it is durable.
    ///
    /// # Panics
    /// If the change leaves an invalid state (invariant 1).
    pub(crate) fn change<E>(
        &mut self,
        act: impl FnOnce(&mut Kept) -> Result<Effect, E>,
    ) -> Result<Change, E> {
        let before = self.kept.clone();
        let effect = act(&mut self.kept).inspect_err(|_| self.kept.clone_from(&before))?;
        for what in effect.attentions() {
            self.kept.count(what);
        }
        self.assert_sound();
        // A command that changes nothing may still rely on changes that are not durable yet.
        if self.saving.base.is_none() && before == self.kept {
            assert_eq!(effect, Effect::default(), "a change without effect notifies no nexus");
            return Ok(Change::Durable);
        }
        Ok(Change::Unsaved(self.saving.begin(before, effect)))
    }

    /// Ends a RESERVE of this nexus, or of any: this can't fail, and takes effect even if it does
    /// not become durable. Returns whether there is state to save.
    pub(crate) fn end_exclusive(&mut self, of: Option<&NexusId>) -> bool {
        let ends = |kept: &Kept| {
            kept.exclusive.as_ref().is_some_and(|holder| of.is_none_or(|of| holder == of))
        };
        let changes = ends(&self.kept);
        if changes {
            self.kept.exclusive = None;
            self.saving.force(&self.kept);
        }
        changes
    }

    /// Rolls back changes that could not be made durable.
    pub(crate) fn take_back(&mut self, error: SaveError) {
        self.saving.failed(&mut self.kept, error);
        self.assert_sound();
    }

    pub(crate) fn assert_sound(&self) {
        if let Some(flaw) = self.kept.flaw() {
            panic!("a change has left an invalid state: {flaw}");
        }
    }

    fn is_reserved(&self) -> bool {
        let kept = &self.kept;
        kept.exclusive.is_some() || kept.reservation.is_some() || !kept.registrants.is_empty()
    }
}

/// The state of all volumes.
#[derive(Debug, Default)]
pub struct Volumes {
    /// The number of volumes with a reservation or a registration, so that most commands take no
    /// lock.
    reserved: AtomicUsize,
    /// The number of volumes with access states that a host has set.
    set: AtomicUsize,
    volumes: RwLock<BTreeMap<VolumeId, Arc<RwLock<Volume>>>>,
}

impl Volumes {
    /// Returns whether such a command conflicts with a reservation of another nexus.
    #[inline]
    pub fn conflict(&self, volume: VolumeId, nexus: &NexusId, access: Access) -> bool {
        if self.reserved.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.find(volume).is_some_and(|state| state.read().kept.conflict(nexus, access))
    }

    /// Returns whether any host has set an access state. Cheap.
    #[inline]
    pub fn has_access_states(&self) -> bool {
        self.set.load(Ordering::Acquire) > 0
    }

    /// Returns the access state that a host has set for a group, if any.
    pub fn access_state(&self, volume: VolumeId, group: u16) -> Option<AccessState> {
        if !self.has_access_states() {
            return None;
        }
        self.find(volume)?.read().kept.access.get(&group).copied()
    }

    /// Returns the state of a volume, if it has one. The lock of the table is released before that
    /// of the volume is taken.
    fn find(&self, volume: VolumeId) -> Option<Arc<RwLock<Volume>>> {
        self.volumes.read().get(&volume).cloned()
    }

    /// Reads the state of a volume.
    pub fn look<T>(&self, volume: VolumeId, act: impl FnOnce(&Volume) -> T) -> T {
        match self.find(volume) {
            Some(state) => act(&state.read()),
            None => act(&Volume::default()),
        }
    }

    /// Changes the state of a volume.
    pub(crate) fn with<T>(&self, volume: VolumeId, act: impl FnOnce(&mut Volume) -> T) -> T {
        let found = self.find(volume);
        let state =
            found.unwrap_or_else(|| self.volumes.write().entry(volume).or_default().clone());
        let mut state = state.write();
        let out = act(&mut state);
        self.count(&mut state);
        out
    }

    /// Updates the counters for this volume.
    fn count(&self, state: &mut Volume) {
        let is = |what: bool| what && !state.gone;
        let now = (is(state.is_reserved()), is(!state.kept.access.is_empty()));
        count(&self.reserved, state.counted.0, now.0);
        count(&self.set, state.counted.1, now.1);
        state.counted = now;
    }

    /// Resets a logical unit: RESERVE ends, persistent reservations and access states remain.
    /// Returns whether there is state to save.
    pub(crate) fn reset(&self, volume: VolumeId) -> bool {
        self.find(volume).is_some() && self.with(volume, |state| state.end_exclusive(None))
    }

    /// Removes the state of a destroyed volume.
    pub(crate) fn forget(&self, volume: VolumeId) {
        let removed = self.volumes.write().remove(&volume);
        if let Some(state) = removed {
            let mut state = state.write();
            state.gone = true;
            self.count(&mut state);
        }
    }

    /// Handles the loss of a nexus: its RESERVE ends. Returns the volumes whose state must be
    /// saved.
    pub(crate) fn nexus_loss(&self, nexus: &NexusId) -> Vec<VolumeId> {
        if self.reserved.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let all: Vec<_> = self.volumes.read().iter().map(|(id, at)| (*id, at.clone())).collect();
        let mut unsaved = Vec::new();
        for (id, state) in all {
            // Most hold nothing: these are only read.
            if state.read().kept.exclusive.as_ref() == Some(nexus) {
                let mut state = state.write();
                if state.end_exclusive(Some(nexus)) {
                    self.count(&mut state);
                    unsaved.push(id);
                }
            }
        }
        unsaved
    }
}

fn count(sum: &AtomicUsize, before: bool, now: bool) {
    if now && !before {
        sum.fetch_add(1, Ordering::AcqRel);
    } else if !now && before {
        let left = sum.fetch_sub(1, Ordering::AcqRel);
        assert!(left > 0, "a counter of volumes became negative");
    }
}
