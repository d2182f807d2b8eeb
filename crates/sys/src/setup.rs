//! Creating a ring.

use std::io;

use io_uring::IoUring;

/// Creates a ring with the cheapest way of completion that the kernel has.
pub(crate) fn build(entries: u32) -> io::Result<IoUring> {
    // Linux 6.1: completions are processed only when this thread asks for them.
    let newest = IoUring::builder()
        .setup_cqsize(entries * 2)
        .setup_single_issuer()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .setup_defer_taskrun()
        .build(entries);
    if !matches!(&newest, Err(error) if error.raw_os_error() == Some(libc::EINVAL)) {
        return newest;
    }
    // Linux 5.19: at least no interrupts for them.
    let newer = IoUring::builder()
        .setup_cqsize(entries * 2)
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .build(entries);
    if !matches!(&newer, Err(error) if error.raw_os_error() == Some(libc::EINVAL)) {
        return newer;
    }
    IoUring::builder().setup_cqsize(entries * 2).build(entries)
}
