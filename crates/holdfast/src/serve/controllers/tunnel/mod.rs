//! The link over the network: TCP with TLS 1.3. Each end of a connection is a local socket of this
//! process, so its content, and the forwarding of hosts' connections, are the same as on one
//! machine, and only a peer that has proven knowledge of the secret gets that far.
//!
//! * [`keys`]: the secret of both controllers, and authentication by it,
//! * [`session`]: a connection: bytes between its local socket and the network,
//! * [`carrier`]: a thread that moves the bytes of sessions,
//! * [`door`]: where the owner listens, and connections that are not authenticated yet.
//!
//! Invariants:
//! 1. Only the configured address is listened at, and only by the owner.
//! 2. An unauthenticated peer gets no thread and no local socket, and little memory for a short
//!    time. No other connection waits for it.
//! 3. Data that a host has sent to a controller that forwards, and that is not in transit when the
//!    host's connection ends, is not sent any more, because the host may repeat it elsewhere.

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

/// How long a connection may take until both ends have authenticated and its purpose is known.
const GREETED_WITHIN: Duration = Duration::from_secs(3);
/// How long the last output of an owner that ends may take to be sent.
const DRAINED_WITHIN: Duration = Duration::from_secs(1);
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// The keepalive time and interval of a silent connection: the owner keeps connections of a machine
/// that is gone no longer than that. (Beats show that it is gone before.)
const KEPT_ALIVE_AFTER: Duration = Duration::from_secs(5);
const KEPT_ALIVE_EVERY: Duration = Duration::from_secs(1);
const KEPT_ALIVE_TRIES: u32 = 3;
/// The most threads that move bytes.
const CARRIERS_MAX: usize = 4;

/// The configuration of a link over the network.
pub struct TunnelOptions {
    /// The controller that this process is.
    pub own: Controller,
    /// Where this controller listens while it has the pool.
    pub listen: SocketAddr,
    /// Where the other one listens.
    pub peer: SocketAddr,
    /// The shared secret.
    pub secret: Secret,
    /// The portals of both, configured equally at both.
    pub portals: Vec<(Controller, SocketAddr)>,
    /// The number of threads that may move bytes.
    pub threads: usize,
}

/// One end of the link over the network.
pub struct Tunnel {
    listen: SocketAddr,
    peer: SocketAddr,
    keys: keys::Keys,
    carriers: Vec<Arc<Inbox>>,
    next: AtomicUsize,
    /// The number of sessions that the other end has begun.
    accepted: Arc<AtomicUsize>,
}

impl Tunnel {
    /// Starts the threads that move bytes. Does not listen yet.
    ///
    /// # Errors
    /// If the address can't be used, or no threads can be created.
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

    /// Begins a connection to the other controller, and returns its local socket without waiting;
    /// the socket ends if the connection fails.
    pub(super) fn connect(&self) -> io::Result<UnixStream> {
        let tls = self.keys.dial(self.peer.ip()).map_err(io::Error::other)?;
        let tcp = dial(self.listen, self.peer)?;
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let until = Instant::now() + GREETED_WITHIN;
        self.carry(Session::dialed(tcp, tls, mio::net::UnixStream::from_std(ours), until));
        Ok(theirs)
    }

    /// Listens until the result is dropped. `meet` gets connections of the other controller that
    /// have said what they are for.
    pub(super) fn listen(self: &Arc<Self>, meet: Meet) -> io::Result<Doors> {
        door::open(self.clone(), meet).map_err(|error| {
            io::Error::new(error.kind(), format!("no link at {} (--link): {error}", self.listen))
        })
    }

    /// Assigns a session to a thread.
    fn carry(&self, session: Session) {
        let at = self.next.fetch_add(1, Ordering::Relaxed) % self.carriers.len();
        self.carriers[at].put(session);
    }

    /// Waits a while until all output of this end was sent.
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

/// Failures of connections to the other controller, logged once.
struct Trouble {
    peer: SocketAddr,
    began: Instant,
    reported: Mutex<Episode>,
}

impl Trouble {
    fn new(peer: SocketAddr) -> Self {
        Self { peer, began: Instant::now(), reported: Mutex::default() }
    }

    /// Notes a failed connection. Between two owners it is normal that nobody listens.
    fn note(&self, error: &io::Error) {
        let peer = self.peer;
        if error.kind() != io::ErrorKind::ConnectionRefused
            && self.reported.lock().note(self.began.elapsed())
        {
            tracing::warn!("no link to the other controller, {peer}: {error}");
        }
        tracing::debug!("no connection to {peer}: {error}");
    }

    /// Notes a successful connection.
    fn end(&self) {
        let count = self.reported.lock().end(self.began.elapsed());
        if let Some(count) = count {
            tracing::info!("connections to {} succeed again, after {count} failures", self.peer);
        }
    }
}

/// Begins to connect a socket, from the address that the other end knows.
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

/// Sends output without delay, and ends the connection if the other end does not acknowledge it for
/// [`SILENCE_MAX`]: later it would be too late.
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
