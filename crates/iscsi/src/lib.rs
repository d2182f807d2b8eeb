//! The target side of iSCSI (RFC 7143) as a sans-IO machine: bytes and time go in, bytes, events
//! and a deadline come out. No threads, no sockets, no clock.
//!
//! A [`Target`] is shared by all connections. A [`Connection`] is owned by the thread that serves
//! its socket, which runs this loop:
//!
//! 1. read into [`Connection::receive_slices`], tell [`Connection::received`];
//! 2. take [`Connection::next_event`] until there is none; answer commands with
//!    [`Connection::respond`], at once or later;
//! 3. send [`Connection::transmit_slices`], tell [`Connection::transmitted`];
//! 4. at [`Connection::deadline`], call [`Connection::tick`];
//! 5. when [`Connection::is_closed`] and there is no output left, or the socket is lost, close
//!    the socket and call [`Connection::end`].

//!
//! # Several connections in a session
//! Their requests share one order (CmdSN). Where a request on one connection lets another go on, or
//! makes it close (logout, reinstatement, loss at error recovery level 0), [`Event::Wake`] and
//! [`Ended::wake`] name it: its thread calls its `next_event` and looks at `is_closed`. The
//! shared state is safe on any threads; it is fastest where one thread serves them all
//! ([`Event::ConnectionAdded`] says which belong together).
//!
//! # Ending tasks
//! Which tasks a set is made of is a matter of logical units, and so of the layer above: a unit may
//! have other numbers for other hosts, and a number several forms. On [`Event::TaskManagement`] it
//! calls [`Connection::abort_before`] on the connection that asked, and [`Connection::abort`] on
//! the
//! others. The request is to be answered ([`Connection::respond_management`]) after all tasks have
//! had their last effect, and each is freed by [`Connection::respond`] (which sends nothing then)
//! or
//! [`Connection::forget`]. A task that was aborted before its event was taken has none.
//!
//! # Bounds
//! A connection holds at most: the receive buffer, [`Limits::output_bytes`] of output and what one
//! more request adds, [`Limits::commands_per_session`] commands,
//! [`Limits::data_out_bytes_per_connection`]
//! of solicited data, and texts of [`Limits::text_bytes`]. The data of all connections together, in
//! both directions, is bounded by [`Limits::data_bytes`], in which each initiator has a share:
//! data is asked for as that has room, and unsolicited data that finds none is answered with TASK
//! SET FULL. Who does not send what was asked for, or does not take what it has asked for, is
//! closed
//! after [`Limits::data_timeout`]. A call does the work of some [`Limits::pdus_per_call`] PDUs at
//! most ([`Connection::has_input`]). Sessions are bounded in all and for each initiator. The number
//! of sockets is bounded by who accepts them.
//!
//! # Secrets
//! Who fails to prove itself ten times is not listened to for a while, by its address.

mod budget;
mod chap;
mod config;
mod connection;
mod digest;
mod event;
mod guesses;
mod login;
mod negotiate;
mod pdu;
mod receive;
mod session;
mod target;
mod task;
mod task_set;
mod text;
mod transmit;

pub use config::{Access, ChapCredentials, InitiatorAccess, Limits, Portal, TargetConfig};
pub use connection::Connection;
pub use connection::handing::Handed;
pub use event::{
    Cdb, Command, ConnectionId, Ended, Event, ManagementFunction, ManagementHandle,
    ManagementOutcome, Memory, NexusInfo, Opening, SessionId, TaskAttribute, TaskHandle,
    TaskManagement, TaskResponse, Terms,
};
pub use guesses::neighbourhood;
pub use target::Target;

#[cfg(test)]
mod tests;
