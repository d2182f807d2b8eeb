//! A connection over the network, and the local socket of this process that represents it.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mio::net::{TcpStream, UnixStream};
use rustix::net::sockopt;
use rustls::{ClientConnection, Connection, ServerConnection};

use super::super::pipe::{End, Spare, ready};

/// How long the other end may take to close a connection that this one has ended.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// Data that was read and not passed on.
#[derive(Default)]
struct Held {
    buffer: Option<Box<[u8]>>,
    start: usize,
    end: usize,
}

impl Held {
    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn left(&self) -> &[u8] {
        self.buffer.as_ref().map_or(&[], |buffer| &buffer[self.start..self.end])
    }

    /// Reads if it is empty. Returns how much; `None` if the socket is not ready.
    fn fill(
        &mut self,
        spare: &mut Spare,
        read: impl FnOnce(&mut [u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Option<usize>> {
        let result = read(self.buffer.get_or_insert_with(|| spare.take()));
        let bytes = result.as_ref().ok().copied().flatten().unwrap_or(0);
        (self.start, self.end) = (0, bytes);
        self.took(0, spare);
        result
    }

    /// Notes that this many bytes were passed on.
    fn took(&mut self, bytes: usize, spare: &mut Spare) {
        self.start += bytes;
        if self.is_empty()
            && let Some(buffer) = self.buffer.take()
        {
            (self.start, self.end) = (0, 0);
            spare.give(buffer);
        }
    }
}

/// The result of a session's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Something was moved, and there may be more.
    Moved,
    /// It waits.
    Waits,
    /// It has ended.
    Over,
}

/// The end that began it.
enum Side {
    /// This one, with the deadline for establishing it.
    Dialed(Option<Instant>),
    /// The other one; counted.
    Accepted(Arc<AtomicUsize>),
}

/// A connection over the network, and the local socket that represents it.
pub(super) struct Session {
    pub(super) tcp: End<TcpStream>,
    pub(super) local: End<UnixStream>,
    tls: Connection,
    side: Side,
    /// Encrypted data from the network.
    raw: Held,
    /// The same, decrypted.
    plain: Held,
    /// Whether the network, and the decrypted stream, have ended.
    is_tcp_over: bool,
    is_in_over: bool,
    /// Whether the local socket accepts nothing more; it may still have data to send.
    is_deaf: bool,
    /// The local socket has ended: the deadline for the other end to close the connection.
    closing: Option<Instant>,
    has_shut: bool,
}

impl Session {
    fn new(tcp: TcpStream, tls: Connection, local: UnixStream, side: Side) -> Self {
        Self {
            tcp: End::new(tcp),
            local: End::new(local),
            tls,
            side,
            raw: Held::default(),
            plain: Held::default(),
            is_tcp_over: false,
            is_in_over: false,
            is_deaf: false,
            closing: None,
            has_shut: false,
        }
    }

    /// Creates a session that this end begins, and that must be established by the deadline.
    pub(super) fn dialed(
        tcp: TcpStream,
        tls: ClientConnection,
        local: UnixStream,
        until: Instant,
    ) -> Self {
        Self::new(tcp, tls.into(), local, Side::Dialed(Some(until)))
    }

    /// Creates a session whose other end has authenticated.
    pub(super) fn accepted(
        tcp: TcpStream,
        tls: ServerConnection,
        local: UnixStream,
        count: &Arc<AtomicUsize>,
    ) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self::new(tcp, tls.into(), local, Side::Accepted(count.clone()))
    }

    /// Returns whether both ends have authenticated.
    pub(super) fn is_made(&self) -> bool {
        !matches!(self.side, Side::Dialed(Some(_)))
    }

    /// Ends it if it took too long.
    pub(super) fn look_at_the_clock(&self, now: Instant) -> io::Result<Turn> {
        match self.side {
            Side::Dialed(Some(until)) if now > until => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time"))
            }
            _ if self.closing.is_some_and(|until| now > until) => Ok(Turn::Over),
            _ => Ok(Turn::Waits),
        }
    }

    /// Moves what can be moved at once.
    ///
    /// # Errors
    /// Why it ended before its ends wanted that.
    pub(super) fn pump(&mut self, spare: &mut Spare) -> io::Result<Turn> {
        let mut has_moved = self.give_in(spare)?;
        has_moved |= self.open(spare)?;
        has_moved |= self.take_out(spare)?;
        has_moved |= self.flush()?;
        if let Side::Dialed(until @ Some(_)) = &mut self.side
            && !self.tls.is_handshaking()
        {
            *until = None;
        }
        Ok(match self.is_over()? {
            true => Turn::Over,
            false if has_moved => Turn::Moved,
            false => Turn::Waits,
        })
    }

    /// Passes decrypted data to the local socket; discards it once that has ended.
    fn give_in(&mut self, spare: &mut Spare) -> io::Result<bool> {
        if self.plain.is_empty() && !self.is_in_over {
            let (tls, is_last) = (&mut self.tls, self.is_tcp_over && self.raw.is_empty());
            let read = self.plain.fill(spare, |buffer| match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(0)),
                read => read.map(Some),
            })?;
            self.is_in_over = read == Some(0) || read.is_none() && is_last;
        }
        if self.plain.is_empty() {
            return Ok(false);
        }
        if self.closing.is_some() || self.is_deaf {
            self.plain.took(self.plain.left().len(), spare);
            return Ok(true);
        }
        if !self.local.is_writable {
            return Ok(false);
        }
        match ready(self.local.socket.write(self.plain.left()), &mut self.local.is_writable) {
            Ok(Some(bytes)) => self.plain.took(bytes, spare),
            Ok(None) => return Ok(false),
            Err(_) => self.is_deaf = true,
        }
        Ok(true)
    }

    /// Decrypts received data, no more than is passed on.
    fn open(&mut self, spare: &mut Spare) -> io::Result<bool> {
        let mut has_moved = false;
        if self.raw.is_empty() && self.tcp.is_readable && !self.is_tcp_over {
            let tcp = &mut self.tcp;
            let read = |buffer: &mut [u8]| ready(tcp.socket.read(buffer), &mut tcp.is_readable);
            match self.raw.fill(spare, read)? {
                Some(0) => (self.is_tcp_over, has_moved) = (true, true),
                read => has_moved = read.is_some(),
            }
        }
        while !self.raw.is_empty() && self.plain.is_empty() && self.tls.wants_read() {
            let taken = self.tls.read_tls(&mut self.raw.left())?;
            self.raw.took(taken, spare);
            if let Err(error) = self.tls.process_new_packets() {
                // Sends the TLS alert to the other end.
                let _ = self.flush();
                return Err(io_error(error));
            }
            has_moved = true;
        }
        Ok(has_moved)
    }

    /// Encrypts data from the local socket, once all earlier data was sent.
    fn take_out(&mut self, spare: &mut Spare) -> io::Result<bool> {
        let waits = self.tls.is_handshaking() || self.tls.wants_write();
        if self.closing.is_some() || waits || !self.local.is_readable {
            return Ok(false);
        }
        let mut buffer = spare.take();
        let read = ready(self.local.socket.read(&mut buffer), &mut self.local.is_readable);
        let written = match read {
            Ok(Some(0)) | Err(_) => {
                self.close();
                Ok(())
            }
            Ok(Some(bytes)) => self.tls.writer().write_all(&buffer[..bytes]),
            Ok(None) => {
                spare.give(buffer);
                return Ok(false);
            }
        };
        spare.give(buffer);
        written.map(|()| true)
    }

    fn flush(&mut self) -> io::Result<bool> {
        let mut has_moved = false;
        while self.tls.wants_write() && self.tcp.is_writable {
            let tcp = &mut self.tcp;
            match ready(self.tls.write_tls(&mut tcp.socket), &mut tcp.is_writable)? {
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(_) => has_moved = true,
                None => {}
            }
        }
        Ok(has_moved)
    }

    /// Handles the end of the local socket.
    fn close(&mut self) {
        if self.closing.is_none() {
            self.closing = Some(Instant::now() + CLOSED_WITHIN);
            self.tls.send_close_notify();
        }
    }

    fn is_over(&mut self) -> io::Result<bool> {
        let nothing_comes = self.is_in_over && self.plain.is_empty();
        if self.closing.is_none() {
            return Ok(nothing_comes);
        }
        if let Side::Dialed(_) = self.side {
            // Data that is not in transit yet must not arrive: its host may have repeated it.
            sockopt::set_socket_linger(&self.tcp.socket, Some(Duration::ZERO))?;
            return Ok(true);
        }
        // The last data would be lost if this end did not wait for the other one.
        if !self.tls.wants_write() && !self.has_shut {
            self.has_shut = true;
            self.tcp.socket.shutdown(Shutdown::Write)?;
        }
        Ok(nothing_comes)
    }
}

/// Translates a TLS error to its meaning here.
fn io_error(error: rustls::Error) -> io::Error {
    match error {
        rustls::Error::InvalidCertificate(_) => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it was started with another secret, or \
                 other portals (--link-secret, --iscsi)",
        ),
        error => io::Error::new(io::ErrorKind::InvalidData, error),
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Side::Accepted(count) = &self.side {
            count.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
