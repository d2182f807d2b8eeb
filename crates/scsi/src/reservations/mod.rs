//! Reservations, as hosts ask for them: [`target::reservations`] keeps and decides, and this reads
//! commands and writes answers.
//!
//! * [`persistent`]: PERSISTENT RESERVE OUT,
//! * [`transport_id`]: how initiator ports are named in parameter lists,
//! * [`report`]: PERSISTENT RESERVE IN,
//! * [`spc2`]: RESERVE and RELEASE.

pub(crate) mod persistent;
pub(crate) mod report;
pub(crate) mod spc2;
mod transport_id;
