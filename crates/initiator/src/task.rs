//! What is kept of a request until it is answered.

use std::collections::VecDeque;

use crate::event::Residual;
use crate::violation::Violation;

/// How a command is queued (SAM-5, 8.7).
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

/// Task management beside ABORT TASK (RFC 7143, 11.5.1).
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

/// Why a host logs out (RFC 7143, 11.14.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogoutReason {
    /// Closes the session.
    CloseSession,
    /// Closes the connection with this CID.
    CloseConnection(u16),
    /// Removes the connection with this CID for recovery.
    RemoveForRecovery(u16),
}

/// A request that is not answered.
#[derive(Debug)]
pub(crate) enum Pending {
    Command(Box<Task>),
    /// With the logical unit that the request named.
    Management(Ends, [u8; 8]),
    /// With the data that has to come back.
    Nop(Vec<u8>),
    /// With what came of the answer.
    Text(Vec<u8>),
    Logout(LogoutReason),
}

/// What a task management request ends.
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
    /// The data that was announced.
    pub(crate) out: Vec<u8>,
    /// Up to where it was sent or queued, in bytes.
    pub(crate) sent: usize,
    /// How many R2Ts came.
    pub(crate) r2ts: u32,
    /// Where in the outgoing stream the data of each R2T ends that may be outstanding.
    pub(crate) outstanding: VecDeque<u64>,
    /// How many bytes may come.
    pub(crate) expected_in: u32,
    pub(crate) data_in: Vec<u8>,
    /// How many Data-In PDUs came.
    pub(crate) data_pdus: u32,
    /// How many bytes came since the last one with F.
    pub(crate) sequence_bytes: u32,
}

/// GOOD, CONDITION MET and the intermediate ones: all went well.
pub(crate) fn is_good(status: u8) -> bool {
    matches!(status, 0x00 | 0x04 | 0x10 | 0x14)
}

impl Task {
    /// One of which nothing was sent.
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

    /// Whether the residual fits what was moved.
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
            // What was read is exactly what does not remain.
            Residual::Underflow(bytes) if reads => {
                u64::from(moved) + u64::from(bytes) == u64::from(expected)
            }
            // Of what was written, more may have come than the command takes.
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
