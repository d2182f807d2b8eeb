//! A front-end thread: its poller, its sockets, and the turns of its front end.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use front::transport::Opening;
use front::{FrontEnd, Handed, Wires};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use segments::Channel;
use sys::attendant::LOOK_INTERVAL;

use super::controllers::Leaving;
use super::listen::{Accepted, Listeners};
use super::shared::Shared;
use super::stream::Stream;

/// The poller's token for the waker of a thread's mailbox.
pub(super) const WAKER: Token = Token(0);
const CHANNEL: Token = Token(1);
pub(super) const LISTENERS: usize = 2;
const SOCKETS: usize = 1 << 17;

/// The most requests to the medium in the kernel at once, per thread.
const CHANNEL_ENTRIES: u32 = 256;

/// One thread.
pub(super) struct Runner {
    shared: Arc<Shared>,
    index: usize,
    front: FrontEnd,
    poll: Poll,
    sockets: Sockets,
    listeners: Listeners,
    /// When to retry accepting what could not be accepted.
    next_look: Duration,
}

impl Runner {
    pub(super) fn new(shared: Arc<Shared>, index: usize, poll: Poll, listeners: Listeners) -> Self {
        let channel = open_channel(&shared, index, &poll);
        let channel = channel.unwrap_or_else(|error| panic!("can't wait for the disk: {error}"));
        let front = FrontEnd::new(shared.front.clone(), index, channel);
        let registry = poll.registry().try_clone();
        let registry = registry.unwrap_or_else(|error| panic!("can't wait for hosts: {error}"));
        let sockets =
            Sockets { shared: shared.clone(), index, registry, all: Vec::new(), free: Vec::new() };
        let next_look = Duration::ZERO;
        Self { shared, index, front, poll, sockets, listeners, next_look }
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(256);
        while !self.front.is_finished() {
            match self.poll.poll(&mut events, Some(self.front.sleep_time())) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("can't wait for events: {error}"),
            }
            let now = self.shared.clock.now();
            self.shared.turns.note(self.index, now);
            self.front.looked(now, !events.is_empty());
            let mut woken = false;
            for event in &events {
                woken |= event.token() == WAKER;
                self.note(event);
            }
            if self.front.is_stopping() {
                self.listeners = Listeners::default();
            }
            if now >= self.next_look {
                self.next_look = now + LOOK_INTERVAL;
                self.listeners.set_pending();
            }
            self.listeners.accept(&self.shared, now);
            self.front.turn(woken, now, &mut self.sockets);
            // After the turn has noted the wake-up: connections accepted from now on cause another
            // one. Connections opened here have their turn at once.
            if woken {
                self.open_accepted();
            }
        }
        self.front.hand_over(&mut self.sockets);
        self.front.close_all(&mut self.sockets);
        self.shared.turns.end(self.index);
    }

    /// Passes an event of the poller to the front end.
    fn note(&mut self, event: &mio::event::Event) {
        match event.token() {
            WAKER | CHANNEL => {}
            Token(token) if token < SOCKETS => self.listeners.set_pending(),
            Token(token) => {
                let slot = token - SOCKETS;
                let closed = event.is_read_closed() || event.is_error();
                if event.is_readable() || closed {
                    self.front.readable(slot, closed);
                }
                if event.is_writable() {
                    self.front.writable(slot);
                }
            }
        }
    }

    /// Starts serving the connections that were accepted for this thread.
    fn open_accepted(&mut self) {
        let accepted = std::mem::take(&mut *self.shared.accepted[self.index].lock());
        for Accepted { stream, portal_index, local, peer, handed } in accepted {
            let mut entropy = [0; 32];
            let slot =
                sys::entropy(&mut entropy).and_then(|()| self.sockets.add(stream, (local, peer)));
            let slot = match slot {
                Ok(slot) => slot,
                Err(error) => {
                    tracing::warn!("can't serve {peer}: {error}");
                    self.sockets.left(peer.ip());
                    continue;
                }
            };
            if self.front.is_stopping() {
                self.sockets.close(slot);
                continue;
            }
            let now = self.shared.clock.now();
            let opening = Opening { portal_index, local, peer, entropy, now };
            match handed {
                None => self.front.open(slot, opening),
                Some(handed) => {
                    if !self.front.go_on_with(slot, opening, handed) {
                        self.sockets.close(slot);
                    }
                }
            }
        }
    }
}

/// Opens a thread's channel to the medium, registered with its poller.
fn open_channel(shared: &Shared, index: usize, poll: &Poll) -> io::Result<Box<dyn Channel>> {
    let channel = shared.medium.channel(CHANNEL_ENTRIES)?;
    for notice in channel.notices().iter().filter(|_| index == 0) {
        tracing::warn!("{notice}");
    }
    for fd in channel.poll_fds() {
        poll.registry().register(&mut SourceFd(&fd), CHANNEL, Interest::READABLE)?;
    }
    Ok(channel)
}

/// The sockets of a thread's connections, by slot.
struct Sockets {
    shared: Arc<Shared>,
    index: usize,
    registry: Registry,
    /// Each with its two addresses: the array's, and the host's.
    all: Vec<Option<(Stream, (SocketAddr, SocketAddr))>>,
    free: Vec<usize>,
}

impl Sockets {
    /// Assigns a slot to a socket, and registers it with the poller.
    fn add(&mut self, mut stream: Stream, ends: (SocketAddr, SocketAddr)) -> io::Result<usize> {
        let slot = self.free.last().copied().unwrap_or(self.all.len());
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.registry.register(&mut stream, Token(SOCKETS + slot), interest)?;
        match self.free.pop() {
            Some(slot) => self.all[slot] = Some((stream, ends)),
            None => self.all.push(Some((stream, ends))),
        }
        Ok(slot)
    }

    fn of(&mut self, slot: usize) -> io::Result<&mut Stream> {
        let socket = self.all.get_mut(slot).and_then(Option::as_mut);
        socket.map(|(stream, _)| stream).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// What is sent was determined before this: if the lease is valid now, it was valid then.
    fn wait_for_lease(&self) {
        if let Some(lease) = &self.shared.lease {
            lease.wait();
        }
    }

    /// Counts a closed connection.
    fn left(&self, address: IpAddr) {
        self.shared.addresses.leave(address);
        self.shared.front.counters.connection_closed(self.index);
    }
}

impl Wires for Sockets {
    fn receive(&mut self, slot: usize, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.wait_for_lease();
        self.of(slot)?.receive(into)
    }

    fn send(&mut self, slot: usize, from: &[IoSlice<'_>]) -> io::Result<usize> {
        self.wait_for_lease();
        self.of(slot)?.send(from)
    }

    fn hand_over(&mut self, slot: usize, handed: Handed) {
        let Some((mut stream, (local, peer))) = self.all.get_mut(slot).and_then(Option::take)
        else {
            return;
        };
        let _ = self.registry.deregister(&mut stream);
        self.shared.leaving.lock().push(Leaving { handed, stream, local, peer });
        self.free.push(slot);
        self.left(peer.ip());
    }

    fn close(&mut self, slot: usize) {
        let Some((mut stream, (_, peer))) = self.all.get_mut(slot).and_then(Option::take) else {
            return;
        };
        // Dropping the socket also removes it from the poller.
        let _ = self.registry.deregister(&mut stream);
        self.free.push(slot);
        self.left(peer.ip());
    }
}
