//! Reservation commands: [`target::reservations`] keeps the state and decides; this parses commands
//! and encodes responses.
//!
//! * [`persistent`]: PERSISTENT RESERVE OUT,
//! * [`transport_id`]: names of initiator ports in parameter lists,
//! * [`report`]: PERSISTENT RESERVE IN,
//! * [`spc2`]: RESERVE and RELEASE.

pub(crate) mod persistent;
pub(crate) mod report;
pub(crate) mod spc2;
mod transport_id;
