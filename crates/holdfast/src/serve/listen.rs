//! Portals: listening, accepting, and handing connections out.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};

use super::ServeError;
use super::mailbox::Message;
use super::shared::Shared;

/// Connections that may be open at the same time. Each costs a receive buffer of some 100 KiB, and
/// one that does not log in is closed by its login timeout.
const CONNECTIONS_MAX: u64 = 4096;
/// Connections that are accepted in one turn, so that those that are open get theirs.
const ACCEPTS_PER_TURN: usize = 64;

/// A connection that was accepted.
pub(super) struct Accepted {
    pub stream: TcpStream,
    pub portal_index: usize,
    pub local: SocketAddr,
    pub peer: SocketAddr,
}

/// Binds all portals, before anything is started: an address that is taken is told at once.
pub(super) fn bind(portals: &[SocketAddr]) -> Result<Vec<(SocketAddr, TcpListener)>, ServeError> {
    if portals.is_empty() || portals.len() > usize::from(u16::MAX) {
        return Err(ServeError::PortalCount(portals.len()));
    }
    let bind_one = |address: &SocketAddr| {
        let bound = TcpListener::bind(*address)
            .and_then(|listener| listener.local_addr().map(|local| (local, listener)));
        bound.map_err(|error| ServeError::Listen { address: *address, error })
    };
    portals.iter().map(bind_one).collect()
}

/// The listening sockets, which one thread has.
#[derive(Default)]
pub(super) struct Listeners {
    listeners: Vec<TcpListener>,
    /// Whether there may be connections to accept: the poller tells only of new ones.
    pending: bool,
    next_thread: usize,
}

impl Listeners {
    /// Listens with one token each, from `first` on.
    pub(super) fn new(
        bound: Vec<(SocketAddr, TcpListener)>,
        registry: &Registry,
        first: usize,
    ) -> io::Result<Self> {
        let mut listeners = Vec::new();
        for (index, (_, mut listener)) in bound.into_iter().enumerate() {
            registry.register(&mut listener, Token(first + index), Interest::READABLE)?;
            listeners.push(listener);
        }
        Ok(Self { listeners, pending: true, next_thread: 0 })
    }

    pub(super) fn set_pending(&mut self) {
        self.pending = true;
    }

    /// Accepts what there is, and gives the connections to the threads in turn. What can't be
    /// accepted now (out of descriptors) is tried again when [`Listeners::set_pending`] was called.
    pub(super) fn accept(&mut self, shared: &Shared) {
        if !std::mem::take(&mut self.pending) {
            return;
        }
        for portal_index in 0..self.listeners.len() {
            for turn in 0..=ACCEPTS_PER_TURN {
                if turn == ACCEPTS_PER_TURN {
                    self.pending = true;
                    break;
                }
                match self.listeners[portal_index].accept() {
                    Ok((stream, peer)) => self.hand_out(shared, stream, portal_index, peer),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        tracing::warn!("can't accept a connection: {error}");
                        break;
                    }
                }
            }
        }
    }

    fn hand_out(
        &mut self,
        shared: &Shared,
        stream: TcpStream,
        portal_index: usize,
        peer: SocketAddr,
    ) {
        if shared.counters.wire().connections >= CONNECTIONS_MAX {
            tracing::warn!("refused {peer}: {CONNECTIONS_MAX} connections are open");
            return;
        }
        // Answers are sent as whole batches; waiting for more to send only adds latency.
        let prepared = stream.set_nodelay(true).and_then(|()| stream.local_addr());
        let Ok(local) = prepared else { return }; // it was closed already
        let thread = self.next_thread % shared.mailboxes.len();
        self.next_thread = thread + 1;
        shared.counters.wire_of(thread).connections.fetch_add(1, Ordering::Relaxed);
        let accepted = Accepted { stream, portal_index, local, peer };
        shared.mailboxes[thread].post(Message::Serve(Box::new(accepted)));
    }
}
