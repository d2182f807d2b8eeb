//! A target's state of hosts ([`Target`]), and the events that affect all of it: logins, lost
//! sessions, resets, the end of volumes, the start of the array.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::{Arc, Weak};

use block::{LunMap, VolumeId};
use parking_lot::{Mutex, RwLock};

use crate::access::AccessState;
use crate::attention::Attention;
use crate::kept::Kept;
use crate::nexus::{HostPort, Nexus, NexusId, TargetPort};
use crate::parked::ParkedNexuses;
use crate::reservations::{self, Asked, Effect, Refusal};
use crate::rods::saving::KeptRods;
use crate::rods::{RodVolume, Rods};
use crate::saving::{Change, SaveError, Unsaved};
use crate::volumes::Volumes;

/// A target's state of hosts. One for the array, shared by all sessions.
#[derive(Debug)]
pub struct Target {
    ports: Vec<TargetPort>,
    pub(crate) volumes: Volumes,
    rods: Rods,
    pub(crate) nexuses: Mutex<Nexuses>,
    /// The implicit states of groups, if they are not the default: those of another controller.
    implicit: RwLock<BTreeMap<u16, AccessState>>,
}

/// How the array began to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It was started: a power on to hosts.
    PowerOn,
    /// It has taken over from another controller, without a loss of power.
    Takeover,
}

/// All stored state.
#[derive(Debug, Default)]
pub struct KeptState {
    /// The state of volumes.
    pub volumes: Vec<(VolumeId, Kept)>,
    /// ROD tokens, if this incarnation of the pool has created any.
    pub rods: Option<KeptRods>,
}

/// The stored state is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nonsense {
    /// The state of this volume, and why.
    Volume(VolumeId, &'static str),
    /// ROD tokens, and why.
    Rods(&'static str),
}

/// The nexuses with a session, and the notifications of those without. A nexus is in only one of
/// both.
#[derive(Debug, Default)]
pub(crate) struct Nexuses {
    live: Vec<Weak<Nexus>>,
    pub(crate) parked: ParkedNexuses,
}

/// The effect of a change of reservations on one nexus.
#[derive(Default)]
struct Named {
    is_aborted: bool,
    told: Vec<Attention>,
}

impl Target {
    /// Creates a target with these ports, and with an internal volume for ROD tokens, which must be
    /// empty. No volume has any state, as after a power on.
    pub fn new(ports: Vec<TargetPort>, rods: RodVolume) -> Self {
        Self {
            ports,
            volumes: Volumes::default(),
            rods: Rods::new(rods),
            nexuses: Mutex::default(),
            implicit: RwLock::default(),
        }
    }

    /// Restores the stored state, before any session. A power on ends all tokens.
    ///
    /// # Errors
    /// What is invalid.
    pub fn restore(&self, start: Start, all: KeptState) -> Result<(), Nonsense> {
        assert!(self.live_nexuses().is_empty(), "stored state is restored before any session");
        if start == Start::Takeover {
            self.nexuses.lock().parked.take_over();
        }
        if let Some(rods) = all.rods.filter(|_| start == Start::Takeover) {
            self.rods.restore(rods).map_err(Nonsense::Rods)?;
        }
        for (volume, kept) in all.volumes {
            if let Some(flaw) = kept.flaw() {
                return Err(Nonsense::Volume(volume, flaw));
            }
            let kept = match start {
                Start::PowerOn => kept.after_power_on(),
                Start::Takeover => kept,
            };
            self.nexuses.lock().parked.miss(volume, kept.missed());
            self.volumes.with(volume, |state| state.kept = kept);
        }
        Ok(())
    }

    /// Returns its ports.
    pub fn ports(&self) -> &[TargetPort] {
        &self.ports
    }

    /// Returns the state of volumes.
    #[inline]
    pub fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    /// Returns the ROD tokens.
    pub fn rods(&self) -> &Rods {
        &self.rods
    }

    /// Creates an I_T nexus for a session that has just logged in through the port with this
    /// number, and that sees these units. Each unit first reports the array's start, or that an
    /// earlier session of the nexus was lost.
    pub fn new_nexus(&self, host: HostPort, target_port: u16, luns: &Arc<LunMap>) -> Arc<Nexus> {
        let id = NexusId { host, target_port };
        let mut all = self.nexuses.lock();
        let (happened, queues) = all.parked.take(&id);
        let nexus = Arc::new(Nexus::new(id, luns, happened, queues));
        all.live.retain(|nexus| nexus.strong_count() > 0);
        all.live.push(Arc::downgrade(&nexus));
        nexus
    }

    /// Handles the loss of a nexus's session (SAM-5, 6.3.4). Its RESERVE ends; persistent
    /// reservations remain. The next session of the nexus is notified. Returns the volumes whose
    /// state must be saved ([`Target::unsaved`]).
    #[must_use]
    pub fn nexus_loss(&self, nexus: &Nexus) -> Vec<VolumeId> {
        let unsaved = self.volumes.nexus_loss(nexus.id());
        let mut all = self.nexuses.lock();
        all.live.retain(|other| !std::ptr::eq(other.as_ptr(), nexus));
        let (first, queues) = nexus.leave();
        all.parked.leave(nexus.id().clone(), first, queues);
        unsaved
    }

    /// Resets one unit (SAM-5, 6.3.3), or several: RESERVE ends, and every nexus is notified,
    /// including the one that requested it. `volumes` are sorted. Returns those whose state must be
    /// saved.
    #[must_use]
    pub fn reset(&self, volumes: &[VolumeId], what: Attention) -> Vec<VolumeId> {
        assert!(volumes.is_sorted(), "units are sorted for binary search");
        let reset = |volume: &&VolumeId| self.volumes.reset(**volume);
        let unsaved = volumes.iter().filter(reset).copied().collect();
        // Under the lock, so that no session is lost in between.
        let mut all = self.nexuses.lock();
        all.parked.reset();
        for nexus in all.live() {
            match what {
                Attention::TargetReset => nexus.attend_reset(volumes),
                what => volumes.iter().for_each(|volume| nexus.attend(*volume, what)),
            }
        }
        unsaved
    }

    /// Removes all state of an eradicated volume, and ends its tokens. Its id is never reused.
    pub fn volume_destroyed(&self, volume: VolumeId) {
        self.volumes.forget(volume);
        // No command waits until this is durable: any controller that applies the end of a volume
        // ends its tokens.
        let _: Change = self.rods.revoke(volume);
        self.nexuses.lock().parked.forget(volume);
    }

    /// Executes an action of PERSISTENT RESERVE OUT.
    ///
    /// # Errors
    /// Why it was refused; nothing has changed then.
    pub fn act(&self, volume: VolumeId, asked: &Asked<'_>) -> Result<Change, Refusal> {
        self.change(volume, |kept| reservations::act(kept, asked))
    }

    /// RESERVE of SPC-2.
    ///
    /// # Errors
    /// [`Refusal::Conflict`] if another nexus holds the volume.
    pub fn reserve(&self, volume: VolumeId, nexus: &NexusId) -> Result<Change, Refusal> {
        self.change(volume, |kept| reservations::take(kept, nexus))
    }

    /// RELEASE of SPC-2: does nothing unless this nexus holds the volume.
    pub fn release(&self, volume: VolumeId, nexus: &NexusId) -> Change {
        self.change_always(volume, |kept| reservations::give_back(kept, nexus))
    }

    /// Returns the access state of a volume through the ports of a group: set by a host, otherwise
    /// the group's implicit state. An unreachable group stays unavailable, regardless of what was
    /// set.
    pub fn access_state(&self, volume: VolumeId, group: u16) -> AccessState {
        match self.implicit_access(group) {
            AccessState::Unavailable => AccessState::Unavailable,
            state => self.volumes.access_state(volume, group).unwrap_or(state),
        }
    }

    /// Returns the implicit state of a group, for volumes whose state no host has set.
    fn implicit_access(&self, group: u16) -> AccessState {
        self.implicit.read().get(&group).copied().unwrap_or_default()
    }

    /// Changes the implicit state of a group, after that of its controller has changed. Every nexus
    /// is notified, by each unit (SPC-4, 5.15.2.3).
    pub fn set_implicit_access(&self, group: u16, state: AccessState) {
        let before = self.implicit.write().insert(group, state).unwrap_or_default();
        if before != state {
            for nexus in self.live_nexuses() {
                nexus.attend_where(Attention::AccessState, |_| true);
            }
        }
    }

    /// Sets access states of groups, in order. If any state has changed, every other nexus is
    /// notified (SPC-4, 5.15.2.6).
    pub fn set_access(
        &self,
        volume: VolumeId,
        nexus: &NexusId,
        states: &[(u16, AccessState)],
    ) -> Change {
        self.change_always(volume, |kept| {
            let state = |kept: &Kept, group: u16| {
                let set = kept.access.get(&group).copied();
                set.unwrap_or_else(|| self.implicit_access(group))
            };
            let before = kept.clone();
            kept.access.extend(states.iter().copied());
            let differs =
                |(group, _): &(u16, AccessState)| state(&before, *group) != state(kept, *group);
            let is_told = states.iter().any(differs);
            let others = is_told.then(|| (nexus.clone(), Attention::AccessState));
            Effect { others, ..Effect::default() }
        })
    }

    /// Returns the state of a volume that must be made durable now; `None` if all of it is.
    pub fn unsaved(&self, volume: VolumeId) -> Option<Unsaved> {
        self.volumes.with(volume, |state| state.saving.unsaved(volume, &state.kept))
    }

    /// Reports whether the state from [`Target::unsaved`] was made durable.
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

    /// Returns the outcome of a change that had to be made durable. Call it once, after
    /// [`Target::saved`].
    ///
    /// # Errors
    /// If it was rolled back.
    pub fn outcome(&self, volume: VolumeId, change: u64) -> Result<(), SaveError> {
        self.volumes.with(volume, |state| state.saving.take_failure(change)).map_or(Ok(()), Err)
    }

    /// Makes a change that can't be refused.
    fn change_always(&self, volume: VolumeId, act: impl FnOnce(&mut Kept) -> Effect) -> Change {
        let changed: Result<Change, Infallible> =
            self.volumes.with(volume, |state| state.change(|kept| Ok(act(kept))));
        match changed {
            Ok(change) => change,
            Err(never) => match never {},
        }
    }

    fn change(
        &self,
        volume: VolumeId,
        act: impl FnOnce(&mut Kept) -> Result<Effect, Refusal>,
    ) -> Result<Change, Refusal> {
        self.volumes.with(volume, |state| state.change(act))
    }

    /// Applies the effects of a change to other nexuses: cancels the remaining work of aborted
    /// commands (PREEMPT AND ABORT), and queues notifications. A nexus without a session gets them
    /// at its next login.
    pub(crate) fn deliver(&self, volume: VolumeId, effect: &Effect) {
        if let Some((but, what)) = &effect.others {
            self.attend_others(but, volume, *what);
        }
        if effect.told.is_empty() && effect.aborted.is_empty() {
            return;
        }
        let mut named: HashMap<&NexusId, Named> = HashMap::new();
        for id in &effect.aborted {
            named.entry(id).or_default().is_aborted = true;
        }
        for (id, what) in &effect.told {
            named.entry(id).or_default().told.push(*what);
        }
        let mut all = self.nexuses.lock();
        for nexus in all.live() {
            let Some(named) = named.remove(nexus.id()) else { continue };
            if named.is_aborted {
                nexus.preempt(volume);
            }
            named.told.iter().for_each(|what| nexus.attend(volume, *what));
        }
        for (id, Named { told, .. }) in named {
            told.iter().for_each(|what| all.parked.attend(id, volume, *what));
        }
    }

    /// Notifies every nexus with a session but one.
    pub fn attend_others(&self, but: &NexusId, volume: VolumeId, what: Attention) {
        for nexus in self.live_nexuses() {
            if nexus.id() != but {
                nexus.attend(volume, what);
            }
        }
    }

    /// Returns the ports of hosts with a session, by host name.
    pub fn host_ports(&self) -> BTreeMap<String, Vec<HostPort>> {
        let mut ports: BTreeMap<String, Vec<HostPort>> = BTreeMap::new();
        for nexus in self.live_nexuses() {
            let port = nexus.host().clone();
            ports.entry(port.name.clone()).or_default().push(port);
        }
        ports
    }

    /// Returns the nexuses with a session.
    pub fn live_nexuses(&self) -> Vec<Arc<Nexus>> {
        self.nexuses.lock().live()
    }

    /// Returns the number of remembered nexuses without a session.
    pub fn parked_count(&self) -> usize {
        self.nexuses.lock().parked.len()
    }
}

impl Nexuses {
    fn live(&self) -> Vec<Arc<Nexus>> {
        self.live.iter().filter_map(Weak::upgrade).collect()
    }
}
