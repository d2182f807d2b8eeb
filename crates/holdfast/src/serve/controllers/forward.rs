//! A thread that forwards: its poller, the sockets of hosts that it took, and one of the link for
//! each of them.

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

/// How long a thread sleeps when nothing happens.
const TICK: Duration = Duration::from_millis(500);
/// Rounds of one connection in a turn of its thread, so that one that sends fast does not starve
/// the others.
const ROUNDS_MAX: usize = 8;
/// What a poller calls the waker of its thread.
pub(super) const WAKER: Token = Token(0);
/// What it calls the first of the listeners.
pub(super) const LISTENERS: usize = 1;
/// After the listeners: each pair has two.
const PAIRS: usize = 1 << 10;

/// A host's connection, and that of the link to which its bytes go.
struct Pair {
    _guest: Guest,
    /// The host's socket's addresses: the array's, and the host's.
    ends: (SocketAddr, SocketAddr),
    host: End<TcpStream>,
    link: End<UnixStream>,
    to_link: Pipe,
    to_host: Pipe,
}

impl Pair {
    /// Moves what there is, for a bounded time. Returns whether there may be more at once; `None`
    /// when the pair is over.
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

/// What is left of a connection that was forwarded, when that comes to its end and the connection
/// goes on here.
pub(super) struct Rest {
    pub(super) host: std::net::TcpStream,
    pub(super) link: std::os::unix::net::UnixStream,
    /// The host's socket's addresses: the array's, and the host's.
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// What was taken of one and not given to the other.
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
    /// Pairs that have something to do.
    ready: Vec<usize>,
    spare: Spare,
    /// The generation that all pairs are of.
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

    /// Forwards until it is to end. Returns what is left if the connections go on here.
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
            // First, before anything is looked at that hosts have sent.
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

    /// Takes the pairs apart.
    fn end(self) -> Vec<Rest> {
        let Self { pairs, poll, .. } = self;
        let rests = pairs.into_iter().flatten().map(|pair| {
            let Pair { ends: (local, peer), mut host, mut link, to_link, to_host, .. } = *pair;
            // Others will poll them.
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
                    // Out of descriptors, or no owner: what waits is looked at in the next turn.
                    self.is_pending = true;
                    break;
                }
            }
        }
    }

    /// Makes a connection of the link for one of a host.
    fn open(
        &mut self,
        portal: SocketAddr,
        host: TcpStream,
        peer: SocketAddr,
        guest: Guest,
    ) -> io::Result<()> {
        // What comes in pieces is sent on as it comes.
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
                    // Dropping the sockets takes them out of the poller, too.
                    self.pairs[slot] = None;
                    self.free.push(slot);
                }
            }
        }
    }
}
