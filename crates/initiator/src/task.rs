//! The state of requests until they have their response.

use std::collections::VecDeque;

use crate::event::Residual;
use crate::violation::Violation;

/// The task attribute of a command (SAM-5, 8.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Attribute {
    /// None given.
    Untagged = 0,
    /// SIMPLE.
    Simple = 1,
    /// ORDERED.
    Ordered = 2,
    /// HEAD OF QUEUE.
    HeadOfQueue = 3,
    /// ACA.
    Aca = 4,
}

/// Task management functions other than ABORT TASK (RFC 7143, 11.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Function {
    /// ABORT TASK SET: the session's tasks on the logical unit.
    AbortTaskSet = 2,
    /// CLEAR ACA.
    ClearAca = 3,
    /// CLEAR TASK SET.
    ClearTaskSet = 4,
    /// LOGICAL UNIT RESET.
    LogicalUnitReset = 5,
    /// TARGET WARM RESET.
    TargetWarmReset = 6,
    /// TARGET COLD RESET.
    TargetColdReset = 7,
}

/// The reason of a logout (RFC 7143, 11.14.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogoutReason {
    /// Closes the session.
    CloseSession,
    /// Closes the connection with this CID.
    CloseConnection(u16),
    /// Removes the connection with this CID for recovery.
    RemoveForRecovery(u16),
}

/// A request without a response.
#[derive(Debug)]
pub(crate) enum Pending {
    Command(Box<Task>),
    /// With the logical unit of the request.
    Management(Ends, [u8; 8]),
    /// With the data that must be returned.
    Nop(Vec<u8>),
    /// With the response received so far.
    Text(Vec<u8>),
    Logout(LogoutReason),
}

/// What a task management request aborts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// ABORT TASK of the task with this tag.
    Task(u32),
    Set(Function),
}

/// A command.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) lun: [u8; 8],
    pub(crate) cdb: Vec<u8>,
    pub(crate) attribute: Attribute,
    pub(crate) cmd_sn: u32,
    pub(crate) immediate: bool,
    /// The announced data.
    pub(crate) out: Vec<u8>,
    /// The number of bytes sent or queued.
    pub(crate) sent: usize,
    /// The number of R2Ts received.
    pub(crate) r2ts: u32,
    /// The positions in the output stream where the data of each R2T that may be outstanding ends.
    pub(crate) outstanding: VecDeque<u64>,
    /// The most bytes that may be received.
    pub(crate) expected_in: u32,
    pub(crate) data_in: Vec<u8>,
    /// The number of Data-In PDUs received.
    pub(crate) data_pdus: u32,
    /// The number of bytes received since the last one with F.
    pub(crate) sequence_bytes: u32,
}

/// Returns whether the status means success: GOOD, CONDITION MET and the intermediate ones.
pub(crate) fn is_good(status: u8) -> bool {
    matches!(status, 0x00 | 0x04 | 0x10 | 0x14)
}

impl Task {
    /// Creates a task of which nothing was sent.
    pub(crate) fn new(
        lun: [u8; 8],
        cdb: Vec<u8>,
        attribute: Attribute,
        cmd_sn: u32,
        immediate: bool,
        out: Vec<u8>,
        expected_in: u32,
    ) -> Self {
        Self {
            lun,
            cdb,
            attribute,
            cmd_sn,
            immediate,
            out,
            sent: 0,
            r2ts: 0,
            outstanding: VecDeque::new(),
            expected_in,
            data_in: Vec::new(),
            data_pdus: 0,
            sequence_bytes: 0,
        }
    }

    /// Checks the residual against what was transferred.
    pub(crate) fn check_residual(
        &self,
        itt: u32,
        status: u8,
        residual: Residual,
    ) -> Result<(), Violation> {
        let reads = self.expected_in > 0;
        let expected = if reads { self.expected_in } else { self.out.len() as u32 };
        let moved = if reads { self.data_in.len() } else { self.sent } as u32;
        let fits = match residual {
            Residual::None | Residual::Overflow(_) => !is_good(status) || moved == expected,
            // What was read is exactly what the residual leaves.
            Residual::Underflow(bytes) if reads => {
                u64::from(moved) + u64::from(bytes) == u64::from(expected)
            }
            // Of a write, more may have arrived than the command takes.
            Residual::Underflow(bytes) => {
                expected.checked_sub(bytes).is_some_and(|taken| !is_good(status) || taken <= moved)
            }
        };
        match fits {
            true => Ok(()),
            false => Err(Violation::Residual { itt, residual, expected, moved }),
        }
    }
}
