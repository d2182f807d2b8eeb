//! The sockets of hosts' connections: their own, or those of the link over which the other
//! controller forwards what they send.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::Arc;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

use super::controllers::Generation;

/// A connection of a host.
pub(super) enum Stream {
    /// From its own socket.
    Host(TcpStream),
    /// From the other controller, over this link.
    Link(UnixStream, Arc<Generation>),
}

impl Stream {
    /// A connection of the link, which does not block.
    pub(super) fn of_link(
        stream: std::os::unix::net::UnixStream,
        generation: Arc<Generation>,
    ) -> Self {
        Self::Link(UnixStream::from_std(stream), generation)
    }

    /// Receives. From a link that was silent for too long nothing comes any more.
    pub(super) fn receive(&self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Host(stream) => (&mut &*stream).read_vectored(into),
            Self::Link(_, generation) if !generation.is_alive() => Ok(0),
            Self::Link(stream, _) => (&mut &*stream).read_vectored(into),
        }
    }

    /// Sends.
    pub(super) fn send(&self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Host(stream) => (&mut &*stream).write_vectored(from),
            Self::Link(stream, _) => (&mut &*stream).write_vectored(from),
        }
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Host(stream) => stream,
            Self::Link(stream, _) => stream,
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
