//! A thread that forwards: its poller, the sockets of hosts that it accepted, and a link connection
//! for each of them.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use front::episode::Episode;
use mio::net::{TcpListener, TcpStream, UnixStream};
use mio::{Events, Interest, Poll, Token};

use super::SILENCE_MAX;
use super::guests::Guest;
use super::pipe::{End, Pipe, Spare};
use super::relay::Relay;
use super::wire::Purpose;

/// How long an idle thread sleeps.
const TICK: Duration = Duration::from_millis(500);
/// Rounds of one connection per turn of its thread, so that a fast sender does not starve others.
const ROUNDS_MAX: usize = 8;
/// The poller's token of its thread's waker.
pub(super) const WAKER: Token = Token(0);
/// The token of the first listener.
pub(super) const LISTENERS: usize = 1;
/// After the listeners: each pair has two tokens.
const PAIRS: usize = 1 << 10;

/// A host's connection, and the link connection to which its bytes go.
struct Pair {
    _guest: Guest,
    /// The two addresses of the host's socket: the array's, and the host's.
    ends: (SocketAddr, SocketAddr),
    host: End<TcpStream>,
    link: End<UnixStream>,
    to_link: Pipe,
    to_host: Pipe,
}

impl Pair {
    /// Moves available data, for a bounded time. Returns whether there may be more at once; `None`
    /// when the pair has ended.
    fn pump(&mut self, spare: &mut Spare) -> Option<bool> {
        for _ in 0..ROUNDS_MAX {
            let there = self.to_link.pump(&mut self.host, &mut self.link, spare).ok()?;
            let back = self.to_host.pump(&mut self.link, &mut self.host, spare).ok()?;
            if self.to_link.is_done() || self.to_host.is_done() {
                return None;
            }
            if !there && !back {
                return Some(false);
            }
        }
        Some(true)
    }
}

/// The rest of a forwarded connection, when forwarding ends and the connection continues in this
/// process.
pub(super) struct Rest {
    pub(super) host: std::net::TcpStream,
    pub(super) link: std::os::unix::net::UnixStream,
    /// The two addresses of the host's socket: the array's, and the host's.
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// Data read from one socket and not written to the other.
    pub(super) to_link: Vec<u8>,
    pub(super) to_host: Vec<u8>,
}

/// A thread that forwards.
pub(super) struct Forwarder {
    relay: Arc<Relay>,
    poll: Poll,
    listeners: Vec<(SocketAddr, TcpListener)>,
    pairs: Vec<Option<Box<Pair>>>,
    free: Vec<usize>,
    /// Pairs with work to do.
    ready: Vec<usize>,
    spare: Spare,
    /// The generation of all pairs.
    generation: u64,
    /// Whether there may be connections to accept.
    is_pending: bool,
    failed: Episode,
    refused: Episode,
    began: Instant,
}

impl Forwarder {
    pub(super) fn new(
        relay: Arc<Relay>,
        poll: Poll,
        listeners: Vec<(SocketAddr, TcpListener)>,
    ) -> Self {
        Self {
            relay,
            poll,
            listeners,
            pairs: Vec::new(),
            free: Vec::new(),
            ready: Vec::new(),
            spare: Spare::default(),
            generation: 0,
            is_pending: true,
            failed: Episode::default(),
            refused: Episode::default(),
            began: Instant::now(),
        }
    }

    /// Forwards until it must end. Returns the rest if the connections continue in this process.
    pub(super) fn run(mut self) -> Vec<Rest> {
        let mut events = Events::with_capacity(256);
        let mut ran = Instant::now();
        while !self.relay.has_ended() {
            let wait = if self.ready.is_empty() { TICK } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(wait)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("can't wait for hosts: {error}"),
            }
            if self.relay.has_all() {
                return self.end();
            }
            // First, before any input of hosts is read.
            let generation = self.relay.generation.load(Ordering::Acquire);
            let did_not_run = ran.elapsed() > SILENCE_MAX;
            ran = Instant::now();
            if did_not_run {
                tracing::warn!(
                    "this controller did not run for a while: hosts are to log in again"
                );
            }
            if did_not_run || generation != self.generation {
                self.drop_all();
                self.generation = generation;
            }
            for event in &events {
                self.note(event);
            }
            if self.generation != 0 {
                self.accept();
            }
            self.work_off();
        }
        Vec::new()
    }

    /// Separates the pairs.
    fn end(self) -> Vec<Rest> {
        let Self { pairs, poll, .. } = self;
        let rests = pairs.into_iter().flatten().map(|pair| {
            let Pair { ends: (local, peer), mut host, mut link, to_link, to_host, .. } = *pair;
            // Other threads will poll them.
            let _ = poll.registry().deregister(&mut host.socket);
            let _ = poll.registry().deregister(&mut link.socket);
            let (host, link) = (host.socket.into(), link.socket.into());
            Rest { host, link, local, peer, to_link: to_link.rest(), to_host: to_host.rest() }
        });
        rests.collect()
    }

    fn drop_all(&mut self) {
        self.pairs.clear();
        self.free.clear();
        self.ready.clear();
        self.is_pending = true;
    }

    fn note(&mut self, event: &mio::event::Event) {
        let Token(token) = event.token();
        if token < PAIRS {
            self.is_pending |= event.token() != WAKER;
            return;
        }
        let (slot, is_link) = ((token - PAIRS) / 2, (token - PAIRS) % 2 == 1);
        let Some(pair) = self.pairs.get_mut(slot).and_then(Option::as_mut) else { return };
        let readable = event.is_readable() || event.is_read_closed() || event.is_error();
        let writable = event.is_writable() || event.is_error();
        let (reads, writes) = match is_link {
            true => (&mut pair.link.is_readable, &mut pair.link.is_writable),
            false => (&mut pair.host.is_readable, &mut pair.host.is_writable),
        };
        *reads |= readable;
        *writes |= writable;
        self.ready.push(slot);
    }

    fn accept(&mut self) {
        if !std::mem::take(&mut self.is_pending) {
            return;
        }
        for at in 0..self.listeners.len() {
            loop {
                let (portal, listener) = &self.listeners[at];
                let (portal, accepted) = (*portal, listener.accept());
                let made = match accepted {
                    Ok((host, peer)) => match self.relay.guests.enter(peer.ip()) {
                        Some(guest) => self.open(portal, host, peer, guest),
                        None => {
                            if self.refused.note(self.began.elapsed()) {
                                tracing::warn!("a connection of {peer} was refused: too many");
                            }
                            continue;
                        }
                    },
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                    Err(error) => Err(error),
                };
                if let Err(error) = made {
                    if self.failed.note(self.began.elapsed()) {
                        tracing::warn!("can't forward a connection at {portal}: {error}");
                    }
                    // Out of descriptors, or no owner: retry in the next turn.
                    self.is_pending = true;
                    break;
                }
            }
        }
    }

    /// Opens a link connection for a host's connection.
    fn open(
        &mut self,
        portal: SocketAddr,
        host: TcpStream,
        peer: SocketAddr,
        guest: Guest,
    ) -> io::Result<()> {
        // Small pieces are sent as they arrive.
        host.set_nodelay(true)?;
        let local = host.local_addr()?;
        let mut link = self.relay.meeting.connect_at_once()?;
        let purpose = Purpose::Host { generation: self.generation, portal, local, peer };
        let line = purpose.to_line(self.relay.version.load(Ordering::Acquire));
        link.write_all(line.as_bytes())?;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.pairs.push(None);
            self.pairs.len() - 1
        });
        let mut pair = Box::new(Pair {
            _guest: guest,
            ends: (local, peer),
            host: End::new(host),
            link: End::new(link),
            to_link: Pipe::default(),
            to_host: Pipe::default(),
        });
        let (registry, token) = (self.poll.registry(), PAIRS + 2 * slot);
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut pair.host.socket, Token(token), interest)?;
        registry.register(&mut pair.link.socket, Token(token + 1), interest)?;
        self.pairs[slot] = Some(pair);
        self.ready.push(slot);
        Ok(())
    }

    fn work_off(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_unstable();
        ready.dedup();
        for slot in ready {
            let Some(pair) = self.pairs[slot].as_mut() else { continue };
            match pair.pump(&mut self.spare) {
                Some(true) => self.ready.push(slot),
                Some(false) => {}
                None => {
                    // Dropping the sockets also removes them from the poller.
                    self.pairs[slot] = None;
                    self.free.push(slot);
                }
            }
        }
    }
}
