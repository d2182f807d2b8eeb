//! A timer with a descriptor for pollers.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// A timer of the kernel, accurate to some microseconds, whereas the timeout of a poller is rounded
/// up to milliseconds.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// Creates one that is not set.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed; the result is checked before it is used.
        let fd = unsafe {
            libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created, and nothing else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Returns a descriptor that signals (edge-triggered) when the timer expires.
    pub fn poll_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Sets it to expire once, after this time; replaces the previous setting.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set(&self, after: Duration) -> io::Result<()> {
        // All zeros would disarm it.
        let after = after.max(Duration::from_nanos(1));
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let tv_sec = after.as_secs().min(i64::MAX as u64) as libc::time_t;
        let once = libc::timespec { tv_sec, tv_nsec: after.subsec_nanos().into() };
        let value = libc::itimerspec { it_interval: never, it_value: once };
        // SAFETY: the descriptor is open, and the kernel only reads the value, which outlives the
        // call.
        match unsafe { libc::timerfd_settime(self.poll_fd(), 0, &value, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Waits until a descriptor is readable, up to a timeout; returns whether it is. For tests; a
/// caller with more than one descriptor has a poller.
pub fn is_readable_within(fd: RawFd, timeout: Duration) -> bool {
    let mut fds = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the array outlives the call, and its length is passed.
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
    fn a_timer_expires_when_set_and_not_before() {
        let timer = Timer::new().unwrap();
        assert!(!is_heard(&timer, 5));
        let started = Instant::now();
        timer.set(Duration::from_millis(20)).unwrap();
        assert!(is_heard(&timer, 10_000) && started.elapsed() >= Duration::from_millis(20));
        // Setting it again replaces the previous setting.
        timer.set(Duration::from_secs(3600)).unwrap();
        assert!(!is_heard(&timer, 5));
        timer.set(Duration::ZERO).unwrap();
        assert!(is_heard(&timer, 10_000));
    }
}
