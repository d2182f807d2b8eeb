//! Commands in flight, and the callback that ends them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

use crate::ffi;
use crate::types::{Completion, Sense, Status};

/// Completions that wait to be taken.
pub(crate) type Queue = Rc<RefCell<VecDeque<Completion>>>;

/// What a command in flight owns. libiscsi holds its address as the callback's private data.
pub(crate) struct InFlight {
    pub(crate) token: u64,
    pub(crate) task: *mut ffi::Task,
    pub(crate) buffer: Vec<u8>,
    pub(crate) iov: ffi::IoVec,
    pub(crate) queue: Queue,
}

/// libiscsi calls this once for each command that it accepted.
// SAFETY: callers (libiscsi alone) give back as `private` the pointer that `hand_over` made, once,
// on the thread that owns the context.
pub(crate) unsafe extern "C" fn on_command_end(
    _context: *mut ffi::Context,
    status: c_int,
    _task: *mut c_void,
    private: *mut c_void,
) {
    // SAFETY: `private` is the box that `hand_over` gave, and it comes back once.
    let command = unsafe { Box::from_raw(private.cast::<InFlight>()) };
    let InFlight { token, task, buffer, queue, .. } = *command;
    // SAFETY: the task is live until it is freed below.
    let (status, residual) = unsafe { (read_status(status, task), read_residual(task)) };
    // SAFETY: the command has ended, so libiscsi uses its task no more.
    unsafe { ffi::scsi_free_scsi_task(task) };
    queue.borrow_mut().push_back(Completion { token, status, buffer, residual });
}

/// # Safety
/// `task` is live.
unsafe fn read_status(status: c_int, task: *const ffi::Task) -> Status {
    match status {
        0 => Status::Good,
        // SAFETY: the caller's promise.
        2 => Status::CheckCondition(unsafe { read_sense(task) }),
        ffi::STATUS_TIMEOUT => Status::Timeout,
        ffi::STATUS_CANCELLED | ffi::STATUS_ERROR => Status::Cancelled,
        other => u8::try_from(other).map_or(Status::Cancelled, Status::Other),
    }
}

/// # Safety
/// `task` is live, and ended with CHECK CONDITION.
unsafe fn read_sense(task: *const ffi::Task) -> Sense {
    // SAFETY: `datain` names `size` bytes that the task owns, or nothing.
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
    // SAFETY: the caller's promise.
    unsafe { if (*task).residual_status == ffi::RESIDUAL_UNDERFLOW { (*task).residual } else { 0 } }
}
