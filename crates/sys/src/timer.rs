//! A timer that a poller hears.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// A timer of the kernel, exact to some microseconds, where the time-out of a poller is rounded up
/// to milliseconds.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// One that is not set.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed; the result is checked before it is used.
        let fd = unsafe {
            libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made, and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// A descriptor that signals (edge-triggered) when the time has come.
    pub fn poll_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Lets it go off once, so long from now on; what it was set to before is forgotten.
    ///
    /// # Errors
    /// What the system says.
    pub fn set(&self, after: Duration) -> io::Result<()> {
        // All zeros would be no time at all: never.
        let after = after.max(Duration::from_nanos(1));
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let tv_sec = after.as_secs().min(i64::MAX as u64) as libc::time_t;
        let once = libc::timespec { tv_sec, tv_nsec: after.subsec_nanos().into() };
        let value = libc::itimerspec { it_interval: never, it_value: once };
        // SAFETY: the descriptor is open, and the kernel only reads the value, which lives on.
        match unsafe { libc::timerfd_settime(self.poll_fd(), 0, &value, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Waits until a descriptor is readable, so long at most: whether it is. For tests; who has more
/// than one descriptor has a poller.
pub fn is_readable_within(fd: RawFd, timeout: Duration) -> bool {
    let mut fds = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the vector is one that lives on, and its length is passed.
    unsafe { libc::poll(fds.as_mut_ptr(), 1, timeout_ms) == 1 }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn is_heard(timer: &Timer, timeout_ms: u64) -> bool {
        is_readable_within(timer.poll_fd(), Duration::from_millis(timeout_ms))
    }

    #[test]
    fn it_goes_off_when_it_was_set_to_and_not_before() {
        let timer = Timer::new().unwrap();
        assert!(!is_heard(&timer, 5));
        let started = Instant::now();
        timer.set(Duration::from_millis(20)).unwrap();
        assert!(is_heard(&timer, 10_000) && started.elapsed() >= Duration::from_millis(20));
        // Set again, it is not what it was before.
        timer.set(Duration::from_secs(3600)).unwrap();
        assert!(!is_heard(&timer, 5));
        timer.set(Duration::ZERO).unwrap();
        assert!(is_heard(&timer, 10_000));
    }
}
