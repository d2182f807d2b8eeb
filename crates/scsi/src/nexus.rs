//! I_T nexuses: an initiator port, a target port, and what the host has still to be told.

use std::collections::{BTreeMap, VecDeque};
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
pub(crate) enum Attention {
    /// BUS DEVICE RESET FUNCTION OCCURRED.
    Reset,
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
    /// As sense data.
    pub(crate) fn sense(self) -> Sense {
        let (asc, ascq) = match self {
            Self::Reset => (0x29, 0x03),
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
}

/// One I_T nexus. Made by [`crate::DeviceServer::new_nexus`].
#[derive(Debug)]
pub struct Nexus {
    initiator: InitiatorPort,
    target_port: u16,
    /// The generation of the last map that was seen; `u64::MAX` before the first.
    generation: AtomicU64,
    /// How many units have attentions pending, so that the usual command takes no lock.
    attentive: AtomicUsize,
    state: Mutex<State>,
    pub(crate) copies: Arc<Mutex<CopyLists>>,
}

#[derive(Debug, Default)]
struct State {
    seen: Option<Arc<LunMap>>,
    /// How often PREEMPT AND ABORT named this nexus, by volume.
    preemptions: BTreeMap<VolumeId, u64>,
    /// Each kind stands in a queue at most once, which bounds it.
    queues: BTreeMap<VolumeId, VecDeque<Attention>>,
}

impl State {
    fn push(&mut self, volume: VolumeId, what: Attention) {
        let queue = self.queues.entry(volume).or_default();
        if !queue.contains(&what) {
            queue.push_back(what);
        }
    }
}

impl Nexus {
    pub(crate) fn new(initiator: InitiatorPort, target_port: u16) -> Self {
        Self {
            initiator,
            target_port,
            generation: AtomicU64::new(u64::MAX),
            attentive: AtomicUsize::new(0),
            state: Mutex::default(),
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
        if let Some(old) = state.seen.take() {
            if old.generation >= luns.generation {
                state.seen = Some(old); // another command of this nexus saw a newer one
                return;
            }
            let ids = |map: &LunMap| -> Vec<_> {
                map.luns.iter().map(|(&lun, volume)| (lun, volume.id)).collect()
            };
            let moved = ids(&old) != ids(luns);
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
            state.queues.retain(|id, _| luns.luns.values().any(|volume| volume.id == *id));
        }
        state.seen = Some(luns.clone());
        self.attentive.store(state.queues.len(), Ordering::Release);
        self.generation.store(luns.generation, Ordering::Release);
    }

    /// Queues a unit attention, if this nexus can reach the volume.
    pub(crate) fn attend(&self, volume: VolumeId, what: Attention) {
        let mut state = self.state.lock();
        let reachable = |map: &Arc<LunMap>| map.luns.values().any(|seen| seen.id == volume);
        if state.seen.as_ref().is_some_and(reachable) {
            state.push(volume, what);
            self.attentive.store(state.queues.len(), Ordering::Release);
        }
    }

    /// Queues a unit attention on each volume that this nexus can reach, and that is `meant`.
    pub(crate) fn attend_where(&self, what: Attention, meant: impl Fn(&VolumeAttributes) -> bool) {
        let mut state = self.state.lock();
        let Some(map) = state.seen.clone() else { return };
        for volume in map.luns.values().filter(|volume| meant(volume)) {
            state.push(volume.id, what);
        }
        self.attentive.store(state.queues.len(), Ordering::Release);
    }

    /// PREEMPT AND ABORT named this nexus: its commands on the volume do nothing more.
    pub(crate) fn preempt(&self, volume: VolumeId) {
        *self.state.lock().preemptions.entry(volume).or_default() += 1;
    }

    /// How often that happened.
    pub(crate) fn preemptions(&self, volume: VolumeId) -> u64 {
        self.state.lock().preemptions.get(&volume).copied().unwrap_or(0)
    }

    /// Takes the oldest unit attention of a volume.
    #[inline]
    pub(crate) fn take_attention(&self, volume: VolumeId) -> Option<Attention> {
        if self.attentive.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut state = self.state.lock();
        let queue = state.queues.get_mut(&volume)?;
        let what = queue.pop_front();
        if queue.is_empty() {
            state.queues.remove(&volume);
        }
        self.attentive.store(state.queues.len(), Ordering::Release);
        what
    }

    /// REPORT LUNS was answered: all units stop telling of the change (SPC-4, 6.33).
    pub(crate) fn luns_reported(&self) {
        if self.attentive.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut state = self.state.lock();
        state.queues.retain(|_, queue| {
            queue.retain(|what| *what != Attention::Luns);
            !queue.is_empty()
        });
        self.attentive.store(state.queues.len(), Ordering::Release);
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
