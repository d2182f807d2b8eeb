//! Events that hosts are told of once, as unit attentions (SAM-5, 5.14) or asynchronous events,
//! and how pending ones are kept. Both for one unit and for many units they take little room, as
//! an array may have thousands of nexuses which see thousands of units.

use block::VolumeId;

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Attention {
    /// The array was started, or there was a reset, nobody knows which: all earlier state may be
    /// gone.
    PowerOn = 1,
    /// A hard reset, of the whole target.
    TargetReset,
    /// A reset of the logical unit.
    UnitReset,
    /// The session of the nexus was lost.
    NexusLoss,
    /// The size of the unit has changed.
    Capacity,
    /// What the unit says of itself has changed.
    Identity,
    /// The units that the nexus sees have changed.
    Units,
    /// A setting of the unit was changed by a host.
    Settings,
    /// The pool's use has crossed a threshold.
    SoftThreshold,
    /// The access state of a path to the unit has changed.
    AccessState,
    /// Reservations were preempted: by CLEAR.
    ReservationsPreempted,
    /// A reservation was released.
    ReservationsReleased,
    /// The registration of the nexus was preempted.
    RegistrationsPreempted,
}

impl Attention {
    /// All, by their numbers, from 1.
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

    /// Those that come of changes to what is kept of a volume: a nexus may have missed them when
    /// another controller takes over, so their generations are kept, in this order.
    pub const KEPT: [Self; 4] = [
        Self::AccessState,
        Self::ReservationsPreempted,
        Self::ReservationsReleased,
        Self::RegistrationsPreempted,
    ];

    /// Whether it is a reset of some kind: these come before all others (SAM-5, table 52).
    pub fn is_reset(self) -> bool {
        matches!(self, Self::PowerOn | Self::TargetReset | Self::UnitReset | Self::NexusLoss)
    }

    /// Whether it is about reservations, which, like it, outlive a session.
    pub(crate) fn is_of_reservations(self) -> bool {
        matches!(
            self,
            Self::ReservationsPreempted | Self::ReservationsReleased | Self::RegistrationsPreempted
        )
    }
}

/// The events of a unit, the next one in the low four bits, each kind at most once: so a queue
/// costs as much as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue(u64);

// Four bits hold 15 kinds and "none", and eight bytes hold 16 of these.
const _: () = assert!(Attention::ALL.len() < 16);

impl Queue {
    pub(crate) fn iter(self) -> impl Iterator<Item = Attention> {
        let kinds = (0..Attention::ALL.len()).map(move |at| (self.0 >> (4 * at)) & 0xf);
        kinds.take_while(|kind| *kind > 0).map(|kind| Attention::ALL[kind as usize - 1])
    }

    /// All of them, in one number.
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// What [`Queue::to_bits`] gave; `None` if it can't have been that.
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
        assert!(ids.is_sorted(), "units are looked up by bisection");
        Self { bits: vec![0; ids.len().div_ceil(64)], ids, left: 0 }
    }

    pub(crate) fn all(ids: Vec<VolumeId>) -> Self {
        assert!(ids.is_sorted(), "units are looked up by bisection");
        let left = ids.len();
        Self { bits: vec![u64::MAX; left.div_ceil(64)], ids, left }
    }

    pub(crate) fn set(&mut self, at: usize) {
        let bit = 1 << (at % 64);
        self.left += usize::from(self.bits[at / 64] & bit == 0);
        self.bits[at / 64] |= bit;
    }

    /// The units that are marked, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = VolumeId> {
        let marked = |(at, _): &(usize, &VolumeId)| self.bits[at / 64] & 1 << (at % 64) != 0;
        self.ids.iter().enumerate().filter(marked).map(|(_, id)| *id)
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
