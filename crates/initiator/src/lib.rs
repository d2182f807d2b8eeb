//! The initiator side of iSCSI (RFC 7143) as a sans-IO machine, for tests and the simulator. It
//! is a checker: whatever its target does that the standard forbids is a [`Violation`].
//!
//! No sockets, no clock, no threads, no chance: the same calls give the same bytes.
//!
//! # How to use it
//! One [`Initiator`] is one connection.
//! 1. [`Initiator::new`], then [`Initiator::login`].
//! 2. Send what [`Initiator::output`] returns, as far as the network takes it, and say how much
//!    that was ([`Initiator::taken`]).
//! 3. Pass what arrives to [`Initiator::receive`], in pieces of any size. An error is a fault of
//!    the target; the connection is of no use after it.
//! 4. Take [`Initiator::next_event`] until there is none.
//! 5. After [`Event::LoggedIn`]: [`Initiator::command`], [`Initiator::abort`],
//!    [`Initiator::task_management`], [`Initiator::nop_out`], [`Initiator::send_targets`],
//!    [`Initiator::logout`].
//!
//! When the network ends, [`Initiator::outstanding`] names the commands that will never be
//! answered. A session is taken over by a new `Initiator` with the same name and ISID and
//! `tsih: 0` (session reinstatement, RFC 7143, 6.3.5). A second connection of a session is made
//! with [`Initiator::joining`]. What a connection has lost that failed while its session goes on is
//! plugged with [`Initiator::retry`] and [`Initiator::abort_lost`]. Where task management on one
//! connection ends commands of the others, call [`Initiator::ended_elsewhere`] on these.
//!
//! # What it does
//! It asks for AuthMethod None and for error recovery level 0. It sends as much data unasked as
//! was agreed on, and answers an R2T at once, also after it has asked for an abort, as RFC 7143,
//! 4.2.3.3, wants. Data of different commands is not interleaved. It answers pings unless
//! [`Options::answers_pings`] is off.
//!
//! # What it checks
//! The list is [`Violation`]. Serial numbers are checked by RFC 1982. What a target may do and no
//! target of ours does (offers of its own in a login, data out of order) is a violation too.

mod answers;
mod data;
mod event;
mod framing;
mod initiator;
mod login;
mod negotiation;
mod options;
mod pdu;
mod requests;
mod several;
mod task;
mod text;
mod violation;
mod window;

pub use event::{Answer, Event, Itt, Nop, Residual};
pub use initiator::Initiator;
pub use options::{Options, Terms};
pub use requests::Busy;
pub use task::{Attribute, Function, LogoutReason};
pub use violation::Violation;

#[cfg(test)]
mod tests;
