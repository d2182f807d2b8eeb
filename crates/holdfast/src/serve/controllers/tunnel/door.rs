//! Where the owner listens for the other controller. A peer is kept in a table of bounded size, for
//! a bounded time, until it has authenticated and said what the connection is for. Connections from
//! the address of the other controller have separate slots, so that no other peer can use them up;
//! of the other connections the oldest one is dropped.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use front::episode::Episode;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::ServerConnection;

use super::super::wire::LINE_BYTES_MAX;
use super::session::Session;
use super::{GREETED_WITHIN, Tunnel, prepare};

/// Unauthenticated connections from the address of the other controller. Those of hosts all arrive
/// at once: the rest waits to be accepted.
const OF_PEER_MAX: usize = 64;
/// Unauthenticated connections from elsewhere.
const OTHERS_MAX: usize = 16;
const TICK: Duration = Duration::from_millis(250);
/// How long it waits if no descriptors are left.
const PAUSE: Duration = Duration::from_millis(100);
const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
const FIRST: usize = 2;
/// The most bytes read at once.
const BUFFER_BYTES: usize = 4096;

/// Called with a connection of the other controller, whose first line can be read.
pub(in super::super) type Meet = Box<dyn FnMut(UnixStream) + Send>;

/// Binds the address at which the owner listens.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}

/// The listening thread, until this is dropped; then it waits a while for output to be sent.
pub(in super::super) struct Doors {
    tunnel: Arc<Tunnel>,
    has_ended: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// Starts listening.
pub(super) fn open(tunnel: Arc<Tunnel>, meet: Meet) -> io::Result<Doors> {
    let mut listener = bind(tunnel.listen)?;
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let has_ended = Arc::<AtomicBool>::default();
    let door = Door {
        tunnel: tunnel.clone(),
        has_ended: has_ended.clone(),
        listener,
        poll,
        meet,
        pending: (0..OF_PEER_MAX + OTHERS_MAX).map(|_| None).collect(),
        may_accept: true,
        refused: Episode::default(),
        began: Instant::now(),
    };
    let builder = thread::Builder::new().name("link-door".into());
    let thread = Some(builder.spawn(move || door.run())?);
    Ok(Doors { tunnel, has_ended, waker, thread })
}

impl Drop for Doors {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Release);
        if let Err(error) = self.waker.wake() {
            tracing::warn!("the link listens for a moment longer: {error}");
        }
        if let Some(thread) = self.thread.take() {
            // It can't have panicked: that ends the process.
            let _ = thread.join();
        }
        self.tunnel.drain();
    }
}

/// A peer that has not authenticated yet.
struct Pending {
    tcp: TcpStream,
    tls: ServerConnection,
    address: SocketAddr,
    since: Instant,
    line: Vec<u8>,
}

impl Pending {
    /// Processes input. Returns whether it has authenticated and sent its first line.
    fn greet(&mut self) -> io::Result<bool> {
        loop {
            while self.tls.wants_write() && retry(self.tls.write_tls(&mut self.tcp))? {}
            if !self.tls.is_handshaking() && self.read_line()? {
                return Ok(true);
            }
            if !self.tls.wants_read() {
                return Ok(false);
            }
            match self.tls.read_tls(&mut self.tcp) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    if !retry(read)? {
                        return Ok(false);
                    }
                }
            }
            if let Err(error) = self.tls.process_new_packets() {
                // The TLS alert is sent if the socket accepts it at once.
                let _ = self.tls.write_tls(&mut self.tcp);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
    }

    /// Returns whether its first line is complete.
    fn read_line(&mut self) -> io::Result<bool> {
        let mut buffer = [0; BUFFER_BYTES];
        loop {
            match self.tls.reader().read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.line.extend(&buffer[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if self.line.contains(&b'\n') {
                return Ok(true);
            }
            if self.line.len() > LINE_BYTES_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}

/// Returns whether the call may be repeated at once; false if it would block.
fn retry(result: io::Result<usize>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

struct Door {
    tunnel: Arc<Tunnel>,
    has_ended: Arc<AtomicBool>,
    listener: TcpListener,
    poll: Poll,
    meet: Meet,
    /// First the slots of the other controller, then those of others.
    pending: Vec<Option<Pending>>,
    /// Whether there may be connections to accept.
    may_accept: bool,
    refused: Episode,
    began: Instant,
}

impl Door {
    fn run(mut self) {
        let mut events = Events::with_capacity(256);
        while !self.has_ended.load(Ordering::Acquire) {
            match self.poll.poll(&mut events, Some(TICK)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("can't wait for the other controller: {error}"),
            }
            for event in &events {
                match event.token() {
                    WAKER => {}
                    LISTENER => self.may_accept = true,
                    Token(token) => self.look_at(token - FIRST),
                }
            }
            self.time_out();
            self.accept();
        }
    }

    fn accept(&mut self) {
        while self.may_accept && self.place_of_peer().is_some() {
            match self.listener.accept() {
                Ok((tcp, address)) => {
                    if let Err(error) = self.admit(tcp, address) {
                        self.tell(address, &error);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.may_accept = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    // Possibly out of descriptors.
                    self.tell(self.tunnel.listen, &error);
                    return thread::sleep(PAUSE);
                }
            }
        }
    }

    /// Returns a free slot for the other controller. If there is none, further connections wait to
    /// be accepted.
    fn place_of_peer(&self) -> Option<usize> {
        self.pending[..OF_PEER_MAX].iter().position(Option::is_none)
    }

    /// Returns a slot for a connection from elsewhere; the oldest one is dropped.
    fn place_of_another(&mut self) -> usize {
        let others = &self.pending[OF_PEER_MAX..];
        let since = |at: &usize| others[*at].as_ref().map(|it| it.since);
        let at = (0..OTHERS_MAX).min_by_key(since).unwrap_or(0) + OF_PEER_MAX;
        if let Some(pending) = self.pending[at].take() {
            self.tell(
                pending.address,
                &io::Error::other("too many connections are not authenticated"),
            );
        }
        at
    }

    fn admit(&mut self, mut tcp: TcpStream, address: SocketAddr) -> io::Result<()> {
        prepare(&tcp)?;
        let slot = match is_same(address.ip(), self.tunnel.peer.ip()) {
            true => self.place_of_peer(),
            false => Some(self.place_of_another()),
        };
        let Some(slot) = slot else { return Ok(()) };
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut tcp, Token(FIRST + slot), interest)?;
        let tls = self.tunnel.keys.accept().map_err(io::Error::other)?;
        let (since, line) = (Instant::now(), Vec::new());
        self.pending[slot] = Some(Pending { tcp, tls, address, since, line });
        self.look_at(slot);
        Ok(())
    }

    fn look_at(&mut self, slot: usize) {
        let Some(pending) = self.pending.get_mut(slot).and_then(Option::as_mut) else { return };
        let address = pending.address;
        match pending.greet() {
            Ok(false) => {}
            Ok(true) => {
                let pending = self.pending[slot].take();
                let met = pending.map_or(Ok(()), |pending| self.let_in(pending));
                if let Err(error) = met {
                    self.tell(address, &error);
                }
            }
            Err(error) => {
                self.pending[slot] = None;
                self.tell(address, &error);
            }
        }
    }

    /// Connects an authenticated connection of the other controller to a local socket.
    fn let_in(&mut self, pending: Pending) -> io::Result<()> {
        let Pending { mut tcp, tls, line, .. } = pending;
        self.poll.registry().deregister(&mut tcp)?;
        let (mut ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        ours.write_all(&line)?;
        let local = mio::net::UnixStream::from_std(ours);
        self.tunnel.carry(Session::accepted(tcp, tls, local, &self.tunnel.accepted));
        (self.meet)(theirs);
        Ok(())
    }

    fn time_out(&mut self) {
        for slot in 0..self.pending.len() {
            let is_late = |it: &mut Pending| it.since.elapsed() > GREETED_WITHIN;
            if let Some(pending) = self.pending[slot].take_if(is_late) {
                self.tell(pending.address, &io::Error::other("it has not authenticated in time"));
            }
        }
    }

    /// Logs a refused connection, once.
    fn tell(&mut self, address: SocketAddr, why: &io::Error) {
        let now = self.began.elapsed();
        if let Some(count) = self.refused.end(now) {
            tracing::info!("{count} connections of the link were refused");
        }
        if self.refused.note(now) {
            tracing::warn!("a connection of the link, from {address}, was refused: {why}");
        }
    }
}

/// Returns whether both are the same address: an IPv4 address may be mapped at an IPv6 socket.
fn is_same(one: IpAddr, other: IpAddr) -> bool {
    one.to_canonical() == other.to_canonical()
}
