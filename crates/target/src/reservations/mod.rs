//! Reservations: who may access a volume, and how (SPC-4, 5.13; RESERVE and RELEASE of SPC-2,
//! 7.21).
//!
//! * [`actions`]: the actions on a persistent reservation,
//! * [`register`]: the actions on registrations,
//! * [`exclusive`]: RESERVE and RELEASE.
//!
//! Each action changes a [`Kept`], or refuses and leaves it in an arbitrary state: the caller
//! discards a refused change ([`crate::volumes::Volume::change`]).

mod actions;
mod exclusive;
mod register;

pub(crate) use actions::act;
pub(crate) use exclusive::{give_back, take};
pub use register::at_ports;

use crate::attention::Attention;
use crate::kept::{Kept, Kind};
use crate::nexus::NexusId;

/// How reservations of other nexuses restrict a command (SPC-4, table 67; SBC-3, table 13; SPC-2,
/// table 9 for RESERVE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Never.
    Free,
    /// Only by RESERVE of SPC-2: it reports on the unit, and transfers no data.
    Status,
    /// By exclusive access reservations, and by RESERVE.
    Read,
    /// By every reservation; it writes blocks, so write protection also prevents it.
    Write,
    /// By every reservation; but it writes no blocks of the addressed unit.
    Alter,
    /// RESERVE and RELEASE have their own rules.
    Reserve,
    /// PERSISTENT RESERVE IN and OUT have their own rules, but RESERVE conflicts with them.
    Persistent,
}

impl Kept {
    /// Returns whether a command of this nexus conflicts.
    pub(crate) fn conflict(&self, nexus: &NexusId, access: Access) -> bool {
        if let Some(holder) = &self.exclusive {
            // While a nexus holds the volume by RESERVE, PERSISTENT RESERVE IN and OUT conflict for
            // all nexuses (SPC-2, 5.5.1). RELEASE by another nexus is not an error: it does nothing
            // (7.17).
            return match access {
                Access::Free | Access::Reserve => false,
                Access::Persistent => true,
                _ => holder != nexus,
            };
        }
        if access == Access::Reserve {
            // While any nexus is registered, RESERVE and RELEASE conflict (SPC-2, 5.5.1), except
            // for nexuses that the persistent reservation admits (SPC-4, 5.13.3).
            return !self.registrants.is_empty() && !self.admits(nexus);
        }
        let Some(reservation) = &self.reservation else { return false };
        match access {
            Access::Free | Access::Status | Access::Persistent | Access::Reserve => false,
            Access::Read => reservation.kind.bars_reads() && !self.admits(nexus),
            Access::Write | Access::Alter => !self.admits(nexus),
        }
    }
}

/// The actions of PERSISTENT RESERVE OUT (SPC-4, 6.16.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// REGISTER.
    Register,
    /// REGISTER AND IGNORE EXISTING KEY.
    RegisterAndIgnore,
    /// RESERVE.
    Reserve,
    /// RELEASE.
    Release,
    /// CLEAR.
    Clear,
    /// PREEMPT.
    Preempt,
    /// PREEMPT AND ABORT.
    PreemptAndAbort,
    /// REGISTER AND MOVE.
    Move,
}

impl Action {
    /// Returns whether it increments PRGENERATION, regardless of what it changed (SPC-4, 6.15.2).
    fn is_counted(self) -> bool {
        !matches!(self, Self::Reserve | Self::Release)
    }

    /// Returns whether it adds registrations, or removes them at the registrant's request.
    pub fn registers(self) -> bool {
        matches!(self, Self::Register | Self::RegisterAndIgnore | Self::Move)
    }
}

/// A list of nexuses in the parameters, or that it is invalid, which is an error only if the list
/// is not ignored.
pub type Listed<T> = Result<T, BadList>;

/// See [`Listed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadList;

/// An action on the persistent reservation of a volume, or on its registrations.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The requesting nexus.
    pub nexus: &'a NexusId,
    /// The action.
    pub action: Action,
    /// Whether the scope is the whole volume, the only one supported.
    pub whole_unit: bool,
    /// The type of the reservation, if it is valid.
    pub kind: Option<Kind>,
    /// The key of the requesting nexus.
    pub key: u64,
    /// SERVICE ACTION RESERVATION KEY: the new key, or that of the affected nexuses.
    pub action_key: u64,
    /// Whether the state persists through a loss of power.
    pub aptpl: bool,
    /// The target ports to register with: that of the nexus, or all with ALL_TG_PT.
    pub ports: Vec<u16>,
    /// With SPEC_I_PT, the nexuses of the list, each once.
    pub listed: Option<Listed<Vec<NexusId>>>,
    /// For [`Action::Move`]: the nexus to move to.
    pub moved_to: Option<Listed<NexusId>>,
    /// For [`Action::Move`]: whether the requesting nexus is unregistered (UNREG).
    pub unregisters: bool,
}

/// The reason why an action was refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another nexus holds the volume, or the key is wrong.
    Conflict,
    /// The scope is not supported.
    Scope,
    /// The type is not supported.
    Kind,
    /// RELEASE specifies another scope or type than that of the reservation.
    WrongRelease,
    /// The SERVICE ACTION RESERVATION KEY is 0.
    NoKey,
    /// A list of nexuses was sent by a registered nexus.
    AlreadyRegistered,
    /// A nexus in the list is registered.
    ListedRegistered,
    /// The list, or the nexus to move to, is invalid.
    BadList,
    /// There is no reservation to move.
    NothingToMove,
    /// No more nexuses can register.
    NoRoom,
}

/// The effects of a change on others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// The events for single nexuses.
    pub told: Vec<(NexusId, Attention)>,
    /// The event for all nexuses with a session but one.
    pub others: Option<(NexusId, Attention)>,
    /// The nexuses whose commands are aborted.
    pub aborted: Vec<NexusId>,
}

impl Effect {
    /// Returns the events in it.
    pub(crate) fn attentions(&self) -> impl Iterator<Item = Attention> {
        self.told.iter().chain(&self.others).map(|(_, what)| *what)
    }
}
