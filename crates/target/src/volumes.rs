//! What is kept of all volumes. Each has a lock of its own: what is done to one holds up no command
//! of another.

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

/// The state of a volume: as it is in force, and how far that is durable.
#[derive(Debug, Default)]
pub struct Volume {
    pub(crate) kept: Kept,
    pub(crate) saving: Saving,
    /// Whether it is among those that [`Volumes::reserved`] and [`Volumes::set`] count.
    counted: (bool, bool),
    /// Whether the volume was destroyed: a command that still has the state changes nothing by it.
    gone: bool,
}

impl Volume {
    /// What is in force.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Whether what is durable is kept through a loss of power.
    pub fn is_kept_through_power_loss(&self) -> bool {
        self.saving.base.as_deref().unwrap_or(&self.kept).aptpl
    }

    /// Makes a change, wholly or not at all. What it does to others is done when it is durable.
    ///
    /// # Panics
    /// If the change leaves what can't be (invariant 1).
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
            assert_eq!(effect, Effect::default(), "what changes nothing tells nobody");
            return Ok(Change::Durable);
        }
        Ok(Change::Unsaved(self.saving.begin(before, effect)))
    }

    /// Ends what a nexus holds by RESERVE, or whoever does: that can't fail, and is in force even
    /// if it does not become durable. Whether there is something to save.
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

    /// What is not durable could not be made so.
    pub(crate) fn take_back(&mut self, error: SaveError) {
        self.saving.failed(&mut self.kept, error);
        self.assert_sound();
    }

    pub(crate) fn assert_sound(&self) {
        if let Some(flaw) = self.kept.flaw() {
            panic!("a change has left what can't be: {flaw}");
        }
    }

    fn is_reserved(&self) -> bool {
        let kept = &self.kept;
        kept.exclusive.is_some() || kept.reservation.is_some() || !kept.registrants.is_empty()
    }
}

/// What is kept of all volumes.
#[derive(Debug, Default)]
pub struct Volumes {
    /// How many volumes somebody has reserved, or is registered with: so that the usual command
    /// takes no lock.
    reserved: AtomicUsize,
    /// How many have access states that a host has set.
    set: AtomicUsize,
    volumes: RwLock<BTreeMap<VolumeId, Arc<RwLock<Volume>>>>,
}

impl Volumes {
    /// Whether a reservation of another nexus bars such a command.
    #[inline]
    pub fn conflict(&self, volume: VolumeId, nexus: &NexusId, access: Access) -> bool {
        if self.reserved.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.find(volume).is_some_and(|state| state.read().kept.conflict(nexus, access))
    }

    /// Whether any host has set an access state. Cheap.
    #[inline]
    pub fn has_access_states(&self) -> bool {
        self.set.load(Ordering::Acquire) > 0
    }

    /// The access state that a host has set for a group, if one has.
    pub fn access_state(&self, volume: VolumeId, group: u16) -> Option<AccessState> {
        if !self.has_access_states() {
            return None;
        }
        self.find(volume)?.read().kept.access.get(&group).copied()
    }

    /// The state of a volume, if it has one. The lock over all volumes is let go before that of the
    /// volume is taken.
    fn find(&self, volume: VolumeId) -> Option<Arc<RwLock<Volume>>> {
        self.volumes.read().get(&volume).cloned()
    }

    /// Looks at the state of a volume.
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

    /// Counts the volume, or no more.
    fn count(&self, state: &mut Volume) {
        let is = |what: bool| what && !state.gone;
        let now = (is(state.is_reserved()), is(!state.kept.access.is_empty()));
        count(&self.reserved, state.counted.0, now.0);
        count(&self.set, state.counted.1, now.1);
        state.counted = now;
    }

    /// A reset of the logical unit: RESERVE ends, persistent reservations and access states stay.
    /// Whether there is something to save.
    pub(crate) fn reset(&self, volume: VolumeId) -> bool {
        self.find(volume).is_some() && self.with(volume, |state| state.end_exclusive(None))
    }

    /// The volume was destroyed.
    pub(crate) fn forget(&self, volume: VolumeId) {
        let removed = self.volumes.write().remove(&volume);
        if let Some(state) = removed {
            let mut state = state.write();
            state.gone = true;
            self.count(&mut state);
        }
    }

    /// The loss of a nexus: what it held by RESERVE ends. The volumes of which there is something
    /// to save.
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
        assert!(left > 0, "a volume is counted before it is counted no more");
    }
}
