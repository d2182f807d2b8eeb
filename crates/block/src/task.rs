//! Hosts' commands in progress, over any protocol: handles, responses, and task management.

use std::net::SocketAddr;
use std::time::Duration;

use crate::data::DataIn;

/// Identifies a connection of the array. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Identifies a session of the array. Never reused, unlike the TSIH of an iSCSI session. A session
/// is an iSCSI session or an association of NVMe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// How a connection was opened.
#[derive(Clone)]
pub struct Opening {
    /// The index of the array's portal that accepted it.
    pub portal_index: usize,
    /// The local address of the socket.
    pub local: SocketAddr,
    /// The address of the peer.
    pub peer: SocketAddr,
    /// Unpredictable bytes, used only for CHAP challenges.
    pub entropy: [u8; 32],
    /// The current time since an arbitrary point, which is the same for all calls.
    pub now: Duration,
}

/// Identifies a command in progress. A handle is never valid again after its command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskHandle {
    /// The connection on which the response is sent.
    pub connection: ConnectionId,
    /// The host's tag of the command.
    pub tag: u32,
    /// Distinguishes commands with the same tag.
    pub serial: u32,
}

/// Identifies a task management request without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ManagementHandle {
    /// The connection on which the response is sent.
    pub connection: ConnectionId,
    /// The host's tag of the request.
    pub tag: u32,
    /// The serial number of the last task that arrived on its connection before it.
    pub after: u32,
    /// Its position in the order of its session: on other connections, tasks up to this number
    /// arrived before it.
    pub order: u64,
}

/// The response to a command.
#[derive(Clone, Debug, Default)]
pub struct TaskResponse {
    /// The status as defined by its command set. For SCSI: 00h GOOD, 02h CHECK CONDITION, 08h BUSY,
    /// 18h RESERVATION CONFLICT, ….
    pub status: u8,
    /// Sense data with CHECK CONDITION, otherwise empty. At most 252 bytes are sent.
    pub sense: Vec<u8>,
    /// The data for the host. Data beyond its expected length is cut off.
    pub data: DataIn,
    /// The number of bytes the command would have transferred if the host's expected length had
    /// allowed it; the residual is the difference. `None` means the length of `data` for commands
    /// that read, and all announced data for commands that write.
    pub transfer_bytes_wanted: Option<u64>,
    /// The name under which to report that the host has received the response. `None`: do not
    /// report it.
    pub acknowledge: Option<u64>,
}

/// The function of a task management request (SAM-5, 7; RFC 7143, 11.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagementFunction {
    /// ABORT TASK of a task that has all its data. Its status will not be sent.
    AbortTask {
        /// The task.
        task: TaskHandle,
    },
    /// ABORT TASK SET: all tasks of this session on the logical unit.
    AbortTaskSet,
    /// CLEAR TASK SET: the same as ABORT TASK SET, because each session has its own task set (TST
    /// 001b; SAM-5, 7.5).
    ClearTaskSet,
    /// LOGICAL UNIT RESET.
    LogicalUnitReset,
    /// TARGET WARM RESET: a LOGICAL UNIT RESET of all logical units that the host sees. (TARGET
    /// COLD RESET would end the sessions of all initiators, and is not supported.)
    TargetWarmReset,
    /// A logout that ends a connection, with all its tasks (RFC 7143, 7.5 and 11.14).
    LogoutConnection {
        /// The connection to close: the one that carries the request, or another one of its
        /// session.
        connection: ConnectionId,
    },
    /// A logout that ends the session, with all its tasks.
    LogoutSession,
}

impl ManagementFunction {
    /// Returns the name that the standards use.
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
#[derive(Clone, Copy, Debug)]
pub struct TaskManagement {
    /// The handle for the response.
    pub handle: ManagementHandle,
    /// The session on which it arrived.
    pub session: SessionId,
    /// The function.
    pub function: ManagementFunction,
    /// The logical unit.
    pub lun: [u8; 8],
}

/// The response to a task management request (RFC 7143, 11.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagementOutcome {
    /// Function complete: none of the tasks in its scope has an effect from now on.
    Complete,
    /// The task does not exist.
    TaskDoesNotExist,
    /// The logical unit does not exist.
    LunDoesNotExist,
    /// The function is not supported.
    NotSupported,
    /// The host is not authorized to do that.
    AuthorizationFailed,
    /// The function is rejected.
    Rejected,
}

/// When a response may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerAfter {
    /// At once.
    #[default]
    Nothing,
    /// After all commands in progress have ended, in every session: PREEMPT AND ABORT guarantees
    /// that none takes effect later.
    All,
    /// After all cancelled copies have ended.
    CalledOff,
}
