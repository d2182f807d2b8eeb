//! Reservations: who may do what to a volume (SPC-4, 5.13; RESERVE and RELEASE of SPC-2, 7.21).
//!
//! * [`actions`]: the actions on a persistent reservation,
//! * [`register`]: those on registrations,
//! * [`exclusive`]: RESERVE and RELEASE.
//!
//! Each action changes a [`Kept`], or refuses and leaves it in whatever state: who calls it takes a
//! refused change back ([`crate::volumes::Volume::change`]).

mod actions;
mod exclusive;
mod register;

pub(crate) use actions::act;
pub(crate) use exclusive::{give_back, take};
pub use register::at_ports;

use crate::attention::Attention;
use crate::kept::{Kept, Kind};
use crate::nexus::NexusId;

/// How reservations of other nexuses restrain a command (SPC-4, table 67; SBC-3, table 13;
/// SPC-2, table 9 for RESERVE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Never.
    Free,
    /// Only by RESERVE of SPC-2: it reports on the unit, and moves no data.
    Status,
    /// By exclusive access reservations, and by RESERVE.
    Read,
    /// By every reservation; and it writes blocks, so write protection bars it too.
    Write,
    /// By every reservation; but it writes no blocks of the unit it is sent to.
    Alter,
    /// RESERVE and RELEASE: their own rules.
    Reserve,
    /// PERSISTENT RESERVE IN and OUT: their own rules, but RESERVE bars them.
    Persistent,
}

impl Kept {
    /// Whether it bars a command of this nexus.
    pub(crate) fn conflict(&self, nexus: &NexusId, access: Access) -> bool {
        if let Some(holder) = &self.exclusive {
            // While a nexus holds it by RESERVE, PERSISTENT RESERVE IN and OUT conflict, whoever
            // sends them (SPC-2, 5.5.1). RELEASE by another is not an error: it does nothing
            // (7.17).
            return match access {
                Access::Free | Access::Reserve => false,
                Access::Persistent => true,
                _ => holder != nexus,
            };
        }
        if access == Access::Reserve {
            // While anybody is registered RESERVE and RELEASE conflict (SPC-2, 5.5.1), but for
            // those whom the persistent reservation admits (SPC-4, 5.13.3).
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

/// What PERSISTENT RESERVE OUT can do (SPC-4, 6.16.2).
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
    /// Whether PRGENERATION counts it, whatever it changed (SPC-4, 6.15.2).
    fn is_counted(self) -> bool {
        !matches!(self, Self::Reserve | Self::Release)
    }

    /// Whether it adds registrations, or takes them away at their own wish.
    pub fn registers(self) -> bool {
        matches!(self, Self::Register | Self::RegisterAndIgnore | Self::Move)
    }
}

/// A list of nexuses that came with an action, or that it can't be understood: that is an error
/// only if the list is not ignored.
pub type Listed<T> = Result<T, BadList>;

/// See [`Listed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadList;

/// An action on the persistent reservation of a volume, or on its registrations.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// Who asks.
    pub nexus: &'a NexusId,
    /// For what.
    pub action: Action,
    /// Whether the scope is the whole volume, the only one that there is.
    pub whole_unit: bool,
    /// The type of the reservation, if it is known.
    pub kind: Option<Kind>,
    /// The key of who asks.
    pub key: u64,
    /// SERVICE ACTION RESERVATION KEY: the new key, or that of whom it is about.
    pub action_key: u64,
    /// Whether all is kept through a loss of power.
    pub aptpl: bool,
    /// The target ports to register with: that of the nexus, or all with ALL_TG_PT.
    pub ports: Vec<u16>,
    /// With SPEC_I_PT, the nexuses of the list, each once.
    pub listed: Option<Listed<Vec<NexusId>>>,
    /// For [`Action::Move`]: the nexus to move to.
    pub moved_to: Option<Listed<NexusId>>,
    /// For [`Action::Move`]: whether who asks is registered no more (UNREG).
    pub unregisters: bool,
}

/// Why an action was not done. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another nexus has the volume, or the key is wrong.
    Conflict,
    /// There is no such scope.
    Scope,
    /// There is no such type.
    Kind,
    /// RELEASE names another scope or type than what is held.
    WrongRelease,
    /// The key that it is about is 0.
    NoKey,
    /// A list of nexuses came from one that is registered.
    AlreadyRegistered,
    /// One of the list is registered.
    ListedRegistered,
    /// The list, or the nexus to move to, can't be understood.
    BadList,
    /// There is no reservation to move.
    NothingToMove,
    /// No more nexuses can register.
    NoRoom,
}

/// What a change does to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// What to tell, by nexus.
    pub told: Vec<(NexusId, Attention)>,
    /// What to tell all nexuses with a session but one.
    pub others: Option<(NexusId, Attention)>,
    /// Whose commands are to be aborted.
    pub aborted: Vec<NexusId>,
}

impl Effect {
    /// The events in it.
    pub(crate) fn attentions(&self) -> impl Iterator<Item = Attention> {
        self.told.iter().chain(&self.others).map(|(_, what)| *what)
    }
}
