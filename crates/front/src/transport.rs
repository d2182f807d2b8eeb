//! The interface of a protocol that carries commands. iSCSI is one ([`iscsi`]); NVMe over TCP is
//! another.
//!
//! A [`Transport`] is one connection, as a state machine without sockets: bytes and time go in,
//! bytes and [`Event`]s come out. It knows how commands, data and responses are encoded in PDUs,
//! the order in which commands are delivered, the negotiated parameters of the session, and who may
//! log in. It does not interpret commands: the command set does.
//!
//! A new protocol implements [`Transports`] and [`Transport`], and is passed in
//! [`crate::Options::transports`].

use std::any::Any;
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use ::iscsi::Handed;
pub use block::task::{
    ConnectionId, ManagementFunction, ManagementHandle, ManagementOutcome, Opening, SessionId,
    TaskHandle, TaskManagement, TaskResponse,
};
use block::{DataOut, LunMap};
use smallvec::SmallVec;

pub mod iscsi;

/// The I_T nexus (SAM-5, 4.7; NVMe: a host and a controller).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NexusInfo {
    /// The session.
    pub session: SessionId,
    /// The host's name: an iSCSI name, or an NQN.
    pub host_name: String,
    /// The host's part of the session id, which with its name identifies a port: the ISID of iSCSI.
    pub host_port: [u8; 6],
    /// The relative identifier of the target port.
    pub target_port: u16,
    /// Whether it is a discovery session, which carries no commands.
    pub discovery: bool,
    /// The negotiated parameters, for display.
    pub terms: ::iscsi::Terms,
}

/// A portal, which is its own SCSI target port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortOptions {
    /// The address it listens on.
    pub address: SocketAddr,
    /// The target port group (ALUA) of the port.
    pub group: u16,
    /// The relative target port identifier, unique among the portals. It must not change for the
    /// same address, because registrations refer to it.
    pub id: u16,
}

/// The bytes of a short command that are stored inline: as many as a submission queue entry of NVMe
/// has; most CDBs are shorter.
const SHORT_BYTES: usize = 64;

/// The bytes of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandBytes {
    short: [u8; SHORT_BYTES],
    len: usize,
    /// All bytes, if there are more.
    long: Option<Box<[u8]>>,
}

impl CommandBytes {
    /// Copies these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT_BYTES];
        let len = bytes.len();
        match short.get_mut(..len) {
            Some(own) => own.copy_from_slice(bytes),
            None => return Self { short, len, long: Some(bytes.into()) },
        }
        Self { short, len, long: None }
    }

    /// Returns all bytes.
    pub fn get(&self) -> &[u8] {
        match &self.long {
            Some(long) => long,
            None => &self.short[..self.len],
        }
    }
}

/// A command, with all its data.
#[derive(Debug)]
pub struct Command {
    /// The handle for the response.
    pub task: TaskHandle,
    /// The logical unit, as encoded in the PDU (SAM-5, 4.6).
    pub lun: [u8; 8],
    /// The command as defined by its command set.
    pub bytes: CommandBytes,
    /// Whether its task attribute (ACA) is not supported, so that it is refused.
    pub is_unsupported: bool,
    /// The data that the host sent.
    pub data_out: DataOut,
    /// The number of bytes that the host announced to send.
    pub expected_out_bytes: u32,
    /// The number of bytes that the host expects.
    pub expected_in_bytes: u32,
}

/// An event on a connection.
#[derive(Debug)]
pub enum Event {
    /// The connection has joined its session; the first one begins the session.
    Entered {
        /// The nexus.
        nexus: Arc<NexusInfo>,
        /// The connection of the same session that it replaces, which closes by itself.
        replaces: Option<ConnectionId>,
    },
    /// A login was refused because of the host's identity or credentials.
    LoginRefused {
        /// The name that the host gave.
        host_name: String,
        /// Class and detail of the login status.
        status: (u8, u8),
    },
    /// A command with all its data, in session order.
    Command(Command),
    /// A task management request, whose response is due after the commands it aborts have ended.
    TaskManagement(TaskManagement),
    /// The host has received the response that requested this ([`TaskResponse::acknowledge`]).
    Acknowledged {
        /// The name given there.
        name: u64,
    },
    /// Another connection may continue, or must close: process it.
    Wake {
        /// The other connection.
        connection: ConnectionId,
    },
}

/// Memory for data that is still in use, returned when this is dropped.
pub struct Memory(Option<Box<dyn Any + Send>>);

impl Memory {
    /// Returns a value that returns the memory when it is dropped.
    pub fn new(held: impl Any + Send) -> Self {
        Self(Some(Box::new(held)))
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("held", &self.0.is_some()).finish()
    }
}

/// What ended together with a connection.
#[derive(Debug)]
pub struct Ended {
    /// The commands in progress in the front end, whose responses are no longer wanted.
    pub tasks: Vec<TaskHandle>,
    /// Their memory for data, to be kept until the last of them has ended.
    pub memory: Memory,
    /// The session, if this was its last connection.
    pub session: Option<SessionId>,
    /// Connections that must close, as in [`Event::Wake`].
    pub wake: Vec<ConnectionId>,
}

/// Creates the transports of connections.
pub trait Transports: Send + Sync {
    /// Returns the transport of a new connection.
    fn open(&self, opening: Opening) -> Box<dyn Transport>;

    /// Prepares for these connections of another process. Must be called before others are opened.
    fn expect(&self, handed: &[&Handed]);

    /// Returns the transport of a connection that is handed over from another process; `None` if it
    /// can't continue.
    fn go_on_with(&self, opening: Opening, handed: Handed) -> Option<Box<dyn Transport>>;

    /// Returns the most data-out of one command, in bytes.
    fn data_out_bytes_max(&self) -> u32;

    /// Returns how long a command may wait for memory for its data.
    fn data_timeout(&self) -> Duration;

    /// Returns the memory that data in transit takes now, for all connections, in bytes.
    fn data_bytes(&self) -> usize;
}

/// The most slices of one receive or send that are stored inline.
const FEW_SLICES: usize = 64;

/// The buffers of one receive.
pub type SlicesMut<'a> = SmallVec<[IoSliceMut<'a>; FEW_SLICES]>;

/// The buffers of one send.
pub type Slices<'a> = SmallVec<[IoSlice<'a>; FEW_SLICES]>;

/// Selects commands by handle and logical unit.
pub type Meant<'a> = dyn FnMut(TaskHandle, [u8; 8]) -> bool + 'a;

/// One connection.
pub trait Transport {
    /// Returns the id of this connection.
    fn id(&self) -> ConnectionId;

    /// Returns the address of the peer.
    fn peer(&self) -> SocketAddr;

    /// Returns the name of the host, once known.
    fn host_name(&self) -> Option<&str>;

    /// Appends where to receive the next bytes to `out`; nothing while it does not receive.
    fn receive_slices<'a>(&'a mut self, out: &mut SlicesMut<'a>);

    /// Processes `bytes` received bytes.
    fn received(&mut self, bytes: usize, now: Duration);

    /// Appends what to send next to `out`, up to `bytes_max`.
    fn transmit_slices<'a>(&'a self, out: &mut Slices<'a>, bytes_max: usize);

    /// Notes that `bytes` of them were sent.
    fn transmitted(&mut self, bytes: usize);

    /// Returns whether there is output.
    fn has_output(&self) -> bool;

    /// Returns whether there is so much output that nothing more is received.
    fn is_output_full(&self) -> bool;

    /// Returns whether received bytes await [`Transport::go_on`].
    fn has_input(&self) -> bool;

    /// Processes received bytes for a bounded time.
    fn go_on(&mut self);

    /// Returns the next event.
    fn next_event(&mut self) -> Option<Event>;

    /// Returns whether there are events.
    fn has_events(&self) -> bool;

    /// Sets the current time.
    fn set_time(&mut self, now: Duration);

    /// Advances the time and does what is due.
    fn tick(&mut self, now: Duration);

    /// Returns when to call [`Transport::tick`].
    fn deadline(&self) -> Option<Duration>;

    /// Sets the LUN map of its host.
    fn set_luns(&mut self, luns: Arc<LunMap>);

    /// Returns its session, once known.
    fn session(&self) -> Option<SessionId>;

    /// Returns the number of commands without a response, including those not delivered yet.
    fn outstanding(&self) -> usize;

    /// Reserves memory for this much response data. Returns false if there is none now.
    fn reserve(&mut self, task: TaskHandle, bytes: usize) -> bool;

    /// Responds to a command.
    fn respond(&mut self, task: TaskHandle, response: TaskResponse);

    /// Forgets an aborted command, without a response.
    fn forget(&mut self, task: TaskHandle);

    /// Aborts the selected commands. Returns those that the front end has.
    fn abort(&mut self, is_meant: &mut Meant<'_>) -> Vec<TaskHandle>;

    /// Aborts the selected commands that arrived before a request of this connection's session.
    /// Returns those that the front end has.
    fn abort_before(&mut self, by: ManagementHandle, is_meant: &mut Meant<'_>) -> Vec<TaskHandle>;

    /// Responds to a task management request.
    fn respond_management(&mut self, handle: ManagementHandle, outcome: ManagementOutcome);

    /// Asks the host to end the session now.
    fn request_logout(&mut self);

    /// Prepares to hand the connection over to another process. Returns false, without a change, if
    /// that is impossible.
    fn begin_to_hand_over(&mut self) -> bool;

    /// Returns whether a connection to be handed over still waits for input.
    fn is_incomplete(&self) -> bool;

    /// Returns whether all output was sent and, if it is to be handed over, no command is in
    /// progress.
    fn is_settled(&self) -> bool;

    /// Returns the state that another process needs to continue the connection; `None` if it can't.
    fn hand_over(&self) -> Option<Handed>;

    /// Returns whether it is closing: it accepts no more input, and ends when its output was sent.
    fn is_closed(&self) -> bool;

    /// Returns, once, why it was closed, if that is worth logging.
    fn take_complaint(&mut self) -> Option<&'static str>;

    /// Ends the connection.
    fn end(self: Box<Self>) -> Ended;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_bytes_of_any_length_are_kept() {
        for len in [0, 6, 16, SHORT_BYTES, SHORT_BYTES + 1, 260] {
            let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
            assert_eq!(CommandBytes::new(&bytes).get(), bytes);
        }
    }
}
