//! Drives many sessions in one thread.

use std::ffi::c_int;

use crate::session::Session;

/// Waits for the sockets of several sessions at once. Reuses its memory between calls.
#[derive(Debug, Default)]
pub struct Poller {
    descriptors: Vec<Pollfd>,
}

#[repr(transparent)]
struct Pollfd(libc::pollfd);

impl std::fmt::Debug for Pollfd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.fd)
    }
}

impl Poller {
    /// Creates a poller.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends what is queued in the sessions, waits until one of their sockets is ready
    /// (`timeout_ms` at most; 0 does not wait), and services it. Skips lost sessions. If nothing
    /// arrived, it also lets libiscsi find commands that have timed out.
    pub fn poll(&mut self, sessions: &mut [&mut Session], timeout_ms: c_int) {
        self.descriptors.clear();
        for session in sessions.iter_mut() {
            session.flush();
            let lost = session.is_lost();
            let fd = if lost { -1 } else { session.descriptor() };
            let events = if lost { 0 } else { session.wanted_events() as libc::c_short };
            self.descriptors.push(Pollfd(libc::pollfd { fd, events, revents: 0 }));
        }
        // SAFETY: `Pollfd` holds nothing but a pollfd, and the vector has the stated length.
        let ready = unsafe {
            libc::poll(
                self.descriptors.as_mut_ptr().cast(),
                self.descriptors.len() as libc::nfds_t,
                timeout_ms,
            )
        };
        for (session, descriptor) in sessions.iter_mut().zip(&self.descriptors) {
            let events = if ready > 0 { descriptor.0.revents } else { 0 };
            if !session.is_lost() && (events != 0 || ready == 0) {
                session.service(events);
            }
        }
    }
}

impl Session {
    /// Waits for the socket, `timeout_ms` at most, and services it.
    pub(crate) fn wait(&mut self, timeout_ms: c_int) {
        Poller::new().poll(&mut [self], timeout_ms);
    }
}
