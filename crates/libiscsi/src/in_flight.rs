//! Commands in flight, and the callback that completes them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

use crate::ffi;
use crate::types::{Completion, Sense, Status};

/// Completions that were not taken yet.
pub(crate) type Queue = Rc<RefCell<VecDeque<Completion>>>;

/// The resources of a command in flight. Its address is the callback's private data in libiscsi.
pub(crate) struct InFlight {
    pub(crate) token: u64,
    pub(crate) task: *mut ffi::Task,
    pub(crate) buffer: Vec<u8>,
    pub(crate) iov: ffi::IoVec,
    pub(crate) queue: Queue,
}

/// libiscsi calls this once for each command that it accepted.
// SAFETY: callers (libiscsi alone) pass as `private` the pointer that `hand_over` returned, once,
// on the thread that owns the context.
pub(crate) unsafe extern "C" fn on_command_end(
    _context: *mut ffi::Context,
    status: c_int,
    _task: *mut c_void,
    private: *mut c_void,
) {
    // SAFETY: `private` is the box from `hand_over`, and it is returned once.
    let command = unsafe { Box::from_raw(private.cast::<InFlight>()) };
    let InFlight { token, task, buffer, queue, .. } = *command;
    // SAFETY: the task is live until it is freed below.
    let (status, residual) = unsafe { (read_status(status, task), read_residual(task)) };
    // SAFETY: the command has ended, so libiscsi no longer uses its task.
    unsafe { ffi::scsi_free_scsi_task(task) };
    queue.borrow_mut().push_back(Completion { token, status, buffer, residual });
}

/// # Safety
/// `task` is live.
unsafe fn read_status(status: c_int, task: *const ffi::Task) -> Status {
    match status {
        0 => Status::Good,
        // SAFETY: guaranteed by the caller.
        2 => Status::CheckCondition(unsafe { read_sense(task) }),
        ffi::STATUS_TIMEOUT => Status::Timeout,
        ffi::STATUS_CANCELLED | ffi::STATUS_ERROR => Status::Cancelled,
        other => u8::try_from(other).map_or(Status::Cancelled, Status::Other),
    }
}

/// # Safety
/// `task` is live, and ended with CHECK CONDITION.
unsafe fn read_sense(task: *const ffi::Task) -> Sense {
    // SAFETY: `datain` refers to `size` bytes that the task owns, or to nothing.
    unsafe {
        let sense = &(*task).sense;
        let data = &(*task).datain;
        let raw = match usize::try_from(data.size) {
            Ok(size) if size > 0 && !data.data.is_null() => {
                std::slice::from_raw_parts(data.data, size).to_vec()
            }
            _ => Vec::new(),
        };
        Sense { key: sense.key as u8, asc_ascq: sense.ascq as u16, raw }
    }
}

/// # Safety
/// `task` is live.
unsafe fn read_residual(task: *const ffi::Task) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe { if (*task).residual_status == ffi::RESIDUAL_UNDERFLOW { (*task).residual } else { 0 } }
}
