//! I_T nexuses: a host's port, a target port, and pending notifications of the host.
//!
//! Events queue for each unit ([`Attention`]). The first one that a new nexus gets from each unit
//! is about its past ([`Attention::is_reset`]): the array was started, or an earlier session of the
//! same nexus was lost, together with its RESERVE. Notifications that are pending when a session is
//! lost pass to the next session: see [`crate::parked`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use block::{LunMap, VolumeAttributes, VolumeId};
use parking_lot::Mutex;

use crate::attention::{Attention, Marks, Queue};

/// The most units for which a pending start or reset is remembered when a session is lost.
const RESETS_MAX: usize = 64;

/// A target port of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPort {
    /// Its number, from 1: for SCSI the relative target port identifier (SPC-4, 7.8.6.8).
    pub relative_id: u16,
    /// Its group: ports of one group have the same asymmetric access state.
    pub group: u16,
    /// Its name: for iSCSI `iqn…,t,0x0001` (RFC 7143, 4.4.3).
    pub name: String,
}

/// The host's port: for iSCSI its name and ISID (RFC 7143, 4.4.3), for NVMe its NQN and host
/// identifier.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    /// The host's name.
    pub name: String,
    /// Distinguishes the host's ports. An ISID is in the first six bytes, and the rest is zero.
    pub id: [u8; 16],
}

/// The id of no volume.
const NO_VOLUME: u64 = u64::MAX;

/// The two ends of an I_T nexus, which outlive its sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NexusId {
    /// The host's end.
    pub host: HostPort,
    /// The number of the target port.
    pub target_port: u16,
}

/// An I_T nexus with a session. Created by [`crate::Target::new_nexus`].
#[derive(Debug)]
pub struct Nexus {
    id: NexusId,
    /// The generation of the last LUN map seen.
    generation: AtomicU64,
    /// The number of units with pending events, so that most commands take no lock.
    attentive: AtomicUsize,
    /// A volume that had no event at the last check, while others have some: a host may see a
    /// thousand units, and use one. [`NO_VOLUME`] once any event becomes pending.
    quiet: AtomicU64,
    /// The number of checks for events under the lock.
    #[cfg(test)]
    pub(crate) looks: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    seen: Arc<LunMap>,
    /// The volumes in it, sorted.
    ids: Vec<VolumeId>,
    /// How often PREEMPT AND ABORT named this nexus, by volume.
    preemptions: BTreeMap<VolumeId, u64>,
    /// What happened before the session, and the units that have not reported it yet.
    happened: Attention,
    untold: Marks,
    /// Units that have not reported a hard reset yet.
    reset: Marks,
    queues: BTreeMap<VolumeId, Queue>,
}

fn ids_of(luns: &LunMap) -> Vec<VolumeId> {
    let mut ids: Vec<VolumeId> = luns.luns.values().map(|volume| volume.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

impl State {
    fn push(&mut self, volume: VolumeId, what: Attention) {
        if what.is_reset() && self.is_told_anyway(volume) {
            return;
        }
        self.queues.entry(volume).or_default().push(what);
    }

    /// Returns whether a reset of the unit need not be reported, because the start of the array is
    /// still pending. A nexus loss is less than a reset, and is then not reported.
    fn is_told_anyway(&mut self, volume: VolumeId) -> bool {
        if self.happened == Attention::PowerOn {
            return self.untold.has(volume);
        }
        self.untold.take(volume);
        let next = self.queues.get(&volume).and_then(|queue| queue.iter().next());
        next == Some(Attention::PowerOn)
    }

    /// Marks those of these volumes, which are sorted, that this nexus sees.
    fn mark_reset(&mut self, volumes: &[VolumeId]) {
        if self.reset.ids != self.ids {
            self.reset = self.reset.moved_to(&self.ids);
        }
        let (mut at, mut left) = (0, volumes);
        while let (Some(own), [volume, rest @ ..]) = (self.ids.get(at).copied(), left) {
            if own == *volume && !self.is_told_anyway(own) {
                self.reset.set(at);
            }
            at += usize::from(own <= *volume);
            left = if *volume <= own { rest } else { left };
        }
    }

    fn take(&mut self, volume: VolumeId) -> Option<Attention> {
        if self.untold.left > 0 && self.untold.take(volume) {
            return Some(self.happened);
        }
        if self.reset.left > 0 && self.reset.take(volume) {
            return Some(Attention::TargetReset);
        }
        let queue = self.queues.get_mut(&volume)?;
        let what = queue.pop();
        if queue.is_empty() {
            self.queues.remove(&volume);
        }
        what
    }

    fn pending(&self) -> usize {
        self.untold.left + self.reset.left + self.queues.len()
    }
}

impl Nexus {
    /// Creates a nexus that sees these units, and first gets a unit attention about the past of
    /// each. `queues` are left from an earlier session.
    pub(crate) fn new(
        id: NexusId,
        luns: &Arc<LunMap>,
        happened: Attention,
        queues: BTreeMap<VolumeId, Queue>,
    ) -> Self {
        let ids = ids_of(luns);
        let mut state = State {
            seen: luns.clone(),
            preemptions: BTreeMap::new(),
            happened,
            untold: Marks::all(ids.clone()),
            reset: Marks::none(Vec::new()),
            ids,
            queues,
        };
        state.queues.retain(|id, _| state.ids.binary_search(id).is_ok());
        // A pending start or reset covers the loss of the session that did not report it.
        let covered = |queue: &Queue| queue.iter().any(Attention::is_reset);
        for (volume, _) in state.queues.iter().filter(|(_, queue)| covered(queue)) {
            if happened != Attention::PowerOn {
                state.untold.take(*volume);
            }
        }
        Self {
            id,
            generation: AtomicU64::new(luns.generation),
            attentive: AtomicUsize::new(state.pending()),
            quiet: AtomicU64::new(NO_VOLUME),
            #[cfg(test)]
            looks: AtomicUsize::new(0),
            state: Mutex::new(state),
        }
    }

    /// Returns its two ends.
    pub fn id(&self) -> &NexusId {
        &self.id
    }

    /// Returns the host's port.
    pub fn host(&self) -> &HostPort {
        &self.id.host
    }

    /// Returns the number of the target port.
    pub fn target_port(&self) -> u16 {
        self.id.target_port
    }

    /// Compares the map with the last one seen, and queues unit attentions for the changes.
    #[inline]
    pub fn see(&self, luns: &Arc<LunMap>) {
        if self.generation.load(Ordering::Acquire) != luns.generation {
            self.see_change(luns);
        }
    }

    #[cold]
    fn see_change(&self, luns: &Arc<LunMap>) {
        let mut state = self.state.lock();
        let old = state.seen.clone();
        if old.generation >= luns.generation {
            return; // another command of this nexus saw a newer one
        }
        let named = |map: &'_ LunMap| -> Vec<_> {
            map.luns.iter().map(|(&lun, volume)| (lun, volume.id)).collect()
        };
        let moved = named(&old) != named(luns);
        for (lun, volume) in &luns.luns {
            let before = old.luns.get(lun).filter(|before| before.id == volume.id);
            if before.is_some_and(|before| before.size != volume.size) {
                state.push(volume.id, Attention::Capacity);
            }
            // INQUIRY data says what can be offloaded (SPC-4, 6.6.1).
            if before.is_some_and(|before| before.offloads != volume.offloads) {
                state.push(volume.id, Attention::Identity);
            }
            if moved {
                state.push(volume.id, Attention::Units);
            }
        }
        let ids = ids_of(luns);
        state.queues.retain(|id, _| ids.binary_search(id).is_ok());
        state.ids = ids;
        state.seen = luns.clone();
        self.note_pending(&state);
        self.generation.store(luns.generation, Ordering::Release);
    }

    /// Queues a unit attention, if this nexus sees the volume.
    pub fn attend(&self, volume: VolumeId, what: Attention) {
        let mut state = self.state.lock();
        if state.ids.binary_search(&volume).is_ok() {
            state.push(volume, what);
            self.note_pending(&state);
        }
    }

    /// Queues a hard reset of those of these volumes, which are sorted, that this nexus sees. Cheap
    /// for each, because there may be many volumes and many nexuses.
    pub(crate) fn attend_reset(&self, volumes: &[VolumeId]) {
        let mut state = self.state.lock();
        state.mark_reset(volumes);
        self.note_pending(&state);
    }

    /// Queues a unit attention on each volume that this nexus sees and that `meant` selects.
    pub fn attend_where(&self, what: Attention, meant: impl Fn(&VolumeAttributes) -> bool) {
        let mut state = self.state.lock();
        let map = state.seen.clone();
        for volume in map.luns.values().filter(|volume| meant(volume)) {
            state.push(volume.id, what);
        }
        self.note_pending(&state);
    }

    /// Returns all pending events by unit, to hand the session over.
    pub(crate) fn pending(&self) -> BTreeMap<VolumeId, Queue> {
        let state = self.state.lock();
        let mut queues = state.queues.clone();
        for volume in state.reset.iter() {
            queues.entry(volume).or_default().push(Attention::TargetReset);
        }
        for volume in state.untold.iter() {
            queues.entry(volume).or_default().push(state.happened);
        }
        queues
    }

    /// Returns what is pending when the session is lost: what each unit reports first in the next
    /// one, and what single units report. A unit that has not reported a start or a reset reports
    /// that, which covers the loss. If these are many, all units report a start, which covers
    /// everything.
    pub(crate) fn leave(&self) -> (Attention, BTreeMap<VolumeId, Queue>) {
        let mut state = self.state.lock();
        let mut queues = std::mem::take(&mut state.queues);
        let is_start = state.happened == Attention::PowerOn;
        let untold = if is_start { state.untold.left } else { 0 };
        let has_many = untold + state.reset.left > RESETS_MAX;
        queues.retain(|_, queue| {
            queue.retain(|what| what.is_of_reservations() || (what.is_reset() && !has_many));
            !queue.is_empty()
        });
        if has_many {
            return (Attention::PowerOn, queues);
        }
        for volume in state.reset.iter() {
            queues.entry(volume).or_default().push(Attention::TargetReset);
        }
        for volume in state.untold.iter().filter(|_| is_start) {
            queues.entry(volume).or_default().push(Attention::PowerOn);
        }
        (Attention::NexusLoss, queues)
    }

    /// Notes that PREEMPT AND ABORT has named this nexus: its commands on the volume do nothing
    /// more.
    pub fn preempt(&self, volume: VolumeId) {
        *self.state.lock().preemptions.entry(volume).or_default() += 1;
    }

    /// Returns how often that happened.
    pub fn preemptions(&self, volume: VolumeId) -> u64 {
        self.state.lock().preemptions.get(&volume).copied().unwrap_or(0)
    }

    /// Takes the next unit attention of a volume.
    #[inline]
    pub fn take_attention(&self, volume: VolumeId) -> Option<Attention> {
        let is_quiet = || self.quiet.load(Ordering::Acquire) == volume.0;
        if self.attentive.load(Ordering::Acquire) == 0 || is_quiet() {
            return None;
        }
        self.look_for_attention(volume)
    }

    fn look_for_attention(&self, volume: VolumeId) -> Option<Attention> {
        let mut state = self.state.lock();
        #[cfg(test)]
        self.looks.fetch_add(1, Ordering::Relaxed);
        let what = state.take(volume);
        self.attentive.store(state.pending(), Ordering::Release);
        if what.is_none() {
            self.quiet.store(volume.0, Ordering::Release);
        }
        what
    }

    /// Updates the counters after a change of pending events. The caller holds the state.
    fn note_pending(&self, state: &State) {
        self.quiet.store(NO_VOLUME, Ordering::Release);
        self.attentive.store(state.pending(), Ordering::Release);
    }

    /// Clears the change of units, which no unit reports after the host has read its LUNs (SPC-4,
    /// 6.33).
    pub fn luns_reported(&self) {
        if self.attentive.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut state = self.state.lock();
        state.queues.retain(|_, queue| {
            queue.retain(|what| what != Attention::Units);
            !queue.is_empty()
        });
        self.note_pending(&state);
    }
}

/// Shows a command of several requests whether PREEMPT AND ABORT has named its nexus since it
/// began.
#[derive(Debug)]
pub struct PreemptionMark {
    volume: VolumeId,
    preemptions: u64,
}

impl PreemptionMark {
    /// Creates the mark of a command to this volume that begins now.
    pub fn new(nexus: &Nexus, volume: VolumeId) -> Self {
        Self { volume, preemptions: nexus.preemptions(volume) }
    }

    /// Returns whether the nexus, which must be the same, was named since.
    pub fn is_passed(&self, nexus: &Nexus) -> bool {
        nexus.preemptions(self.volume) != self.preemptions
    }
}
