//! A target's state of hosts, independent of the protocol: its ports, its I_T nexuses,
//! registrations and reservations of volumes, pending notifications of nexuses, access states of
//! paths, and the data that ROD tokens represent.
//!
//! `scsi` is a codec over this: it parses commands into calls, and translates the results
//! ([`Refusal`], [`Attention`], [`TokenError`]) to sense data. Nothing here blocks, reads a clock
//! or does I/O.
//!
//! * [`target`]: [`Target`], which owns all of it,
//! * [`nexus`]: a nexus with a session, [`parked`]: nexuses without one,
//! * [`attention`]: the events, and queues of them,
//! * [`handing`]: sessions that are handed over to another controller,
//! * [`kept`]: the persistent state of a volume, [`volumes`]: of all volumes,
//! * [`saving`]: when a change of it is durable and may be acknowledged,
//! * [`reservations`]: actions of hosts on registrations and reservations,
//! * [`access`]: asymmetric access states, [`rods`]: ROD tokens.
//!
//! # Invariants
//!
//! Asserted where the state changes, also in production:
//!
//! 1. The persistent state of a volume is valid ([`Kept::flaw`]) after each change, and before it
//!    is written: no nexus is registered twice, none with the key 0, a reservation is held by a
//!    registrant, and RESERVE and registrations exclude each other.
//! 2. A change is acknowledged, and reported to others, only when it is durable; later writes
//!    contain newer state ([`saving`]).
//! 3. A nexus is live or parked, never both, and each event is pending once for each unit.
//! 4. The counters by which most commands see that there is nothing to check ([`volumes::Volumes`])
//!    equal what they count.

pub mod access;
pub mod attention;
pub mod handing;
pub mod kept;
pub mod nexus;
mod parked;
pub mod reservations;
pub mod rods;
pub mod saving;
pub mod target;
pub mod volumes;

pub use access::AccessState;
pub use attention::Attention;
pub use handing::Untold;
pub use kept::{Kept, Kind, REGISTRANTS_MAX, Registrant, Reservation};
pub use nexus::{HostPort, Nexus, NexusId, PreemptionMark, TargetPort};
pub use reservations::{Access, Action, Asked, Refusal};
pub use rods::saving::{KeptRod, KeptRods, TokenMaker, UnsavedRods};
pub use rods::{Rod, RodVolume, Rods, Token, TokenError, TokenKey};
pub use saving::{Change, SaveError, Subject, Unsaved};
pub use target::{KeptState, Nonsense, Start, Target};

#[cfg(test)]
mod tests;
