//! The error type of hosts.

use libiscsi::Status;

use super::acceleration::Primitive;

/// What went wrong between a host and a device.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No portal was given.
    #[error("the host has no path: specify at least one portal")]
    NoPath,
    /// All paths have been down for longer than the host waits.
    #[error("all paths to the target are down")]
    PathsDown,
    /// Connecting or logging in failed.
    #[error(transparent)]
    Session(#[from] libiscsi::Error),
    /// The array does not support this: the host does it itself.
    #[error("{command} is not supported here: {status}")]
    Unsupported {
        /// The command.
        command: &'static str,
        /// Its status.
        status: Status,
    },
    /// A thin unit has no space (07h, 27h/07h): virtual machines would be stunned.
    #[error("the array has no space left")]
    NoSpace,
    /// Another host has reserved the unit.
    #[error("another host has reserved the unit")]
    Reserved,
    /// Any other status.
    #[error("{command} ended with {status}")]
    Failed {
        /// The command.
        command: &'static str,
        /// Its status.
        status: Status,
    },
    /// The response does not match the request.
    #[error("the response to {0} is invalid")]
    Answer(&'static str),
    /// An impossible request of a host to a device.
    #[error("{0}")]
    Argument(String),
}

impl HostError {
    /// Returns whether a host that gets it continues without this offload: the array refuses it, or
    /// a copy has failed. ESXi falls back to a software copy if it can't use EXTENDED COPY for any
    /// reason (002); that fails in turn if the device does.
    pub fn is_done_by_hand(&self, primitive: Primitive) -> bool {
        match self {
            Self::Unsupported { .. } => true,
            Self::Failed { .. } => primitive == Primitive::Move,
            _ => false,
        }
    }

    /// Returns the error for a command's status.
    pub(super) fn of(command: &'static str, status: Status) -> Self {
        match &status {
            Status::Other(0x18) => Self::Reserved,
            Status::CheckCondition(sense) => match (sense.key, sense.asc_ascq) {
                (0x07, 0x2707) => Self::NoSpace,
                (0x05, _) | (0x0A, _) => Self::Unsupported { command, status },
                _ => Self::Failed { command, status },
            },
            _ => Self::Failed { command, status },
        }
    }
}
