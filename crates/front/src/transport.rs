//! What a front end asks of the protocol that carries commands. iSCSI is one ([`iscsi`]); NVMe over
//! TCP is another.
//!
//! A [`Transport`] is one connection, as a machine without sockets: bytes and time go in, bytes and
//! [`Event`]s come out. It knows how commands, their data and their answers stand in PDUs, in which
//! order they are delivered, what its session agreed on, and who may log in. It does not know what
//! a command does: that is the command set's.
//!
//! A new protocol implements [`Transports`] and [`Transport`], and is given to
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

/// Who talks to whom: the I_T nexus (SAM-5, 4.7; NVMe: a host and a controller).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NexusInfo {
    /// The session.
    pub session: SessionId,
    /// The host's name: an iSCSI name, or an NQN.
    pub host_name: String,
    /// The host's part of the session's name, with which its name is a port: for iSCSI the ISID.
    pub host_port: [u8; 6],
    /// The relative identifier of the target port.
    pub target_port: u16,
    /// Whether it is a session for discovery: it carries no commands.
    pub discovery: bool,
    /// What was agreed on, for who looks.
    pub terms: ::iscsi::Terms,
}

/// A portal, which is a SCSI target port of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortOptions {
    /// Where it listens.
    pub address: SocketAddr,
    /// The target port group (ALUA) of the port.
    pub group: u16,
    /// The relative target port identifier, which no other portal has. It is to stay with the
    /// address: registrations name it.
    pub id: u16,
}

/// Bytes that short commands are kept in without memory of their own: a submission queue entry of
/// NVMe has so many, a CDB mostly fewer.
const SHORT_BYTES: usize = 64;

/// The bytes of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandBytes {
    short: [u8; SHORT_BYTES],
    len: usize,
    /// All of them, if they are more.
    long: Option<Box<[u8]>>,
}

impl CommandBytes {
    /// A copy of these.
    pub fn new(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT_BYTES];
        let len = bytes.len();
        match short.get_mut(..len) {
            Some(own) => own.copy_from_slice(bytes),
            None => return Self { short, len, long: Some(bytes.into()) },
        }
        Self { short, len, long: None }
    }

    /// All of them.
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
    /// To answer it with.
    pub task: TaskHandle,
    /// The logical unit, as it stood in the PDU (SAM-5, 4.6).
    pub lun: [u8; 8],
    /// What is to be done, in the words of its command set.
    pub bytes: CommandBytes,
    /// Whether its task attribute is not supported (ACA), so that it is refused.
    pub is_unsupported: bool,
    /// What the host sent.
    pub data_out: DataOut,
    /// How many bytes the host announced to send.
    pub expected_out_bytes: u32,
    /// How many bytes the host expects.
    pub expected_in_bytes: u32,
}

/// What happened on a connection.
#[derive(Debug)]
pub enum Event {
    /// The connection has entered its session, which begins with it if it is the first.
    Entered {
        /// Who.
        nexus: Arc<NexusInfo>,
        /// The connection of the same session whose place it takes, which closes by itself.
        replaces: Option<ConnectionId>,
    },
    /// A login was refused, for what its host is or does not know.
    LoginRefused {
        /// The name that it gave.
        host_name: String,
        /// Class and detail of the answer.
        status: (u8, u8),
    },
    /// A command, with all its data, in the session's order.
    Command(Command),
    /// Commands are to be ended. To be answered after they have ended.
    TaskManagement(TaskManagement),
    /// The host has the answer that asked for this ([`TaskResponse::acknowledge`]).
    Acknowledged {
        /// As it was called.
        name: u64,
    },
    /// Another connection may go on, or has to close: it is to be looked at.
    Wake {
        /// The other connection.
        connection: ConnectionId,
    },
}

/// Memory for data that is still in use, given back when this is dropped.
pub struct Memory(Option<Box<dyn Any + Send>>);

impl Memory {
    /// What gives memory back when it is dropped.
    pub fn new(held: impl Any + Send) -> Self {
        Self(Some(Box::new(held)))
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("held", &self.0.is_some()).finish()
    }
}

/// What ended with a connection.
#[derive(Debug)]
pub struct Ended {
    /// The commands that the front end has. Their answers are not wanted any more.
    pub tasks: Vec<TaskHandle>,
    /// What these have of the memory for data: to be kept until the last of them has ended.
    pub memory: Memory,
    /// The session, if this was its last connection.
    pub session: Option<SessionId>,
    /// Connections that have to close: as [`Event::Wake`].
    pub wake: Vec<ConnectionId>,
}

/// Makes the transports of connections.
pub trait Transports: Send + Sync {
    /// The transport of a new connection.
    fn open(&self, opening: Opening) -> Box<dyn Transport>;

    /// These connections of another process go on here. To be told before others are opened.
    fn expect(&self, handed: &[&Handed]);

    /// The transport of a connection of another process, which goes on here; `None` if it can't.
    fn go_on_with(&self, opening: Opening, handed: Handed) -> Option<Box<dyn Transport>>;

    /// The most data that is asked for with one command, in bytes.
    fn data_out_bytes_max(&self) -> u32;

    /// How long a command may find no memory for its data.
    fn data_timeout(&self) -> Duration;

    /// The memory that data on its way takes now, of all connections, in bytes.
    fn data_bytes(&self) -> usize;
}

/// Pieces of memory of one receive or send without memory of their own, as long as they are few.
const FEW_SLICES: usize = 64;

/// Where one receive goes.
pub type SlicesMut<'a> = SmallVec<[IoSliceMut<'a>; FEW_SLICES]>;

/// What one send takes.
pub type Slices<'a> = SmallVec<[IoSlice<'a>; FEW_SLICES]>;

/// Whether a command is meant, by its handle and its logical unit.
pub type Meant<'a> = dyn FnMut(TaskHandle, [u8; 8]) -> bool + 'a;

/// One connection.
pub trait Transport {
    /// The name of this connection.
    fn id(&self) -> ConnectionId;

    /// The address at the other end.
    fn peer(&self) -> SocketAddr;

    /// The name of its host, once it is known.
    fn host_name(&self) -> Option<&str>;

    /// Where to receive the next bytes; nothing if none are to be received now.
    fn receive_slices<'a>(&'a mut self, out: &mut SlicesMut<'a>);

    /// So many bytes were received there.
    fn received(&mut self, bytes: usize, now: Duration);

    /// What to send next, up to so many bytes.
    fn transmit_slices<'a>(&'a self, out: &mut Slices<'a>, bytes_max: usize);

    /// So many of these bytes were sent.
    fn transmitted(&mut self, bytes: usize);

    /// Whether there is something to send.
    fn has_output(&self) -> bool;

    /// Whether there is so much to send that nothing more is received.
    fn is_output_full(&self) -> bool;

    /// Whether bytes were received that [`Transport::go_on`] has not worked on.
    fn has_input(&self) -> bool;

    /// Works on what was received, for a bounded time.
    fn go_on(&mut self);

    /// The next thing that happened.
    fn next_event(&mut self) -> Option<Event>;

    /// Whether there is one.
    fn has_events(&self) -> bool;

    /// The time.
    fn set_time(&mut self, now: Duration);

    /// Time has passed: does what is due.
    fn tick(&mut self, now: Duration);

    /// When to call [`Transport::tick`].
    fn deadline(&self) -> Option<Duration>;

    /// What its host sees from now on.
    fn set_luns(&mut self, luns: Arc<LunMap>);

    /// The session that it is of, once that is known.
    fn session(&self) -> Option<SessionId>;

    /// Commands that were delivered and not answered, and those that wait to be.
    fn outstanding(&self) -> usize;

    /// Memory for so much data of an answer. Returns false if there is none now.
    fn reserve(&mut self, task: TaskHandle, bytes: usize) -> bool;

    /// Answers a command.
    fn respond(&mut self, task: TaskHandle, response: TaskResponse);

    /// A command is not answered: it was aborted.
    fn forget(&mut self, task: TaskHandle);

    /// Ends the commands that are meant. Returns those that the front end has.
    fn abort(&mut self, is_meant: &mut Meant<'_>) -> Vec<TaskHandle>;

    /// The same of those that came before a request of this connection's session.
    fn abort_before(&mut self, by: ManagementHandle, is_meant: &mut Meant<'_>) -> Vec<TaskHandle>;

    /// Answers a task management request.
    fn respond_management(&mut self, handle: ManagementHandle, outcome: ManagementOutcome);

    /// Asks the host to end the session, now.
    fn request_logout(&mut self);

    /// It is to go on in another process. False if it can't: nothing changes then.
    fn begin_to_hand_over(&mut self) -> bool;

    /// Whether it waits for input though it is to go on in another process.
    fn is_incomplete(&self) -> bool;

    /// Whether it has sent all that there is; if it is to go on in another process, whether nothing
    /// of it is under way.
    fn is_settled(&self) -> bool;

    /// What the other process has to know to go on with it; `None` if it can't.
    fn hand_over(&self) -> Option<Handed>;

    /// Whether it takes nothing more, and is over when it has sent what is left.
    fn is_closed(&self) -> bool;

    /// Why it was closed, once, if people should know.
    fn take_complaint(&mut self) -> Option<&'static str>;

    /// It is gone.
    fn end(self: Box<Self>) -> Ended;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_command_are_kept_whatever_their_number() {
        for len in [0, 6, 16, SHORT_BYTES, SHORT_BYTES + 1, 260] {
            let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
            assert_eq!(CommandBytes::new(&bytes).get(), bytes);
        }
    }
}
