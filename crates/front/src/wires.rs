//! What a front end asks of whoever runs it: the bytes of its connections, the time, and to be
//! called again.

use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use super::handing::Handed;

/// The sockets of one thread's connections, or what stands for them. No call waits.
///
/// A connection is called by the slot that it was opened in ([`crate::FrontEnd::open`]), which is
/// free for another one when [`Wires::close`] has returned.
pub trait Wires {
    /// Fills `into` with bytes that have come: at least one, 0 if the other end sends no more.
    /// Fewer than there is room for means that no more have come yet.
    ///
    /// # Errors
    /// `WouldBlock` if nothing has come, `Interrupted` to be asked again, or why the connection is
    /// lost.
    fn receive(&mut self, slot: usize, into: &mut [IoSliceMut<'_>]) -> io::Result<usize>;

    /// Sends bytes of `from`: as many as are taken now. After fewer than were given, the connection
    /// is not asked again before [`crate::FrontEnd::writable`].
    ///
    /// # Errors
    /// `WouldBlock` if none are taken now, `Interrupted` to be asked again, or why the connection
    /// is lost.
    fn send(&mut self, slot: usize, from: &[IoSlice<'_>]) -> io::Result<usize>;

    /// The connection can go on in another process, if that gets its socket. The slot is free for
    /// another one when this has returned. Else it is closed: its host connects again.
    fn hand_over(&mut self, slot: usize, handed: Handed) {
        drop(handed);
        self.close(slot);
    }

    /// The connection has ended, with all that it had to say.
    fn close(&mut self, slot: usize);
}

/// The time.
pub trait Clock: Send + Sync {
    /// Of a clock that never goes back.
    fn now(&self) -> Duration;

    /// In milliseconds since 1970, as people have it, who set clocks, and back.
    fn wall_ms(&self) -> u64;
}

/// Has a front end take another turn, from any thread.
pub trait Wake: Send + Sync {
    /// The next turn is to read the mailbox. Called once for all messages since the last.
    fn wake(&self);
}
