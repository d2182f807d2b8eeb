//! The link over the network: TCP, in TLS 1.3, of which each end is a local socket of this process.
//! So what is said on it, and how connections of hosts are forwarded, is the same as on one
//! machine, and only a peer that has proven the secret gets that far.
//!
//! * [`keys`]: the secret of both controllers, and what each end proves by it,
//! * [`session`]: a connection: bytes between its local socket and the network,
//! * [`carrier`]: a thread that moves the bytes of sessions,
//! * [`door`]: where the owner listens, and connections that are not authenticated yet.
//!
//! Invariants:
//! 1. Nothing listens but at the configured address, and only at the owner.
//! 2. Who has not proven the secret gets no thread and no local socket, and little memory for a
//!    short time. Its connections wait on no other one's.
//! 3. What a host has sent to a controller that forwards, and that is not on its way when the
//!    host's connection ends, is not sent any more: it may be repeated elsewhere.

mod carrier;
mod door;
mod keys;
mod session;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use front::episode::Episode;
use mio::net::TcpStream;
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::{Controller, SILENCE_MAX};
use carrier::Inbox;
use session::Session;

pub(super) use door::{Doors, Meet};
pub use keys::Secret;

/// How long a connection may take until both ends have proven what they have, and what it is for is
/// said.
const GREETED_WITHIN: Duration = Duration::from_secs(3);
/// How long what was sent last may take to leave an owner that ends.
const DRAINED_WITHIN: Duration = Duration::from_secs(1);
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// A connection that is silent is asked for a sign of life after this, and so often: the owner has
/// those of a machine that is gone no longer than that. (That it is gone is heard before.)
const KEPT_ALIVE_AFTER: Duration = Duration::from_secs(5);
const KEPT_ALIVE_EVERY: Duration = Duration::from_secs(1);
const KEPT_ALIVE_TRIES: u32 = 3;
/// Threads that move bytes.
const CARRIERS_MAX: usize = 4;

/// What a link over the network needs.
pub struct TunnelOptions {
    /// Which controller this is.
    pub own: Controller,
    /// Where this one listens while it has the pool.
    pub listen: SocketAddr,
    /// Where the other one does.
    pub peer: SocketAddr,
    /// What both know, and nobody else.
    pub secret: Secret,
    /// The portals of both, which both know alike.
    pub portals: Vec<(Controller, SocketAddr)>,
    /// How many threads may move bytes.
    pub threads: usize,
}

/// The link over the network, as one of both ends has it.
pub struct Tunnel {
    listen: SocketAddr,
    peer: SocketAddr,
    keys: keys::Keys,
    carriers: Vec<Arc<Inbox>>,
    next: AtomicUsize,
    /// Sessions that the other one has begun.
    accepted: Arc<AtomicUsize>,
}

impl Tunnel {
    /// Starts the threads that move bytes. Nothing listens yet.
    ///
    /// # Errors
    /// If the address is not to be had, or there can't be threads.
    pub fn start(options: TunnelOptions) -> io::Result<Arc<Self>> {
        let TunnelOptions { own, listen, peer, secret, portals, threads } = options;
        drop(door::bind(listen)?);
        let keys = keys::Keys::new(&secret, own, &portals).map_err(io::Error::other)?;
        let trouble = Arc::new(Trouble::new(peer));
        let carriers = (0..threads.clamp(1, CARRIERS_MAX)).map(|_| carrier::start(&trouble));
        Ok(Arc::new(Self {
            listen,
            peer,
            keys,
            carriers: carriers.collect::<io::Result<_>>()?,
            next: AtomicUsize::new(0),
            accepted: Arc::default(),
        }))
    }

    /// Begins a connection to the other controller. It is made meanwhile; if it can't be, what is
    /// returned comes to its end.
    pub(super) fn connect(&self) -> io::Result<UnixStream> {
        let tls = self.keys.dial(self.peer.ip()).map_err(io::Error::other)?;
        let tcp = dial(self.listen, self.peer)?;
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let until = Instant::now() + GREETED_WITHIN;
        self.carry(Session::dialed(tcp, tls, mio::net::UnixStream::from_std(ours), until));
        Ok(theirs)
    }

    /// Listens, until what is returned is dropped. `meet` gets connections of the other controller
    /// that have said what they are for.
    pub(super) fn listen(self: &Arc<Self>, meet: Meet) -> io::Result<Doors> {
        door::open(self.clone(), meet).map_err(|error| {
            io::Error::new(error.kind(), format!("no link at {} (--link): {error}", self.listen))
        })
    }

    /// Gives a session to a thread.
    fn carry(&self, session: Session) {
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.carriers.len();
        self.carriers[at].put(session);
    }

    /// Waits until what this end has said has left, for a while.
    fn drain(&self) {
        let begun = Instant::now();
        while self.accepted.load(Ordering::Acquire) > 0 && begun.elapsed() < DRAINED_WITHIN {
            thread::sleep(LOOK_INTERVAL);
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.carriers.iter().for_each(|carrier| carrier.end());
    }
}

/// What goes wrong with connections to the other controller: people are told once.
struct Trouble {
    peer: SocketAddr,
    began: Instant,
    told: Mutex<Episode>,
}

impl Trouble {
    fn new(peer: SocketAddr) -> Self {
        Self { peer, began: Instant::now(), told: Mutex::default() }
    }

    /// A connection was not made. That nobody listens is so between two owners.
    fn note(&self, error: &io::Error) {
        let peer = self.peer;
        if error.kind() != io::ErrorKind::ConnectionRefused
            && self.told.lock().note(self.began.elapsed())
        {
            tracing::warn!("no link to the other controller, {peer}: {error}");
        }
        tracing::debug!("no connection to {peer}: {error}");
    }

    /// One was made.
    fn end(&self) {
        let count = self.told.lock().end(self.began.elapsed());
        if let Some(count) = count {
            tracing::info!("connections to {} are made again, after {count} failures", self.peer);
        }
    }
}

/// A socket that is about to be connected, from the address that the other one knows.
fn dial(mut from: SocketAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket: OwnedFd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    prepare(&socket)?;
    if !from.ip().is_unspecified() && from.is_ipv4() == to.is_ipv4() {
        from.set_port(0);
        rustix::net::bind(&socket, &from)?;
    }
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(TcpStream::from_std(std::net::TcpStream::from(socket)))
}

/// What is sent goes at once, and what the other end does not confirm for [`SILENCE_MAX`] ends the
/// connection: later it would be too late.
pub(super) fn prepare(socket: impl AsFd) -> io::Result<()> {
    let limit_ms = u32::try_from(SILENCE_MAX.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_nodelay(&socket, true)?;
    sockopt::set_tcp_user_timeout(&socket, limit_ms)?;
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, KEPT_ALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(&socket, KEPT_ALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(&socket, KEPT_ALIVE_TRIES)?;
    Ok(())
}
