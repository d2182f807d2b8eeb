//! The target side of iSCSI (RFC 7143) as a sans-IO state machine: bytes and time go in, bytes,
//! events and a deadline come out. No threads, no sockets, no clock.
//!
//! A [`Target`] is shared by all connections. A [`Connection`] is owned by the thread that serves
//! its socket, which runs this loop:
//!
//! 1. receive into [`Connection::receive_slices`], then call [`Connection::received`];
//! 2. take [`Connection::next_event`] until there is none; respond to commands with
//!    [`Connection::respond`], at once or later;
//! 3. send [`Connection::transmit_slices`], then call [`Connection::transmitted`];
//! 4. at [`Connection::deadline`], call [`Connection::tick`];
//! 5. when [`Connection::is_closed`] and no output is left, or the socket is lost, close the socket
//!    and call [`Connection::end`].
//!
//! # Several connections in a session
//! Their requests share one order (CmdSN). If a request on one connection lets another connection
//! continue, or makes it close (logout, reinstatement, loss at error recovery level 0),
//! [`Event::Wake`] and [`Ended::wake`] name it: its thread must call its `next_event` and check
//! `is_closed`. The shared state is thread-safe; it is fastest if one thread serves all connections
//! of a session ([`Event::ConnectionAdded`] says which belong together).
//!
//! # Aborting tasks
//! Which tasks belong to a set depends on logical units, and so on the layer above: a unit may have
//! different numbers for different hosts, and a number several encodings. On
//! [`Event::TaskManagement`] that layer calls [`Connection::abort_before`] on the connection of the
//! request, and [`Connection::abort`] on the others. It responds to the request
//! ([`Connection::respond_management`]) after all tasks have had their last effect, and frees each
//! task by [`Connection::respond`] (which then sends nothing) or [`Connection::forget`]. A task
//! that was aborted before its event was taken has no event.
//!
//! # Bounds
//! A connection holds at most: the receive buffer, [`Limits::output_bytes`] of output and the
//! output of one more request, [`Limits::commands_per_session`] commands,
//! [`Limits::data_out_bytes_per_connection`] of solicited data, and texts of
//! [`Limits::text_bytes`]. The data of all connections together, in both directions, is bounded by
//! [`Limits::data_bytes`], of which each initiator has a share: data is solicited as far as the
//! share allows, and a command with unsolicited data beyond it ends with TASK SET FULL. A
//! connection that withholds solicited data, or does not accept its responses, is closed after
//! [`Limits::data_timeout`]. A call processes about [`Limits::pdus_per_call`] PDUs at most
//! ([`Connection::has_input`]). Sessions are bounded in total and for each initiator. The caller
//! that accepts sockets bounds their number.
//!
//! # Secrets
//! After ten failed authentications, further attempts from the same address are refused for a
//! while.

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
