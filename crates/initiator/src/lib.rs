//! The initiator side of iSCSI (RFC 7143) as a sans-IO state machine, for tests and the simulator.
//! It is also a checker: anything its target does that the standard forbids is a [`Violation`].
//!
//! No sockets, no clock, no threads, no randomness: the same calls give the same bytes.
//!
//! # Usage
//! One [`Initiator`] is one connection.
//! 1. [`Initiator::new`], then [`Initiator::login`].
//! 2. Send what [`Initiator::output`] returns, as far as the network accepts it, and report how
//!    much that was ([`Initiator::taken`]).
//! 3. Pass what arrives to [`Initiator::receive`], in pieces of any size. An error is a fault of
//!    the target; the connection is unusable after it.
//! 4. Take [`Initiator::next_event`] until there is none.
//! 5. After [`Event::LoggedIn`]: [`Initiator::command`], [`Initiator::abort`],
//!    [`Initiator::task_management`], [`Initiator::nop_out`], [`Initiator::send_targets`],
//!    [`Initiator::logout`].
//!
//! When the connection is lost, [`Initiator::outstanding`] returns the commands that will never get
//! a response. A new `Initiator` with the same name and ISID and `tsih: 0` takes over a session
//! (session reinstatement, RFC 7143, 6.3.5). [`Initiator::joining`] creates another connection of a
//! session. [`Initiator::retry`] and [`Initiator::abort_lost`] fill the gaps that a failed
//! connection leaves in a session that continues. After task management on one connection has
//! aborted commands of the others, call [`Initiator::ended_elsewhere`] on these.
//!
//! # Behaviour
//! It offers AuthMethod None and error recovery level 0. It sends as much unsolicited data as was
//! negotiated, and answers an R2T at once, also after requesting an abort, as RFC 7143, 4.2.3.3,
//! requires. Data of different commands is not interleaved. It answers pings unless
//! [`Options::answers_pings`] is off.
//!
//! # Checks
//! [`Violation`] lists them. Serial numbers are compared by RFC 1982. What a target may do but
//! Holdfast's never does (offers of its own in a login, data out of order) is a violation too.

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
