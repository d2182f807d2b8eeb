//! What a front end requires of its caller: its connections' sockets, the time, and wake-ups.

use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use super::handing::Handed;

/// The sockets of one thread's connections, or their simulation. No call blocks.
///
/// A connection is identified by the slot in which it was opened ([`crate::FrontEnd::open`]). The
/// slot is free for another connection when [`Wires::close`] has returned.
pub trait Wires {
    /// Receives into `into`: at least one byte, or 0 if the peer sends no more. Fewer bytes than
    /// there is space for mean that no more have arrived yet.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has arrived, `Interrupted` to be called again, or why the connection
    /// is lost.
    fn receive(&mut self, slot: usize, into: &mut [IoSliceMut<'_>]) -> io::Result<usize>;

    /// Sends bytes of `from`, as many as are accepted now. After a short send it is not called
    /// again for this connection before [`crate::FrontEnd::writable`].
    ///
    /// # Errors
    /// `WouldBlock` if nothing is accepted now, `Interrupted` to be called again, or why the
    /// connection is lost.
    fn send(&mut self, slot: usize, from: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Hands the connection over to another process, which continues it with its socket. The slot
    /// is free when this has returned. The default closes the connection instead, and its host
    /// reconnects.
    fn hand_over(&mut self, slot: usize, handed: Handed) {
        drop(handed);
        self.close(slot);
    }

    /// Closes a connection that has ended and sent all its output.
    fn close(&mut self, slot: usize);
}

/// The clock.
pub trait Clock: Send + Sync {
    /// Returns the time of a monotonic clock.
    fn now(&self) -> Duration;

    /// Returns the system clock's time in milliseconds since 1970, which may be set back.
    fn wall_ms(&self) -> u64;
}

/// Wakes a front end to take another turn. Callable from any thread.
pub trait Wake: Send + Sync {
    /// Wakes the front end: its next turn must read the mailbox. Called once for all messages since
    /// the last wake-up.
    fn wake(&self);
}
