//! Events from a connection to the layer above, and the responses to them.

use std::sync::Arc;

use block::DataOut;
pub use block::task::{
    ConnectionId, ManagementFunction, ManagementHandle, ManagementOutcome, Opening, SessionId,
    TaskHandle, TaskManagement, TaskResponse,
};

use serde::{Deserialize, Serialize};

use crate::budget::Grant;

/// The I_T nexus (RFC 7143, 4.4.1; SAM-5, 4.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NexusInfo {
    /// The session.
    pub session: SessionId,
    /// The initiator's iSCSI name.
    pub initiator_name: String,
    /// The initiator's part of the session id. With the name it is the SCSI initiator port.
    pub isid: [u8; 6],
    /// The target's part of the session id (TSIH).
    pub tsih: u16,
    /// The tag of the portal group: with the target's name it is the SCSI target port.
    pub portal_tag: u16,
    /// Whether it is a discovery session, which carries no commands.
    pub discovery: bool,
    /// The parameters that its first connection negotiated.
    pub terms: Terms,
}

/// The parameters negotiated at login (RFC 7143, 13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// HeaderDigest: whether headers have a CRC32C.
    pub header_digest: bool,
    /// DataDigest: whether data has a CRC32C.
    pub data_digest: bool,
    /// MaxConnections: the most connections of the session.
    pub max_connections: u16,
    /// InitialR2T: whether all data beyond immediate data must be solicited.
    pub initial_r2t: bool,
    /// ImmediateData: whether the PDU of a command may contain data.
    pub immediate_data: bool,
    /// The most data in a PDU to the initiator, in bytes.
    pub send_segment_bytes: u32,
    /// MaxBurstLength, in bytes.
    pub burst_bytes: u32,
    /// FirstBurstLength, in bytes.
    pub first_burst_bytes: u32,
    /// MaxOutstandingR2T: the most outstanding R2Ts of a command.
    pub outstanding_r2t: u16,
    /// The most commands in progress: the window.
    pub commands: u32,
}

/// The task attribute of a command (SAM-5, 8.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskAttribute {
    /// None given (0): as SIMPLE.
    Untagged,
    /// SIMPLE (1).
    Simple,
    /// ORDERED (2).
    Ordered,
    /// HEAD OF QUEUE (3).
    HeadOfQueue,
    /// ACA (4).
    Aca,
}

/// A command descriptor block: 16 bytes, or more with an extended CDB (RFC 7143, 11.2.2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cdb {
    pub(crate) fixed: [u8; 16],
    pub(crate) extended: Option<Box<[u8]>>,
}

impl Cdb {
    /// Returns the bytes, at least 16.
    pub fn bytes(&self) -> &[u8] {
        self.extended.as_deref().unwrap_or(&self.fixed)
    }
}

/// A SCSI command, with all its data.
#[derive(Debug)]
pub struct Command {
    /// The handle for the response.
    pub task: TaskHandle,
    /// The session on which it arrived.
    pub session: SessionId,
    /// The logical unit, as encoded in the PDU (SAM-5, 4.6).
    pub lun: [u8; 8],
    /// The CDB.
    pub cdb: Cdb,
    /// The task attribute.
    pub attribute: TaskAttribute,
    /// Whether it is an immediate command, which is delivered out of order.
    pub immediate: bool,
    /// The data that the initiator sent: as much as it announced, up to
    /// [`crate::Limits::data_out_bytes_per_command`], at the phase that
    /// [`crate::TargetConfig::data_out_phase`] returned.
    pub data_out: DataOut,
    /// The number of bytes that the initiator announced (Expected Data Transfer Length of a write).
    pub expected_out_bytes: u32,
    /// The number of bytes that the initiator expects (Expected Data Transfer Length of a read).
    pub expected_in_bytes: u32,
}

/// An event.
#[derive(Debug)]
pub enum Event {
    /// The first connection of a session has entered full-feature phase.
    SessionStarted {
        /// The nexus.
        nexus: Arc<NexusInfo>,
        /// The session that it replaces (session reinstatement, RFC 7143, 6.3.5). The connections
        /// of that session close by themselves; its tasks must be aborted.
        replaces: Option<SessionId>,
    },
    /// Another connection of a session has entered full-feature phase. Preferably the same thread
    /// serves all of them.
    ConnectionAdded {
        /// The nexus.
        nexus: Arc<NexusInfo>,
        /// The connection that it replaces (connection reinstatement, RFC 7143, 6.3.4). That one
        /// closes by itself; its tasks must end before one of this connection is executed.
        replaces: Option<ConnectionId>,
    },
    /// A login was refused because of the initiator's identity or credentials: it is no host,
    /// failed to authenticate, or requested another target.
    LoginRefused {
        /// The name given by the initiator, in lower case.
        initiator_name: String,
        /// Status class and detail of the response (RFC 7143, 11.13.5).
        status: (u8, u8),
    },
    /// A command with all its data, in session order.
    Command(Command),
    /// A task management request, whose response is due after the tasks it aborts have ended.
    TaskManagement(TaskManagement),
    /// The initiator has received the status of a command whose response requested this
    /// ([`TaskResponse::acknowledge`]). Not reported for aborted commands, after the end of the
    /// connection, or for the oldest if more than 1024 are not acknowledged.
    Acknowledged {
        /// The name given there.
        name: u64,
    },
    /// Another connection may continue, or must close: call its `next_event`, and check whether it
    /// is closed.
    Wake {
        /// Which one.
        connection: ConnectionId,
    },
}

/// Memory for data that is still in use, returned when this is dropped.
#[derive(Debug, Default)]
pub struct Memory(pub(crate) Vec<Grant>);

/// What ended together with a connection.
#[derive(Debug, Default)]
pub struct Ended {
    /// The tasks in the layer above, whose responses are no longer wanted.
    pub tasks: Vec<TaskHandle>,
    /// Their memory for data, to be kept until the last of them has ended.
    pub memory: Memory,
    /// The session, if this was its last connection.
    pub session: Option<Arc<NexusInfo>>,
    /// Connections of the same session that must close, as in [`Event::Wake`].
    pub wake: Vec<ConnectionId>,
}
