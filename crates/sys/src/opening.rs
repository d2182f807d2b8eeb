//! Opening files and devices: bypassing the page cache, and locked by one process.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long an opening waits for a device, or for the lock of a file, that another process has: the
/// kernel releases them only when the I/O of an ended process has completed, and its rings were
/// torn down, which can take seconds on a loaded machine.
const IN_USE_WAIT: Duration = Duration::from_secs(5);
const IN_USE_RETRY: Duration = Duration::from_millis(2);

/// Calls `attempt`, for up to this time, until its result is not that another process has it.
fn while_in_use<T>(
    patience: Duration,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let start = Instant::now();
    loop {
        let result = attempt();
        let is_in_use = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy)
        };
        if !result.as_ref().is_err_and(is_in_use) || start.elapsed() > patience {
            return result;
        }
        std::thread::sleep(IN_USE_RETRY);
    }
}

pub(crate) fn is_block_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
}

/// Opens a file that no other process may write or at least read, bypassing the page cache; through
/// it, with a notice, if the filesystem refuses that.
pub(crate) fn open_direct(
    options: &mut OpenOptions,
    path: &Path,
) -> io::Result<(File, Option<String>)> {
    let flags = if is_block_device(path) { libc::O_EXCL } else { 0 };
    open_flagged(options, path, flags)
}

/// The same for reading a file that others have open.
pub(crate) fn open_direct_beside(path: &Path) -> io::Result<(File, Option<String>)> {
    open_flagged(&mut OpenOptions::new(), path, 0)
}

fn open_flagged(
    options: &mut OpenOptions,
    path: &Path,
    flags: i32,
) -> io::Result<(File, Option<String>)> {
    options.read(true);
    match while_in_use(IN_USE_WAIT, || options.custom_flags(flags | libc::O_DIRECT).open(path)) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            // The kernel may have created the file before it refused the flag.
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

/// Takes the lock that means "this process has the pool".
pub(crate) fn lock(file: &File, path: &Path) -> io::Result<()> {
    let locked = while_in_use(IN_USE_WAIT, || {
        // SAFETY: the descriptor is open for the duration of the call; no memory is passed.
        match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    });
    locked.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => {
            let text = format!("{} is in use by another process", path.display());
            io::Error::new(io::ErrorKind::WouldBlock, text)
        }
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device is busy for a while after a process that had it was killed.
    #[test]
    fn a_device_in_use_is_waited_for() {
        for code in [libc::EBUSY, libc::EWOULDBLOCK] {
            let mut times = 0;
            let result = while_in_use(IN_USE_WAIT, || {
                times += 1;
                if times < 4 { Err(io::Error::from_raw_os_error(code)) } else { Ok(times) }
            });
            assert_eq!(result.unwrap(), 4);
        }
        let mut times = 0;
        let error = while_in_use(IN_USE_WAIT, || {
            times += 1;
            Err::<(), _>(io::Error::from_raw_os_error(libc::EACCES))
        });
        assert!(error.is_err() && times == 1);
    }
}
