//! Reading from a device with a SCSI command for which the kernel has no call.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::answers::{CHECK_CONDITION, Ended, ReservationError, of_system, status_of};

/// `struct sg_io_hdr` of the kernel's `scsi/sg.h`.
#[repr(C)]
struct SgIo {
    interface_id: i32,
    direction: i32,
    command_len: u8,
    sense_max: u8,
    iovec_count: u16,
    transfer_len: u32,
    transfer: *mut u8,
    command: *const u8,
    sense: *mut u8,
    timeout_ms: u32,
    flags: u32,
    pack_id: i32,
    user: *mut u8,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_len: u8,
    host_status: u16,
    driver_status: u16,
    left: i32,
    duration_ms: u32,
    info: u32,
}

const SG_IO: libc::Ioctl = 0x2285;
const FROM_DEVICE: i32 = -3;
const SG_TIMEOUT_MS: u32 = 10_000;
/// A sense key: the device does not know the command.
const ILLEGAL_REQUEST: u8 = 5;

/// Reads by a SCSI command.
pub(crate) fn read_by_scsi(file: &File, command: &[u8], answer: &mut [u8]) -> Ended {
    let mut sense = [0_u8; 32];
    let mut request = SgIo {
        interface_id: i32::from(b'S'),
        direction: FROM_DEVICE,
        command_len: command.len() as u8,
        sense_max: sense.len() as u8,
        iovec_count: 0,
        transfer_len: answer.len() as u32,
        transfer: answer.as_mut_ptr(),
        command: command.as_ptr(),
        sense: sense.as_mut_ptr(),
        timeout_ms: SG_TIMEOUT_MS,
        flags: 0,
        pack_id: 0,
        user: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_len: 0,
        host_status: 0,
        driver_status: 0,
        left: 0,
        duration_ms: 0,
        info: 0,
    };
    // SAFETY: `request` has the layout of the kernel's struct sg_io_hdr; what it points to has the
    // given length, and outlives the call, which waits for the end of the command.
    if unsafe { libc::ioctl(file.as_raw_fd(), SG_IO, &raw mut request) } != 0 {
        return Ended::Failed(of_system(io::Error::last_os_error()));
    }
    let key = if sense[0] & 0x7f >= 0x72 { sense[1] & 0xf } else { sense[2] & 0xf };
    match (i32::from(request.status), request.host_status) {
        (0, 0) => Ended::Done,
        (CHECK_CONDITION, _) if key == ILLEGAL_REQUEST => {
            let text = "PERSISTENT RESERVE IN was refused".to_owned();
            Ended::Failed(ReservationError::Unsupported(text))
        }
        (0, host) => {
            let text = format!("the device can't be reached: host status {host:#x}");
            Ended::Failed(io::Error::other(text).into())
        }
        (status, _) => status_of(status),
    }
}
