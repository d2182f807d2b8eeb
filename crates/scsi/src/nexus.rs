//! I_T nexuses: an initiator port, a target port, and what the host has still to be told.
//!
//! Unit attentions (SAM-5, 5.14) queue for each logical unit. The first that a new nexus is told of
//! each unit is what has happened to it before ([`Attention::is_reset`]): the array was started
//! (29h/00h), or an earlier session of the same nexus was lost (29h/07h), and with it what RESERVE
//! held. What was not told yet when a session is lost is told to the next one: see
//! [`crate::parked`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use block::{LunMap, VolumeAttributes, VolumeId};
use parking_lot::Mutex;

use crate::copy::results::CopyLists;
use crate::sense::{Sense, SenseKey};

/// A target port of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPort {
    /// The relative target port identifier, from 1 (SPC-4, 7.8.6.8).
    pub relative_id: u16,
    /// The target port group, whose ports have the same asymmetric access state.
    pub group: u16,
    /// The SCSI name of the port: over iSCSI `iqn…,t,0x0001` (RFC 7143, 4.4.3).
    pub name: String,
}

/// The initiator's port: over iSCSI its name and ISID (RFC 7143, 4.4.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InitiatorPort {
    /// The iSCSI name of the initiator.
    pub name: String,
    /// The initiator's part of the session identifier.
    pub isid: [u8; 6],
}

/// What a unit attention tells (SAM-5, 5.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Attention {
    /// POWER ON, RESET, OR BUS DEVICE RESET OCCURRED: whatever was set up before is gone.
    PowerOn = 1,
    /// SCSI BUS RESET OCCURRED: a hard reset, of the whole target.
    TargetReset,
    /// BUS DEVICE RESET FUNCTION OCCURRED: a reset of the logical unit.
    Reset,
    /// I_T NEXUS LOSS OCCURRED.
    NexusLoss,
    /// CAPACITY DATA HAS CHANGED.
    Capacity,
    /// INQUIRY DATA HAS CHANGED.
    Inquiry,
    /// REPORTED LUNS DATA HAS CHANGED.
    Luns,
    /// MODE PARAMETERS CHANGED.
    ModeParameters,
    /// THIN PROVISIONING SOFT THRESHOLD REACHED.
    SoftThreshold,
    /// ASYMMETRIC ACCESS STATE CHANGED.
    AccessState,
    /// RESERVATIONS PREEMPTED: by CLEAR.
    ReservationsPreempted,
    /// RESERVATIONS RELEASED.
    ReservationsReleased,
    /// REGISTRATIONS PREEMPTED.
    RegistrationsPreempted,
    /// COMMANDS CLEARED BY ANOTHER INITIATOR.
    CommandsCleared,
}

impl Attention {
    /// All, by their numbers, from 1.
    const ALL: [Self; 14] = [
        Self::PowerOn,
        Self::TargetReset,
        Self::Reset,
        Self::NexusLoss,
        Self::Capacity,
        Self::Inquiry,
        Self::Luns,
        Self::ModeParameters,
        Self::SoftThreshold,
        Self::AccessState,
        Self::ReservationsPreempted,
        Self::ReservationsReleased,
        Self::RegistrationsPreempted,
        Self::CommandsCleared,
    ];

    /// As sense data.
    pub(crate) fn sense(self) -> Sense {
        let (asc, ascq) = match self {
            Self::PowerOn => (0x29, 0x00),
            Self::TargetReset => (0x29, 0x02),
            Self::Reset => (0x29, 0x03),
            Self::NexusLoss => (0x29, 0x07),
            Self::Capacity => (0x2a, 0x09),
            Self::Inquiry => (0x3f, 0x03),
            Self::Luns => (0x3f, 0x0e),
            Self::ModeParameters => (0x2a, 0x01),
            Self::SoftThreshold => (0x38, 0x07),
            Self::AccessState => (0x2a, 0x06),
            Self::ReservationsPreempted => (0x2a, 0x03),
            Self::ReservationsReleased => (0x2a, 0x04),
            Self::RegistrationsPreempted => (0x2a, 0x05),
            Self::CommandsCleared => (0x2f, 0x00),
        };
        Sense::new(SenseKey::UnitAttention, asc, ascq)
    }

    /// Whether it is of ASC 29h: these come before all others (SAM-5, table 52).
    pub(crate) fn is_reset(self) -> bool {
        matches!(self, Self::PowerOn | Self::TargetReset | Self::Reset | Self::NexusLoss)
    }

    /// Whether it tells of reservations, which outlive a session, as it does.
    pub(crate) fn is_of_reservations(self) -> bool {
        matches!(
            self,
            Self::ReservationsPreempted | Self::ReservationsReleased | Self::RegistrationsPreempted
        )
    }
}

/// The unit attentions of a logical unit, the next one in the low four bits, each kind at most
/// once: so a queue costs as much as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue(u64);

impl Queue {
    fn iter(self) -> impl Iterator<Item = Attention> {
        let kinds = (0..Attention::ALL.len()).map(move |at| (self.0 >> (4 * at)) & 0xf);
        kinds.take_while(|kind| *kind > 0).map(|kind| Attention::ALL[kind as usize - 1])
    }

    fn collect(kinds: impl Iterator<Item = Attention>) -> Self {
        Self(kinds.enumerate().fold(0, |all, (at, kind)| all | (kind as u64) << (4 * at)))
    }

    /// Adds one at the end, or before all others if it is of a reset.
    pub(crate) fn push(&mut self, what: Attention) {
        if self.iter().any(|queued| queued == what) {
            return;
        }
        let old = *self;
        *self = if what.is_reset() {
            Self::collect([what].into_iter().chain(old.iter()))
        } else {
            Self::collect(old.iter().chain([what]))
        };
    }

    fn pop(&mut self) -> Option<Attention> {
        let first = self.iter().next();
        self.0 >>= 4;
        first
    }

    /// Keeps those that are meant.
    pub(crate) fn retain(&mut self, meant: impl Fn(Attention) -> bool) {
        *self = Self::collect(self.iter().filter(|what| meant(*what)));
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Units that have the same to tell: a bit for each, as it may be all of them.
#[derive(Debug)]
struct Marks {
    /// All units that may be marked, in order.
    ids: Vec<VolumeId>,
    bits: Vec<u64>,
    /// How many are.
    left: usize,
}

impl Marks {
    fn none(ids: Vec<VolumeId>) -> Self {
        Self { bits: vec![0; ids.len().div_ceil(64)], ids, left: 0 }
    }

    fn all(ids: Vec<VolumeId>) -> Self {
        let left = ids.len();
        Self { bits: vec![u64::MAX; left.div_ceil(64)], ids, left }
    }

    fn set(&mut self, at: usize) {
        let bit = 1 << (at % 64);
        self.left += usize::from(self.bits[at / 64] & bit == 0);
        self.bits[at / 64] |= bit;
    }

    /// Whether a unit is marked; from now on it is not.
    fn take(&mut self, volume: VolumeId) -> bool {
        let Ok(at) = self.ids.binary_search(&volume) else { return false };
        let bit = 1 << (at % 64);
        let is_marked = self.bits[at / 64] & bit != 0;
        self.bits[at / 64] &= !bit;
        self.left -= usize::from(is_marked);
        is_marked
    }

    fn has(&self, volume: VolumeId) -> bool {
        let found = self.ids.binary_search(&volume);
        found.is_ok_and(|at| self.bits[at / 64] & 1 << (at % 64) != 0)
    }

    /// The same marks for other units, of those that are in both.
    fn moved_to(&self, ids: &[VolumeId]) -> Self {
        let mut moved = Self::none(ids.to_vec());
        let kept = |at: &usize| self.left > 0 && self.has(ids[*at]);
        (0..ids.len()).filter(kept).for_each(|at| moved.set(at));
        moved
    }
}

/// One I_T nexus. Made by [`crate::DeviceServer::new_nexus`].
#[derive(Debug)]
pub struct Nexus {
    initiator: InitiatorPort,
    target_port: u16,
    /// The generation of the last map that was seen.
    generation: AtomicU64,
    /// How many units have attentions pending, so that the usual command takes no lock.
    attentive: AtomicUsize,
    state: Mutex<State>,
    pub(crate) copies: Arc<Mutex<CopyLists>>,
}

#[derive(Debug)]
struct State {
    seen: Arc<LunMap>,
    /// The volumes in it, in order.
    ids: Vec<VolumeId>,
    /// How often PREEMPT AND ABORT named this nexus, by volume.
    preemptions: BTreeMap<VolumeId, u64>,
    /// What has happened before the session, and which units have not told of it.
    happened: Attention,
    untold: Marks,
    /// Units that have still to tell of a hard reset.
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

    /// A reset of a unit comes: whether the host is told of as much anyway, as the array was started
    /// and that was not told yet. The loss of a nexus is less than a reset, and is not told then.
    fn is_told_anyway(&mut self, volume: VolumeId) -> bool {
        match self.happened {
            Attention::PowerOn => self.untold.has(volume),
            _ => {
                self.untold.take(volume);
                false
            }
        }
    }

    /// Marks those of these volumes, which are in order, that this nexus sees.
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
    /// A nexus that sees these units, and is told first what has happened to each of them. `queues`
    /// are left from before.
    pub(crate) fn new(
        initiator: InitiatorPort,
        target_port: u16,
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
        Self {
            initiator,
            target_port,
            generation: AtomicU64::new(luns.generation),
            attentive: AtomicUsize::new(state.pending()),
            state: Mutex::new(state),
            copies: Arc::default(),
        }
    }

    /// The initiator's end.
    pub fn initiator(&self) -> &InitiatorPort {
        &self.initiator
    }

    /// The relative identifier of the target's end.
    pub fn target_port(&self) -> u16 {
        self.target_port
    }

    /// Compares the map with the one seen last, and queues what the host has to be told of it.
    #[inline]
    pub(crate) fn see(&self, luns: &Arc<LunMap>) {
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
            // INQUIRY and VPD data tell what can be offloaded (SPC-4, 6.6.1).
            if before.is_some_and(|before| before.offloads != volume.offloads) {
                state.push(volume.id, Attention::Inquiry);
            }
            if moved {
                state.push(volume.id, Attention::Luns);
            }
        }
        let ids = ids_of(luns);
        state.queues.retain(|id, _| ids.binary_search(id).is_ok());
        state.ids = ids;
        state.seen = luns.clone();
        self.attentive.store(state.pending(), Ordering::Release);
        self.generation.store(luns.generation, Ordering::Release);
    }

    /// Queues a unit attention, if this nexus can reach the volume.
    pub(crate) fn attend(&self, volume: VolumeId, what: Attention) {
        let mut state = self.state.lock();
        if state.ids.binary_search(&volume).is_ok() {
            state.push(volume, what);
            self.attentive.store(state.pending(), Ordering::Release);
        }
    }

    /// A hard reset of these volumes, which are in order: of those that this nexus can reach. Costs
    /// little for each, as there may be many of both.
    pub(crate) fn attend_reset(&self, volumes: &[VolumeId]) {
        let mut state = self.state.lock();
        state.mark_reset(volumes);
        self.attentive.store(state.pending(), Ordering::Release);
    }

    /// Queues a unit attention on each volume that this nexus can reach, and that is `meant`.
    pub(crate) fn attend_where(&self, what: Attention, meant: impl Fn(&VolumeAttributes) -> bool) {
        let mut state = self.state.lock();
        let map = state.seen.clone();
        for volume in map.luns.values().filter(|volume| meant(volume)) {
            state.push(volume.id, what);
        }
        self.attentive.store(state.pending(), Ordering::Release);
    }

    /// What is left to tell when the session is lost: whether a reset is, and what of reservations.
    pub(crate) fn leave(&self) -> (bool, BTreeMap<VolumeId, Queue>) {
        let mut state = self.state.lock();
        let untold = state.untold.left > 0 && state.happened == Attention::PowerOn;
        let queued = || state.queues.values().any(|queue| queue.iter().any(Attention::is_reset));
        let resets = untold || state.reset.left > 0 || queued();
        let mut queues = std::mem::take(&mut state.queues);
        queues.retain(|_, queue| {
            queue.retain(Attention::is_of_reservations);
            !queue.is_empty()
        });
        (resets, queues)
    }

    /// PREEMPT AND ABORT named this nexus: its commands on the volume do nothing more.
    pub(crate) fn preempt(&self, volume: VolumeId) {
        *self.state.lock().preemptions.entry(volume).or_default() += 1;
    }

    /// How often that happened.
    pub(crate) fn preemptions(&self, volume: VolumeId) -> u64 {
        self.state.lock().preemptions.get(&volume).copied().unwrap_or(0)
    }

    /// Takes the next unit attention of a volume.
    #[inline]
    pub(crate) fn take_attention(&self, volume: VolumeId) -> Option<Attention> {
        if self.attentive.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut state = self.state.lock();
        let what = state.take(volume);
        self.attentive.store(state.pending(), Ordering::Release);
        what
    }

    /// REPORT LUNS was answered: all units stop telling of the change (SPC-4, 6.33).
    pub(crate) fn luns_reported(&self) {
        if self.attentive.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut state = self.state.lock();
        state.queues.retain(|_, queue| {
            queue.retain(|what| what != Attention::Luns);
            !queue.is_empty()
        });
        self.attentive.store(state.pending(), Ordering::Release);
    }

    /// As if each unit had told already what has happened before the login.
    #[cfg(test)]
    pub(crate) fn skip_first_attentions(&self) {
        let mut state = self.state.lock();
        state.untold = Marks::none(Vec::new());
        self.attentive.store(state.pending(), Ordering::Release);
    }
}

/// By this a command of several requests knows whether PREEMPT AND ABORT has named its nexus since
/// it began.
#[derive(Debug)]
pub(crate) struct PreemptionMark {
    volume: VolumeId,
    preemptions: u64,
}

impl PreemptionMark {
    /// That of a command to this volume which begins now.
    pub(crate) fn new(nexus: &Nexus, volume: VolumeId) -> Self {
        Self { volume, preemptions: nexus.preemptions(volume) }
    }

    /// Whether the nexus, which must be the same, was named since.
    pub(crate) fn is_passed(&self, nexus: &Nexus) -> bool {
        nexus.preemptions(self.volume) != self.preemptions
    }
}
