//! Events that hosts are notified of once, as unit attentions (SAM-5, 5.14) or asynchronous events,
//! and compact storage of pending ones. Both for one unit and for many units they take little
//! space, because an array may have thousands of nexuses that see thousands of units.

use block::VolumeId;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Attention {
    /// The array was started or there was a reset; all earlier state may be gone.
    PowerOn = 1,
    /// A hard reset of the whole target.
    TargetReset,
    /// A reset of the logical unit.
    UnitReset,
    /// The session of the nexus was lost.
    NexusLoss,
    /// The size of the unit has changed.
    Capacity,
    /// Properties that the unit reports have changed.
    Identity,
    /// The units that the nexus sees have changed.
    Units,
    /// A host has changed a setting of the unit.
    Settings,
    /// Pool usage has crossed a threshold.
    SoftThreshold,
    /// The access state of a path to the unit has changed.
    AccessState,
    /// Reservations were preempted by CLEAR.
    ReservationsPreempted,
    /// A reservation was released.
    ReservationsReleased,
    /// The registration of the nexus was preempted.
    RegistrationsPreempted,
}

impl Attention {
    /// All events, by number, from 1.
    pub const ALL: [Self; 13] = [
        Self::PowerOn,
        Self::TargetReset,
        Self::UnitReset,
        Self::NexusLoss,
        Self::Capacity,
        Self::Identity,
        Self::Units,
        Self::Settings,
        Self::SoftThreshold,
        Self::AccessState,
        Self::ReservationsPreempted,
        Self::ReservationsReleased,
        Self::RegistrationsPreempted,
    ];

    /// The events that result from changes to a volume's persistent state. A nexus may have missed
    /// them when another controller takes over, so their generations are stored, in this order.
    pub const KEPT: [Self; 4] = [
        Self::AccessState,
        Self::ReservationsPreempted,
        Self::ReservationsReleased,
        Self::RegistrationsPreempted,
    ];

    /// Returns whether it is a kind of reset: these precede all others (SAM-5, table 52).
    pub fn is_reset(self) -> bool {
        matches!(self, Self::PowerOn | Self::TargetReset | Self::UnitReset | Self::NexusLoss)
    }

    /// Returns whether it concerns reservations, and therefore outlives a session.
    pub(crate) fn is_of_reservations(self) -> bool {
        matches!(
            self,
            Self::ReservationsPreempted | Self::ReservationsReleased | Self::RegistrationsPreempted
        )
    }
}

/// The pending events of a unit, each kind at most once, packed into a number: the next one is in
/// the low four bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue(u64);

// Four bits hold 15 kinds and "none", and eight bytes hold 16 of these.
const _: () = assert!(Attention::ALL.len() < 16);

impl Queue {
    pub(crate) fn iter(self) -> impl Iterator<Item = Attention> {
        let kinds = (0..Attention::ALL.len()).map(move |at| (self.0 >> (4 * at)) & 0xf);
        kinds.take_while(|kind| *kind > 0).map(|kind| Attention::ALL[kind as usize - 1])
    }

    /// Returns all of them, in one number.
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// Restores the result of [`Queue::to_bits`]; `None` if it is invalid.
    pub(crate) fn of_bits(bits: u64) -> Option<Self> {
        let kinds = || (0..16).map(|at| (bits >> (4 * at)) & 0xf);
        let count = kinds().take_while(|kind| *kind > 0).count();
        let is_known = |kind: u64| kind > 0 && kind as usize <= Attention::ALL.len();
        let is_new = |at: usize, kind: u64| kinds().take(at).all(|other| other != kind);
        let mut queued = kinds().take(count).enumerate();
        let is_sound = queued.all(|(at, kind)| is_known(kind) && is_new(at, kind))
            && kinds().skip(count).all(|kind| kind == 0);
        is_sound.then_some(Self(bits))
    }

    fn collect(kinds: impl Iterator<Item = Attention>) -> Self {
        Self(kinds.enumerate().fold(0, |all, (at, kind)| all | (kind as u64) << (4 * at)))
    }

    /// Adds an event at the end, or before all others if it is a reset.
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

    /// Keeps the events that `meant` selects.
    pub(crate) fn retain(&mut self, meant: impl Fn(Attention) -> bool) {
        *self = Self::collect(self.iter().filter(|what| meant(*what)));
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Units with the same pending condition: a bitmap, because it may be all of them.
#[derive(Debug)]
pub(crate) struct Marks {
    /// All units that may be marked, sorted.
    pub(crate) ids: Vec<VolumeId>,
    bits: Vec<u64>,
    /// The number of marked units.
    pub(crate) left: usize,
}

impl Marks {
    pub(crate) fn none(ids: Vec<VolumeId>) -> Self {
        assert!(ids.is_sorted(), "units are sorted for binary search");
        Self { bits: vec![0; ids.len().div_ceil(64)], ids, left: 0 }
    }

    pub(crate) fn all(ids: Vec<VolumeId>) -> Self {
        assert!(ids.is_sorted(), "units are sorted for binary search");
        let left = ids.len();
        Self { bits: vec![u64::MAX; left.div_ceil(64)], ids, left }
    }

    pub(crate) fn set(&mut self, at: usize) {
        let bit = 1 << (at % 64);
        self.left += usize::from(self.bits[at / 64] & bit == 0);
        self.bits[at / 64] |= bit;
    }

    /// Returns the marked units, sorted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = VolumeId> {
        let marked = |(at, _): &(usize, &VolumeId)| self.bits[at / 64] & 1 << (at % 64) != 0;
        self.ids.iter().enumerate().filter(marked).map(|(_, id)| *id)
    }

    /// Removes the mark of a unit. Returns whether it was marked.
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

    /// Returns the marks for another set of units, of those in both sets.
    pub(crate) fn moved_to(&self, ids: &[VolumeId]) -> Self {
        let mut moved = Self::none(ids.to_vec());
        let kept = |at: &usize| self.left > 0 && self.has(ids[*at]);
        (0..ids.len()).filter(kept).for_each(|at| moved.set(at));
        moved
    }
}
