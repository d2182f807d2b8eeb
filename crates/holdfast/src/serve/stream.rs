//! The sockets of hosts' connections: their own, or those of the link over which the other
//! controller forwards.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use super::controllers::Generation;

/// A connection of a host.
pub(super) enum Stream {
    /// On its own socket.
    Host(TcpStream),
    /// From the other controller, over this link.
    Link(UnixStream, Arc<Generation>),
    /// A connection that the other controller has handed over, as long as its generation lasts.
    Handed(Box<Guest>),
}

/// A connection of a host that another process has handed over.
pub(super) struct Guest {
    stream: TcpStream,
    /// Input of the host that precedes what the socket has.
    before: VecDeque<u8>,
    generation: Arc<Generation>,
}

impl Guest {
    /// Receives the earlier input, and then also from the socket, because a short read means that
    /// the socket has nothing more.
    fn receive(&mut self, mut into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        if self.before.is_empty() {
            return self.stream.read_vectored(into);
        }
        let mut bytes = 0;
        for slice in into.iter_mut() {
            bytes += self.before.read(slice)?;
        }
        IoSliceMut::advance_slices(&mut into, bytes);
        if into.is_empty() {
            return Ok(bytes);
        }
        self.before = VecDeque::new();
        // The next call returns the error, if there is one.
        Ok(bytes + self.stream.read_vectored(into).unwrap_or(0))
    }
}

impl Stream {
    /// Wraps a nonblocking link connection.
    pub(super) fn of_link(
        stream: std::os::unix::net::UnixStream,
        generation: Arc<Generation>,
    ) -> Self {
        Self::Link(UnixStream::from_std(stream), generation)
    }

    /// Wraps a nonblocking connection that was handed over.
    pub(super) fn of_handed(
        stream: std::net::TcpStream,
        before: VecDeque<u8>,
        generation: Arc<Generation>,
    ) -> Self {
        Self::Handed(Box::new(Guest { stream: TcpStream::from_std(stream), before, generation }))
    }

    /// Receives. Nothing more is received from a link that was silent for too long.
    pub(super) fn receive(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Host(stream) => stream.read_vectored(into),
            Self::Link(_, generation) if !generation.is_alive() => Ok(0),
            Self::Link(stream, _) => stream.read_vectored(into),
            Self::Handed(guest) if !guest.generation.is_alive() => Ok(0),
            Self::Handed(guest) => guest.receive(into),
        }
    }

    /// Sends.
    pub(super) fn send(&self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Host(stream) => (&mut &*stream).write_vectored(from),
            Self::Link(stream, _) => (&mut &*stream).write_vectored(from),
            Self::Handed(guest) => (&mut &guest.stream).write_vectored(from),
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Host(stream) => stream,
            Self::Link(stream, _) => stream,
            Self::Handed(guest) => &mut guest.stream,
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Host(stream) => stream.as_fd(),
            Self::Link(stream, _) => stream.as_fd(),
            Self::Handed(guest) => guest.stream.as_fd(),
        }
    }
}

impl Source for Stream {
    fn register(&mut self, to: &Registry, token: Token, what: Interest) -> io::Result<()> {
        self.source().register(to, token, what)
    }

    fn reregister(&mut self, to: &Registry, token: Token, what: Interest) -> io::Result<()> {
        self.source().reregister(to, token, what)
    }

    fn deregister(&mut self, from: &Registry) -> io::Result<()> {
        self.source().deregister(from)
    }
}
