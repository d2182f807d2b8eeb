//! What a connection tells the layer above, and what that answers.

use std::sync::Arc;

use block::DataOut;
pub use block::task::{
    ConnectionId, ManagementFunction, ManagementHandle, ManagementOutcome, Opening, SessionId,
    TaskHandle, TaskManagement, TaskResponse,
};

use serde::{Deserialize, Serialize};

use crate::budget::Grant;

/// Who talks to whom: the I_T nexus (RFC 7143, 4.4.1; SAM-5, 4.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NexusInfo {
    /// The session.
    pub session: SessionId,
    /// The initiator's iSCSI name.
    pub initiator_name: String,
    /// The initiator's part of the session's name. With the name it is the SCSI initiator port.
    pub isid: [u8; 6],
    /// The target's part of the session's name (TSIH).
    pub tsih: u16,
    /// The tag of the portal group: with the target's name it is the SCSI target port.
    pub portal_tag: u16,
    /// Whether it is a discovery session: it carries no commands.
    pub discovery: bool,
    /// What its first connection agreed on.
    pub terms: Terms,
}

/// What was agreed on at login (RFC 7143, 13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Whether headers carry a CRC-32C.
    pub header_digest: bool,
    /// Whether data carries one.
    pub data_digest: bool,
    /// The most connections of the session.
    pub max_connections: u16,
    /// Whether no data comes unasked behind its command.
    pub initial_r2t: bool,
    /// Whether data may come in the PDU of its command.
    pub immediate_data: bool,
    /// The most data in a PDU to the initiator, in bytes.
    pub send_segment_bytes: u32,
    /// MaxBurstLength, in bytes.
    pub burst_bytes: u32,
    /// FirstBurstLength, in bytes.
    pub first_burst_bytes: u32,
    /// How many R2Ts of a command are outstanding at most.
    pub outstanding_r2t: u16,
    /// Commands that may be outstanding at the same time: the window.
    pub commands: u32,
}

/// How a command is queued (SAM-5, 8.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskAttribute {
    /// No attribute given (0): as simple.
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
    /// The bytes, at least 16.
    pub fn bytes(&self) -> &[u8] {
        self.extended.as_deref().unwrap_or(&self.fixed)
    }
}

/// A SCSI command, with all its data.
#[derive(Debug)]
pub struct Command {
    /// To answer it with.
    pub task: TaskHandle,
    /// The session it came on.
    pub session: SessionId,
    /// The logical unit, as it stood in the PDU (SAM-5, 4.6).
    pub lun: [u8; 8],
    /// What is to be done.
    pub cdb: Cdb,
    /// How it is queued.
    pub attribute: TaskAttribute,
    /// Whether it is an immediate command (delivered out of order).
    pub immediate: bool,
    /// What the initiator sent: as much as it announced, up to
    /// [`crate::Limits::data_out_bytes_per_command`]. Its phase is what
    /// [`crate::TargetConfig::data_out_phase`] said.
    pub data_out: DataOut,
    /// How many bytes the initiator announced to send (Expected Data Transfer Length of a write).
    pub expected_out_bytes: u32,
    /// How many bytes the initiator expects (Expected Data Transfer Length of a read).
    pub expected_in_bytes: u32,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The first connection of a session is in full-feature phase.
    SessionStarted {
        /// Who.
        nexus: Arc<NexusInfo>,
        /// The session whose place it takes (session reinstatement, RFC 7143, 6.3.5). Its
        /// connections close by themselves; its tasks are to be aborted as if they had ended.
        replaces: Option<SessionId>,
    },
    /// A further connection of a session is in full-feature phase. It is best served by the thread
    /// that serves the others.
    ConnectionAdded {
        /// Who.
        nexus: Arc<NexusInfo>,
        /// The connection whose place it takes (connection reinstatement, RFC 7143, 6.3.4). That
        /// closes by itself; its tasks are to have ended before one of this is done.
        replaces: Option<ConnectionId>,
    },
    /// A login was refused, for what its initiator is or does not know: it is no host, has not
    /// proved itself, or asked for another target.
    LoginRefused {
        /// The name that it gave, in lower case.
        initiator_name: String,
        /// Status class and detail of the answer (RFC 7143, 11.13.5).
        status: (u8, u8),
    },
    /// A command, with all its data, in the session's order.
    Command(Command),
    /// Tasks are to be ended. To be answered after they have ended.
    TaskManagement(TaskManagement),
    /// The initiator has the status of a command whose answer asked for this
    /// ([`TaskResponse::acknowledge`]). It does not come for what was aborted, nor behind the end
    /// of the connection, nor for the oldest where more than 1024 are not acknowledged.
    Acknowledged {
        /// As it was called.
        name: u64,
    },
    /// Another connection may go on, or has to close: call its `next_event`, and look whether
    /// it is closed.
    Wake {
        /// Which.
        connection: ConnectionId,
    },
}

/// Memory for data that is still in use, given back when this is dropped.
#[derive(Debug, Default)]
pub struct Memory(pub(crate) Vec<Grant>);

/// What ended with a connection.
#[derive(Debug, Default)]
pub struct Ended {
    /// The tasks that the layer above holds. Their answers are not wanted any more.
    pub tasks: Vec<TaskHandle>,
    /// What these have of the memory for data: to be kept until the last of them has ended.
    pub memory: Memory,
    /// The session, if this was its last connection.
    pub session: Option<Arc<NexusInfo>>,
    /// Connections of the same session that have to close: as [`Event::Wake`].
    pub wake: Vec<ConnectionId>,
}
