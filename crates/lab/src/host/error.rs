//! Why a host could not do what it was to do.

use libiscsi::Status;

use super::acceleration::Primitive;

/// What went wrong between a host and a device.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No portal was given.
    #[error("the host has no path: name at least one portal")]
    NoPath,
    /// All paths have been down for longer than the host waits.
    #[error("all paths to the target are down")]
    PathsDown,
    /// Connecting, logging in.
    #[error(transparent)]
    Session(#[from] libiscsi::Error),
    /// The array does not do this: the host does it by hand.
    #[error("{command} is not supported here: {status}")]
    Unsupported {
        /// Which command.
        command: &'static str,
        /// How it ended.
        status: Status,
    },
    /// A thin unit has no room (07h, 27h/07h): virtual machines would be stunned.
    #[error("the array has no space left")]
    NoSpace,
    /// Another host has reserved the unit.
    #[error("another host has reserved the unit")]
    Reserved,
    /// Any other end.
    #[error("{command} ended with {status}")]
    Failed {
        /// Which command.
        command: &'static str,
        /// How it ended.
        status: Status,
    },
    /// The response does not match the request.
    #[error("the answer to {0} makes no sense")]
    Answer(&'static str),
    /// What a host asks of a device that it can't ask.
    #[error("{0}")]
    Argument(String),
}

impl HostError {
    /// Whether a host that meets it continues without this offload: the array refuses it, or a copy
    /// has failed. ESXi falls back to a software copy if it can't use EXTENDED COPY, for whatever
    /// reason (002); that fails in turn if the device does.
    pub fn is_done_by_hand(&self, primitive: Primitive) -> bool {
        match self {
            Self::Unsupported { .. } => true,
            Self::Failed { .. } => primitive == Primitive::Move,
            _ => false,
        }
    }

    /// The error that a command's end is.
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
