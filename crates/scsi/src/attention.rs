//! Unit attentions (SAM-5, 5.14): their conditions, and how pending ones are kept. Both for one
//! unit and for many units they take little room, as an array may have thousands of nexuses which
//! see thousands of units.

use block::VolumeId;

use crate::sense::{Sense, SenseKey};

/// The condition of a unit attention (SAM-5, 5.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Attention {
    /// POWER ON, RESET, OR BUS DEVICE RESET OCCURRED: all earlier state is gone.
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
}

impl Attention {
    /// All, by their numbers, from 1.
    const ALL: [Self; 13] = [
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
        };
        Sense::new(SenseKey::UnitAttention, asc, ascq)
    }

    /// Whether it is of ASC 29h: these come before all others (SAM-5, table 52).
    pub(crate) fn is_reset(self) -> bool {
        matches!(self, Self::PowerOn | Self::TargetReset | Self::Reset | Self::NexusLoss)
    }

    /// Whether it is about reservations, which, like it, outlive a session.
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
    pub(crate) fn iter(self) -> impl Iterator<Item = Attention> {
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

    pub(crate) fn pop(&mut self) -> Option<Attention> {
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

/// Units with the same pending condition: a bit for each, as it may be all of them.
#[derive(Debug)]
pub(crate) struct Marks {
    /// All units that may be marked, in order.
    pub(crate) ids: Vec<VolumeId>,
    bits: Vec<u64>,
    /// How many are.
    pub(crate) left: usize,
}

impl Marks {
    pub(crate) fn none(ids: Vec<VolumeId>) -> Self {
        Self { bits: vec![0; ids.len().div_ceil(64)], ids, left: 0 }
    }

    pub(crate) fn all(ids: Vec<VolumeId>) -> Self {
        let left = ids.len();
        Self { bits: vec![u64::MAX; left.div_ceil(64)], ids, left }
    }

    pub(crate) fn set(&mut self, at: usize) {
        let bit = 1 << (at % 64);
        self.left += usize::from(self.bits[at / 64] & bit == 0);
        self.bits[at / 64] |= bit;
    }

    /// Whether a unit is marked; from now on it is not.
    pub(crate) fn take(&mut self, volume: VolumeId) -> bool {
        let Ok(at) = self.ids.binary_search(&volume) else { return false };
        let bit = 1 << (at % 64);
        let is_marked = self.bits[at / 64] & bit != 0;
        self.bits[at / 64] &= !bit;
        self.left -= usize::from(is_marked);
        is_marked
    }

    pub(crate) fn has(&self, volume: VolumeId) -> bool {
        let found = self.ids.binary_search(&volume);
        found.is_ok_and(|at| self.bits[at / 64] & 1 << (at % 64) != 0)
    }

    /// The same marks for other units, of those that are in both.
    pub(crate) fn moved_to(&self, ids: &[VolumeId]) -> Self {
        let mut moved = Self::none(ids.to_vec());
        let kept = |at: &usize| self.left > 0 && self.has(ids[*at]);
        (0..ids.len()).filter(kept).for_each(|at| moved.set(at));
        moved
    }
}
