//! The persistent state of a volume that hosts have set, on which they may rely after a takeover by
//! another controller.
//!
//! A *power on* ends part of it ([`Kept::after_power_on`]); the rest is what the standard preserves
//! through a loss of power (APTPL; SPC-4, 5.13.5.1).

use std::collections::{BTreeMap, HashSet};

use crate::access::AccessState;
use crate::attention::Attention;
use crate::nexus::NexusId;

/// The most nexuses that can register with a volume: 64 hosts with 8 paths each. Their state must
/// fit into one change of the store, however long their names are.
pub const REGISTRANTS_MAX: usize = 512;

/// The types of a persistent reservation (SPC-4, 6.15.3.4), with their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Only the holder may write.
    WriteExclusive = 1,
    /// Only the holder may read and write.
    ExclusiveAccess = 3,
    /// Only registered nexuses may write.
    WriteExclusiveRegistrantsOnly = 5,
    /// Only registered nexuses may read and write.
    ExclusiveAccessRegistrantsOnly = 6,
    /// The same as "registrants only", and all registrants hold it.
    WriteExclusiveAllRegistrants = 7,
    /// The same for exclusive access.
    ExclusiveAccessAllRegistrants = 8,
}

impl Kind {
    /// Returns the type with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::WriteExclusive,
            3 => Self::ExclusiveAccess,
            5 => Self::WriteExclusiveRegistrantsOnly,
            6 => Self::ExclusiveAccessRegistrantsOnly,
            7 => Self::WriteExclusiveAllRegistrants,
            8 => Self::ExclusiveAccessAllRegistrants,
            _ => return None,
        })
    }

    /// Returns whether it also prevents reads of others.
    pub(crate) fn bars_reads(self) -> bool {
        use Kind::{
            ExclusiveAccess, ExclusiveAccessAllRegistrants, ExclusiveAccessRegistrantsOnly,
        };
        matches!(
            self,
            ExclusiveAccess | ExclusiveAccessRegistrantsOnly | ExclusiveAccessAllRegistrants
        )
    }

    /// Returns whether every registered nexus holds it.
    pub fn all_registrants(self) -> bool {
        matches!(self, Self::WriteExclusiveAllRegistrants | Self::ExclusiveAccessAllRegistrants)
    }

    /// Returns whether it allows registered nexuses access.
    pub(crate) fn admits_registrants(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }
}

/// A registered nexus and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registrant {
    /// The nexus.
    pub nexus: NexusId,
    /// Its reservation key, never 0.
    pub key: u64,
}

/// A persistent reservation. Its scope is always the whole volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its type.
    pub kind: Kind,
    /// The holder. For the "all registrants" types this is the nexus that established it, which has
    /// no effect, and which may no longer be registered.
    pub holder: NexusId,
}

/// The persistent state of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// PRGENERATION: 0 after each power on, whether registrations were preserved or not (SPC-4,
    /// 6.15.2).
    pub generation: u32,
    /// The registrants, in the order of registration.
    pub registrants: Vec<Registrant>,
    /// The persistent reservation.
    pub reservation: Option<Reservation>,
    /// Whether these persist through a loss of power: the last valid APTPL bit (SPC-4, 5.13.5.1).
    pub aptpl: bool,
    /// The nexus that holds the volume by RESERVE of SPC-2.
    pub exclusive: Option<NexusId>,
    /// The states that hosts have set, by target port group.
    pub access: BTreeMap<u16, AccessState>,
    /// How often each of [`Attention::KEPT`] has occurred since the last power on.
    pub attentions: [u32; Attention::KEPT.len()],
}

impl Kept {
    /// Returns whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what remains after a loss of power: registrations and reservation, with APTPL.
    pub fn after_power_on(self) -> Self {
        if !self.aptpl {
            return Self::default();
        }
        let Self { registrants, reservation, aptpl, .. } = self;
        Self { registrants, reservation, aptpl, ..Self::default() }
    }

    /// Returns what is wrong with it, if it is a state that no change can produce.
    pub fn flaw(&self) -> Option<&'static str> {
        let nexuses: HashSet<&NexusId> = self.registrants.iter().map(|who| &who.nexus).collect();
        if nexuses.len() != self.registrants.len() {
            return Some("a nexus is registered twice");
        }
        if nexuses.len() > REGISTRANTS_MAX {
            return Some("too many nexuses are registered");
        }
        if self.registrants.iter().any(|who| who.key == 0) {
            return Some("a nexus is registered with the key 0");
        }
        if self.exclusive.is_some() && !nexuses.is_empty() {
            return Some("it is held by RESERVE, but nexuses are registered");
        }
        let is_held = self.reservation.as_ref().is_none_or(|held| match held.kind {
            kind if kind.all_registrants() => !nexuses.is_empty(),
            _ => nexuses.contains(&held.holder),
        });
        (!is_held).then_some("the holder of the reservation is not registered")
    }

    /// Returns the key of a nexus, if it is registered.
    pub fn key_of(&self, nexus: &NexusId) -> Option<u64> {
        self.registrants.iter().find(|who| who.nexus == *nexus).map(|who| who.key)
    }

    /// Returns whether the nexus holds the persistent reservation.
    pub fn holds(&self, nexus: &NexusId) -> bool {
        self.reservation.as_ref().is_some_and(|reservation| {
            if reservation.kind.all_registrants() {
                self.key_of(nexus).is_some()
            } else {
                reservation.holder == *nexus
            }
        })
    }

    /// Returns whether there is a persistent reservation that does not restrict this nexus.
    pub fn admits(&self, nexus: &NexusId) -> bool {
        let admits = |held: &Reservation| held.kind.admits_registrants();
        self.holds(nexus)
            || (self.reservation.as_ref().is_some_and(admits) && self.key_of(nexus).is_some())
    }

    /// Counts events caused by a change.
    pub(crate) fn count(&mut self, what: Attention) {
        if let Some(at) = Attention::KEPT.iter().position(|kept| *kept == what) {
            self.attentions[at] = self.attentions[at].wrapping_add(1).max(1);
        }
    }

    /// Returns the events that some nexus may have missed.
    pub(crate) fn missed(&self) -> impl Iterator<Item = Attention> {
        let counts = self.attentions;
        Attention::KEPT.into_iter().zip(counts).filter(|(_, count)| *count > 0).map(|(a, _)| a)
    }
}
