//! Reservations: who may do what to a volume (SPC-4, 5.13; RESERVE and RELEASE of SPC-2, 7.21).
//!
//! [`Reservations`] owns the state of all volumes. A command that minds reservations asks
//! [`Reservations::conflict`]; while nobody holds anything, that is one load.
//!
//! * [`persistent`]: PERSISTENT RESERVE OUT: its parameters, and the actions on a reservation,
//! * [`register`]: the actions on registrations,
//! * [`transport_id`]: how initiator ports are named in parameter lists,
//! * [`report`]: PERSISTENT RESERVE IN,
//! * [`saving`]: what is kept through a loss of power, and when a command may say so,
//! * [`spc2`]: RESERVE and RELEASE.

pub(crate) mod persistent;
mod register;
pub(crate) mod report;
pub(crate) mod saving;
pub(crate) mod spc2;
mod transport_id;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use block::VolumeId;
use parking_lot::RwLock;

use crate::nexus::{InitiatorPort, Nexus};
use crate::table::Access;

/// The two ends of an I_T nexus, which outlive its sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NexusId {
    pub initiator: InitiatorPort,
    pub target_port: u16,
}

impl NexusId {
    pub(crate) fn of(nexus: &Nexus) -> Self {
        Self { initiator: nexus.initiator().clone(), target_port: nexus.target_port() }
    }

    pub(crate) fn is(&self, nexus: &Nexus) -> bool {
        self.target_port == nexus.target_port() && self.initiator == *nexus.initiator()
    }
}

/// The types of a persistent reservation (SPC-4, 6.15.3.4), by their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    WriteExclusive = 1,
    ExclusiveAccess = 3,
    WriteExclusiveRegistrantsOnly = 5,
    ExclusiveAccessRegistrantsOnly = 6,
    WriteExclusiveAllRegistrants = 7,
    ExclusiveAccessAllRegistrants = 8,
}

impl Kind {
    pub(crate) fn from_code(code: u8) -> Option<Self> {
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

    /// Whether reads of others are barred too.
    fn bars_reads(self) -> bool {
        use Kind::{
            ExclusiveAccess, ExclusiveAccessAllRegistrants, ExclusiveAccessRegistrantsOnly,
        };
        matches!(
            self,
            ExclusiveAccess | ExclusiveAccessRegistrantsOnly | ExclusiveAccessAllRegistrants
        )
    }

    /// Whether every registered nexus holds it.
    pub(crate) fn all_registrants(self) -> bool {
        matches!(self, Self::WriteExclusiveAllRegistrants | Self::ExclusiveAccessAllRegistrants)
    }

    /// Whether registered nexuses are not barred.
    pub(crate) fn admits_registrants(self) -> bool {
        !matches!(self, Self::WriteExclusive | Self::ExclusiveAccess)
    }
}

/// A registered nexus and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registrant {
    pub nexus: NexusId,
    pub key: u64,
}

/// A persistent reservation. For the "all registrants" types the holder is the nexus that made it,
/// which has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub kind: Kind,
    pub holder: NexusId,
}

/// What PERSISTENT RESERVE OUT changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registry {
    pub registrants: Vec<Registrant>,
    pub reservation: Option<Reservation>,
    /// Whether it is kept through a loss of power: the last valid APTPL bit (SPC-4, 5.13.5.1).
    pub aptpl: bool,
}

impl Registry {
    pub(crate) fn key_of(&self, nexus: &Nexus) -> Option<u64> {
        self.registrants.iter().find(|who| who.nexus.is(nexus)).map(|who| who.key)
    }

    /// Whether the nexus holds the persistent reservation.
    pub(crate) fn holds(&self, nexus: &Nexus) -> bool {
        self.reservation.as_ref().is_some_and(|reservation| {
            if reservation.kind.all_registrants() {
                self.key_of(nexus).is_some()
            } else {
                reservation.holder.is(nexus)
            }
        })
    }

    /// Whether there is a persistent reservation that does not restrain this nexus.
    pub(crate) fn admits(&self, nexus: &Nexus) -> bool {
        let admits = |held: &Reservation| held.kind.admits_registrants();
        self.holds(nexus)
            || (self.reservation.as_ref().is_some_and(admits) && self.key_of(nexus).is_some())
    }
}

/// The reservations of a volume.
#[derive(Debug, Default)]
pub(crate) struct VolumeState {
    /// PRGENERATION: it starts at 0 with each power on, kept registrations or not (SPC-4, 6.15.2).
    pub generation: u32,
    pub registry: Registry,
    /// The nexus that holds it by RESERVE.
    pub spc2: Option<NexusId>,
    pub saving: saving::Saving,
    /// Whether it is among those that [`Reservations::used`] counts.
    counted: bool,
    /// Whether the volume was destroyed: a command that still has the state changes nothing by it.
    gone: bool,
}

impl VolumeState {
    fn is_used(&self) -> bool {
        let registry = &self.registry;
        self.spc2.is_some() || registry.reservation.is_some() || !registry.registrants.is_empty()
    }

    fn conflict(&self, nexus: &Nexus, access: Access) -> bool {
        if let Some(holder) = &self.spc2 {
            // While a nexus holds it by RESERVE, PERSISTENT RESERVE IN and OUT conflict, whoever
            // sends them (SPC-2, 5.5.1). RELEASE by another is not an error: it does nothing
            // (7.17).
            return match access {
                Access::Free | Access::Reserve => false,
                Access::Persistent => true,
                _ => !holder.is(nexus),
            };
        }
        if access == Access::Reserve {
            // While anybody is registered RESERVE and RELEASE conflict (SPC-2, 5.5.1), but for
            // those whom the persistent reservation admits (SPC-4, 5.13.3).
            return !self.registry.registrants.is_empty() && !self.registry.admits(nexus);
        }
        let Some(reservation) = &self.registry.reservation else { return false };
        match access {
            Access::Free | Access::Status | Access::Persistent | Access::Reserve => false,
            Access::Read => reservation.kind.bars_reads() && !self.registry.admits(nexus),
            Access::Write | Access::Alter => !self.registry.admits(nexus),
        }
    }
}

/// The reservations of all volumes. Each volume has a lock of its own: what is done to one holds up
/// no command of another.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    /// How many volumes have any.
    used: AtomicUsize,
    volumes: RwLock<BTreeMap<VolumeId, Arc<RwLock<VolumeState>>>>,
}

impl Reservations {
    /// Whether a reservation of another nexus bars such a command.
    #[inline]
    pub(crate) fn conflict(&self, volume: VolumeId, nexus: &Nexus, access: Access) -> bool {
        if self.used.load(Ordering::Acquire) == 0 {
            return false;
        }
        self.find(volume).is_some_and(|state| state.read().conflict(nexus, access))
    }

    /// The state of a volume, if it has one. The lock over all volumes is let go before that of the
    /// volume is taken.
    fn find(&self, volume: VolumeId) -> Option<Arc<RwLock<VolumeState>>> {
        self.volumes.read().get(&volume).cloned()
    }

    /// Looks at the state of a volume.
    pub(crate) fn look<T>(&self, volume: VolumeId, act: impl FnOnce(&VolumeState) -> T) -> T {
        match self.find(volume) {
            Some(state) => act(&state.read()),
            None => act(&VolumeState::default()),
        }
    }

    /// Changes the state of a volume.
    pub(crate) fn with<T>(&self, volume: VolumeId, act: impl FnOnce(&mut VolumeState) -> T) -> T {
        let found = self.find(volume);
        let state =
            found.unwrap_or_else(|| self.volumes.write().entry(volume).or_default().clone());
        let mut state = state.write();
        let out = act(&mut state);
        self.count(&mut state);
        out
    }

    /// Counts the volume as used, or no more.
    fn count(&self, state: &mut VolumeState) {
        let used = state.is_used() && !state.gone;
        if used && !state.counted {
            self.used.fetch_add(1, Ordering::AcqRel);
        } else if !used && state.counted {
            self.used.fetch_sub(1, Ordering::AcqRel);
        }
        state.counted = used;
    }

    /// A reset of the logical unit: RESERVE ends, persistent reservations stay.
    pub(crate) fn reset(&self, volume: VolumeId) {
        if self.find(volume).is_some() {
            self.with(volume, |state| state.spc2 = None);
        }
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

    /// The loss of a nexus: what it held by RESERVE ends.
    pub(crate) fn nexus_loss(&self, nexus: &Nexus) {
        if self.used.load(Ordering::Acquire) == 0 {
            return;
        }
        let all: Vec<_> = self.volumes.read().values().cloned().collect();
        for state in all {
            let held = |state: &VolumeState| state.spc2.as_ref().is_some_and(|id| id.is(nexus));
            if held(&state.read()) {
                let mut state = state.write();
                if held(&state) {
                    state.spc2 = None;
                    self.count(&mut state);
                }
            }
        }
    }
}
