//! Opening files and devices: past the page cache, and locked by one process.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long an opening waits for the lock: a process that was killed lets go of its files only
/// when the transfers that it had under way have ended.
const LOCK_WAIT: Duration = Duration::from_millis(1500);
const LOCK_RETRY: Duration = Duration::from_millis(10);

pub(crate) fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// Opens past the page cache; through it, with a notice, where the filesystem refuses that.
pub(crate) fn open_direct(
    options: &mut OpenOptions,
    path: &Path,
) -> io::Result<(File, Option<String>)> {
    let flags = if is_block_device(path) { libc::O_EXCL } else { 0 };
    options.read(true);
    match options.custom_flags(flags | libc::O_DIRECT).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            // The kernel may have made the file before it refused the flag.
            let file = options.custom_flags(flags).create_new(false).open(path)?;
            let notice = format!(
                "{}: the filesystem refuses O_DIRECT; data passes through the page cache, which \
                 costs speed and memory (writes stay durable)",
                path.display()
            );
            Ok((file, Some(notice)))
        }
        result => result.map(|file| (file, None)).map_err(|error| {
            io::Error::new(error.kind(), format!("could not open {}: {error}", path.display()))
        }),
    }
}

/// Takes the lock that says "this process has the pool".
pub(crate) fn lock(file: &File, path: &Path) -> io::Result<()> {
    let start = Instant::now();
    loop {
        // SAFETY: the descriptor is open for the duration of the call; no memory is passed.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(error);
        }
        if start.elapsed() > LOCK_WAIT {
            let text = format!("{} is in use by another process", path.display());
            return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
        }
        std::thread::sleep(LOCK_RETRY);
    }
}
