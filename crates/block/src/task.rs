//! Commands of hosts on their way, whatever protocol carries them: how they are named, answered and
//! ended.

use std::net::SocketAddr;
use std::time::Duration;

use crate::data::DataIn;

/// Names a connection of the array, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Names a session of the array, for ever: an iSCSI session, whose TSIH is used again, or an
/// association of NVMe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// How a connection came to be.
#[derive(Clone)]
pub struct Opening {
    /// Which of the array's portals it came in at.
    pub portal_index: usize,
    /// The address at this end of the socket.
    pub local: SocketAddr,
    /// The address at the other end.
    pub peer: SocketAddr,
    /// Unpredictable bytes, used for nothing else: CHAP challenges come from them.
    pub entropy: [u8; 32],
    /// The time: since any moment, but the same for all calls.
    pub now: Duration,
}

/// Names a command on its way. A handle whose command has ended is never valid again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskHandle {
    /// The connection to which the answer goes.
    pub connection: ConnectionId,
    /// The host's tag for it.
    pub tag: u32,
    /// Tells apart commands with the same tag.
    pub serial: u32,
}

/// Names a task management request that is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ManagementHandle {
    /// The connection to which the answer goes.
    pub connection: ConnectionId,
    /// The host's tag for it.
    pub tag: u32,
    /// The serial number of the last task of its connection that came before it.
    pub after: u32,
    /// Its place in the order of its session: on other connections, tasks up to this one came
    /// before it.
    pub order: u64,
}

/// The answer to a command.
#[derive(Clone, Debug, Default)]
pub struct TaskResponse {
    /// The status, in the words of its command set. Of SCSI: 00h GOOD, 02h CHECK CONDITION, 08h
    /// BUSY, 18h RESERVATION CONFLICT, ….
    pub status: u8,
    /// Sense data, with CHECK CONDITION; else empty. At most 252 bytes are sent.
    pub sense: Vec<u8>,
    /// What the host gets. What is behind its expected length is cut off.
    pub data: DataIn,
    /// How many bytes the command would have moved had the host's expected length allowed it: the
    /// residual is the difference. `None` is the length of `data` for commands that read, and
    /// all that was announced for those that write.
    pub transfer_bytes_wanted: Option<u64>,
    /// What the answer is called when the host has said that it got it. `None`: nobody wants to
    /// know.
    pub acknowledge: Option<u64>,
}

/// What a task management request asks (SAM-5, 7; RFC 7143, 11.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagementFunction {
    /// ABORT TASK, of a task that has all its data. No status of it will be sent any more.
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
    /// TARGET WARM RESET: as LOGICAL UNIT RESET for all logical units that the host sees.
    /// (TARGET COLD RESET would end the sessions of all initiators, and is not supported.)
    TargetWarmReset,
    /// A logout that ends a connection, with all its tasks (RFC 7143, 7.5 and 11.14).
    LogoutConnection {
        /// The connection that is closed: the one that asks, or another one of its session.
        connection: ConnectionId,
    },
    /// A logout that ends the session, with all its tasks.
    LogoutSession,
}

impl ManagementFunction {
    /// What the standards call it.
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
    /// The host may not do that.
    AuthorizationFailed,
    /// The function is rejected.
    Rejected,
}

/// When an answer may be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerAfter {
    /// At once.
    #[default]
    Nothing,
    /// When every command that was under way has ended, whichever session it came on: PREEMPT AND
    /// ABORT promises that none takes effect later.
    All,
    /// When every copy has ended that was called off.
    CalledOff,
}
