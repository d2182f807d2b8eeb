//! The results of calls for a device's reservations.

use std::io;

/// Status codes of SCSI, which the calls return unchanged, below bits of the kernel's own.
pub(crate) const CHECK_CONDITION: i32 = 0x02;
const SCSI_STATUS: i32 = 0xff;
const BUSY: i32 = 0x08;
const CONFLICT: i32 = 0x18;
const TASK_SET_FULL: i32 = 0x28;
/// `PR_STS_RETRY_PATH_FAILURE`.
const RETRY_PATH: i32 = 0xe0000;
/// The status code of NVMe for a conflict, below further bits.
const NVME_CONFLICT: i32 = 0x83;
const NVME_STATUS: i32 = 0x7ff;

/// Why a device refused a call.
#[derive(Debug, thiserror::Error)]
pub enum ReservationError {
    /// The reservation or the registrations differ.
    #[error("reservation conflict")]
    Conflict,
    /// It does not support persistent reservations, or the kernel does not forward them.
    #[error("it has no persistent reservations that Linux supports ({0})")]
    Unsupported(String),
    /// Any other error.
    #[error(transparent)]
    Failed(#[from] io::Error),
}

/// How a call has ended.
pub(crate) enum Ended {
    Done,
    MayPass(i32),
    Failed(ReservationError),
}

/// Interprets the return value of a call.
pub(crate) fn status_of(result: i32) -> Ended {
    match result {
        0 => Ended::Done,
        status if status > 0 && status & SCSI_STATUS == CONFLICT => {
            Ended::Failed(ReservationError::Conflict)
        }
        CHECK_CONDITION | BUSY | TASK_SET_FULL | RETRY_PATH => Ended::MayPass(result),
        status if status > 0 && status & NVME_STATUS == NVME_CONFLICT => {
            Ended::Failed(ReservationError::Conflict)
        }
        status if status > 0 => {
            let text = format!("the device returned status {status:#x}");
            Ended::Failed(io::Error::other(text).into())
        }
        _ => Ended::Failed(of_system(io::Error::last_os_error())),
    }
}

pub(crate) fn of_system(error: io::Error) -> ReservationError {
    match error.raw_os_error() {
        Some(libc::ENOTTY | libc::EOPNOTSUPP | libc::EINVAL | libc::ENOSYS) => {
            ReservationError::Unsupported(error.to_string())
        }
        Some(libc::EBADE) => ReservationError::Conflict,
        _ => ReservationError::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_distinguished() {
        let of = |status| match status_of(status) {
            Ended::Done => "done",
            Ended::MayPass(_) => "may pass",
            Ended::Failed(ReservationError::Conflict) => "conflict",
            Ended::Failed(_) => "failed",
        };
        let told = [0, 0x118, 0x83, 0x4083, 2, 8, 0x28, 0x4002].map(of);
        let wanted =
            ["done", "conflict", "conflict", "conflict", "may pass", "may pass", "may pass"];
        assert_eq!(told[..7], wanted);
        assert_eq!(told[7], "failed");
    }
}
