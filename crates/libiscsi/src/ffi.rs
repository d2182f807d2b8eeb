//! The used part of libiscsi's C interface, for version 1.19 (API 20170105).
//!
//! `#[link]` needs the library only when a program is linked, so checking the workspace does not
//! require libiscsi, but running the lab does.

use std::ffi::{c_char, c_int, c_uchar, c_void};

/// Opaque: a session, or an attempt to establish one.
#[repr(C)]
pub struct Context {
    _opaque: [u8; 0],
}

/// `struct scsi_iovec`, which libiscsi promises never to change.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IoVec {
    pub base: *mut c_void,
    pub len: usize,
}

/// `struct scsi_sense`. The three one-bit flags share the byte `flags`.
#[repr(C)]
pub struct ScsiSense {
    pub error_type: c_uchar,
    pub key: c_int,
    pub ascq: c_int,
    pub flags: c_uchar,
    pub bit_pointer: c_uchar,
    pub field_pointer: u16,
}

/// `struct scsi_data`.
#[repr(C)]
pub struct ScsiData {
    pub size: c_int,
    pub data: *mut c_uchar,
}

/// `struct scsi_task` up to the last field that is read here. libiscsi allocates it; it is only
/// read through a pointer from libiscsi.
#[repr(C)]
pub struct Task {
    pub status: c_int,
    pub cdb_size: c_int,
    pub xfer_dir: c_int,
    pub expxferlen: c_int,
    pub cdb: [c_uchar; 16],
    pub residual_status: c_int,
    pub residual: usize,
    pub sense: ScsiSense,
    pub datain: ScsiData,
}

const _: () = assert!(size_of::<ScsiSense>() == 16);
const _: () = assert!(core::mem::offset_of!(Task, residual) == 40);
const _: () = assert!(core::mem::offset_of!(Task, datain) == 64);

/// `struct iscsi_target_portal`.
#[repr(C)]
pub struct TargetPortal {
    pub next: *mut TargetPortal,
    pub portal: *const c_char,
}

/// `struct iscsi_discovery_address`.
#[repr(C)]
pub struct DiscoveryAddress {
    pub next: *mut DiscoveryAddress,
    pub target_name: *const c_char,
    pub portals: *mut TargetPortal,
}

/// `iscsi_command_cb`.
pub type CommandCallback = unsafe extern "C" fn(*mut Context, c_int, *mut c_void, *mut c_void);

pub const SESSION_DISCOVERY: c_int = 1;
pub const SESSION_NORMAL: c_int = 2;
pub const DIGEST_NONE: c_int = 0;
pub const DIGEST_CRC32C: c_int = 3;
pub const XFER_NONE: c_int = 0;
pub const XFER_READ: c_int = 1;
pub const XFER_WRITE: c_int = 2;
pub const RESIDUAL_UNDERFLOW: c_int = 1;
pub const STATUS_CANCELLED: c_int = 0x0f00_0000;
pub const STATUS_ERROR: c_int = 0x0f00_0001;
pub const STATUS_TIMEOUT: c_int = 0x0f00_0002;

#[link(name = "iscsi")]
unsafe extern "C" {
    pub fn iscsi_create_context(initiator_name: *const c_char) -> *mut Context;
    pub fn iscsi_destroy_context(context: *mut Context) -> c_int;
    pub fn iscsi_set_targetname(context: *mut Context, name: *const c_char) -> c_int;
    pub fn iscsi_set_session_type(context: *mut Context, kind: c_int) -> c_int;
    pub fn iscsi_set_header_digest(context: *mut Context, digest: c_int) -> c_int;
    pub fn iscsi_set_initiator_username_pwd(
        context: *mut Context,
        user: *const c_char,
        secret: *const c_char,
    ) -> c_int;
    pub fn iscsi_set_isid_random(context: *mut Context, random: u32, qualifier: u32) -> c_int;
    pub fn iscsi_set_timeout(context: *mut Context, seconds: c_int) -> c_int;
    pub fn iscsi_set_noautoreconnect(context: *mut Context, state: c_int);
    pub fn iscsi_full_connect_sync(
        context: *mut Context,
        portal: *const c_char,
        lun: c_int,
    ) -> c_int;
    pub fn iscsi_full_connect_async(
        context: *mut Context,
        portal: *const c_char,
        lun: c_int,
        callback: CommandCallback,
        private_data: *mut c_void,
    ) -> c_int;
    pub fn iscsi_connect_sync(context: *mut Context, portal: *const c_char) -> c_int;
    pub fn iscsi_login_sync(context: *mut Context) -> c_int;
    pub fn iscsi_logout_sync(context: *mut Context) -> c_int;
    pub fn iscsi_discovery_sync(context: *mut Context) -> *mut DiscoveryAddress;
    pub fn iscsi_free_discovery_data(context: *mut Context, data: *mut DiscoveryAddress);
    pub fn iscsi_get_error(context: *mut Context) -> *const c_char;
    pub fn iscsi_get_fd(context: *mut Context) -> c_int;
    pub fn iscsi_which_events(context: *mut Context) -> c_int;
    pub fn iscsi_service(context: *mut Context, revents: c_int) -> c_int;
    pub fn iscsi_scsi_command_async(
        context: *mut Context,
        lun: c_int,
        task: *mut Task,
        callback: CommandCallback,
        data: *mut c_void,
        private_data: *mut c_void,
    ) -> c_int;
    pub fn scsi_create_task(
        cdb_size: c_int,
        cdb: *mut c_uchar,
        direction: c_int,
        expected_length: c_int,
    ) -> *mut Task;
    pub fn scsi_free_scsi_task(task: *mut Task);
    pub fn scsi_task_set_iov_out(task: *mut Task, iov: *mut IoVec, count: c_int);
    pub fn scsi_task_set_iov_in(task: *mut Task, iov: *mut IoVec, count: c_int);
}
