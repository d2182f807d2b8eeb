//! Opening files and devices: past the page cache, and locked by one process.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long an opening waits for a device, or for the lock of a file, that somebody else has: the
/// kernel lets go of them only when the transfers of a process that has ended have ended, and its
/// rings were taken down, which can take seconds on a loaded machine.
const IN_USE_WAIT: Duration = Duration::from_secs(5);
const IN_USE_RETRY: Duration = Duration::from_millis(2);

/// Calls `attempt` until it says something else than that another one has it, for so long.
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

/// Opens past the page cache, to be written or at least read by nobody else; through it, with a
/// notice, where the filesystem refuses that.
pub(crate) fn open_direct(
    options: &mut OpenOptions,
    path: &Path,
) -> io::Result<(File, Option<String>)> {
    let flags = if is_block_device(path) { libc::O_EXCL } else { 0 };
    open_flagged(options, path, flags)
}

/// The same to read what others have.
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
    fn what_is_in_use_for_a_while_is_waited_for() {
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
