//! A descriptor by which rings signal.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::timer::is_readable_within;

/// A descriptor (`eventfd`) that becomes readable each time something has ended. Several rings of a
/// thread can share one.
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// Creates one that is not signalled.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no memory is passed; the result is checked before it is used.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if event < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created, and nothing else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(event) }))
    }

    /// Returns the descriptor, for a poller (edge-triggered).
    pub fn poll_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Waits for a signal since this last returned, up to a timeout.
    pub fn wait(&self, timeout: Duration) {
        if !is_readable_within(self.poll_fd(), timeout) {
            return;
        }
        let mut count = 0u64;
        // SAFETY: the descriptor is open, and the kernel writes at most 8 bytes to a value of 8
        // that outlives the call. That nothing is there (any longer) is the intended result.
        let _ = unsafe { libc::read(self.poll_fd(), (&raw mut count).cast(), 8) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_sees_a_signal_once() {
        let event = Event::new().unwrap();
        let one = 1u64;
        // SAFETY: the descriptor is open, and the kernel reads 8 bytes of a value that outlives the
        // call.
        let written = unsafe { libc::write(event.poll_fd(), (&raw const one).cast(), 8) };
        assert_eq!(written, 8);
        assert!(is_readable_within(event.poll_fd(), Duration::ZERO));
        event.wait(Duration::from_secs(60));
        assert!(!is_readable_within(event.poll_fd(), Duration::ZERO));
        event.wait(Duration::ZERO);
    }
}
