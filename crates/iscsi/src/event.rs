//! What a connection tells the layer above, and what that answers.

use std::sync::Arc;

use block::{DataIn, DataOut};

use crate::budget::Grant;

/// Names a connection of the target, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Names a session of the target, for ever (a TSIH is used again).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Names a SCSI command on its way. A handle that has ended is never valid again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskHandle {
    /// The connection to which the answer goes.
    pub connection: ConnectionId,
    /// The initiator's tag for it.
    pub initiator_task_tag: u32,
    /// Tells apart commands with the same tag.
    pub serial: u32,
}

/// Names a task management request that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ManagementHandle {
    /// The connection to which the answer goes.
    pub connection: ConnectionId,
    /// The initiator's tag for it.
    pub initiator_task_tag: u32,
    /// The serial number of the last task that came before it.
    pub after: u32,
}

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// The answer to a command.
#[derive(Clone, Debug, Default)]
pub struct TaskResponse {
    /// The SCSI status: 00h GOOD, 02h CHECK CONDITION, 08h BUSY, 18h RESERVATION CONFLICT, ….
    pub status: u8,
    /// Sense data, with CHECK CONDITION; else empty. At most 252 bytes are sent.
    pub sense: Vec<u8>,
    /// What the initiator gets. What is behind its expected length is cut off.
    pub data: DataIn,
    /// How many bytes the CDB would have moved had the initiator's expected length allowed it: the
    /// residual is the difference. `None` is the length of `data` for commands that read, and
    /// all that was announced for those that write.
    pub transfer_bytes_wanted: Option<u64>,
    /// What [`Event::Acknowledged`] calls the status, once the initiator has said that it got it.
    /// `None`: nobody wants to know.
    pub acknowledge: Option<u64>,
}

/// What a task management request asks (RFC 7143, 11.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagementFunction {
    /// ABORT TASK. (Of a task that is not there, or has not all its data: answered here.) No
    /// status of its will be sent any more.
    AbortTask {
        /// The task.
        task: TaskHandle,
    },
    /// ABORT TASK SET: all tasks of this session on the logical unit.
    AbortTaskSet,
    /// CLEAR TASK SET: as ABORT TASK SET, because each session has a task set of its own (TST 001b;
    /// SAM-5, 7.5).
    ClearTaskSet,
    /// LOGICAL UNIT RESET.
    LogicalUnitReset,
    /// TARGET WARM RESET: as LOGICAL UNIT RESET for all logical units that the initiator sees.
    /// (TARGET COLD RESET would end the sessions of all initiators, and is not supported.)
    TargetWarmReset,
    /// A logout that ends a connection, with all its tasks (RFC 7143, 7.5 and 11.14).
    LogoutConnection {
        /// Which: this one or another one of the session.
        connection: ConnectionId,
    },
    /// A logout that ends the session, with all its tasks.
    LogoutSession,
}

impl ManagementFunction {
    /// What RFC 7143, 11.5.1, calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AbortTask { .. } => "ABORT TASK",
            Self::AbortTaskSet => "ABORT TASK SET",
            Self::ClearTaskSet => "CLEAR TASK SET",
            Self::LogicalUnitReset => "LOGICAL UNIT RESET",
            Self::TargetWarmReset => "TARGET WARM RESET",
            Self::LogoutConnection { .. } | Self::LogoutSession => "logout",
        }
    }
}

/// A task management request.
#[derive(Debug)]
pub struct TaskManagement {
    /// To answer it with.
    pub handle: ManagementHandle,
    /// The session it came on.
    pub session: SessionId,
    /// What is asked.
    pub function: ManagementFunction,
    /// The logical unit.
    pub lun: [u8; 8],
}

/// The answer to a task management request (RFC 7143, 11.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagementOutcome {
    /// Function complete: no task that it names has an effect from here on.
    Complete,
    /// The task does not exist.
    TaskDoesNotExist,
    /// The logical unit does not exist.
    LunDoesNotExist,
    /// The function is not supported.
    NotSupported,
    /// The initiator may not do that.
    AuthorizationFailed,
    /// The function is rejected.
    Rejected,
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
