//! The kernel's counts for a socket.

use std::ffi::c_int;

/// TCP payload of a session, as counted by the kernel: including headers, digests and padding of
/// iSCSI, but not headers of TCP and IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireBytes {
    /// Sent and acknowledged by the peer's kernel.
    pub sent: u64,
    /// Received.
    pub received: u64,
}

/// Reads `tcpi_bytes_acked` and `tcpi_bytes_received` (Linux 4.1 and later; their offsets are part
/// of the kernel's stable interface, `struct tcp_info` in linux/tcp.h).
pub(crate) fn tcp_info(descriptor: c_int) -> Option<WireBytes> {
    const BYTES_ACKED: usize = 120 / 8;
    const BYTES_RECEIVED: usize = 128 / 8;
    let mut info = [0_u64; 32];
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes `length` bytes at most into `info`.
    let result = unsafe {
        libc::getsockopt(
            descriptor,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    // The kernel counts the SYN as an acknowledged byte; it is not payload.
    (result == 0 && length as usize >= (BYTES_RECEIVED + 1) * 8).then(|| WireBytes {
        sent: info[BYTES_ACKED].saturating_sub(1),
        received: info[BYTES_RECEIVED],
    })
}
