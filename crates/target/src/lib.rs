//! What a target knows of hosts, whatever the protocol: its ports, its I_T nexuses, who is
//! registered with a volume and who has it reserved, which events a nexus has still to be told of,
//! in which state a path is, and what ROD tokens stand for.
//!
//! `scsi` is a codec over this: it parses commands into calls, and makes sense data of what comes
//! back ([`Refusal`], [`Attention`], [`TokenError`]). Nothing here waits, reads a clock or does
//! I/O.
//!
//! * [`target`]: [`Target`], which owns all of it,
//! * [`nexus`]: a nexus with a session, [`parked`]: those without one,
//! * [`attention`]: the events, and queues of them,
//! * [`handing`]: sessions that go on at another controller,
//! * [`kept`]: what is kept of a volume, [`volumes`]: of all volumes,
//! * [`saving`]: when a change of that is durable, and may be answered,
//! * [`reservations`]: what hosts do to registrations and reservations,
//! * [`access`]: asymmetric access states, [`rods`]: ROD tokens.
//!
//! # Invariants
//!
//! Asserted where they are made, also in production:
//!
//! 1. What is kept of a volume is sound ([`Kept::flaw`]) after each change, and before it is
//!    written: no nexus is registered twice, none with the key 0, a reservation is held by who is
//!    registered, and RESERVE and registrations exclude each other.
//! 2. A change is answered, and told to others, only when it is durable; what is written later is
//!    newer ([`saving`]).
//! 3. A nexus is live or parked, never both, and each event is pending once for each unit.
//! 4. The numbers by which the usual command sees that there is nothing to look at
//!    ([`volumes::Volumes`]) equal what is counted.

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
