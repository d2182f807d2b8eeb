//! Portals: listening, accepting, and assigning connections to threads.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::os::fd::OwnedFd;
use std::time::Duration;

use front::episode::Episode;
use front::transport::Handed;
use iscsi::neighbourhood;
use mio::net::TcpListener;
use mio::{Interest, Registry, Token};
use parking_lot::Mutex;

use super::ServeError;
use super::controllers::Addresses;
use super::controllers::addresses::bind_absent;
use super::shared::Shared;
use super::stream::Stream;
use super::supervisor::{self, Kept};

/// The most connections accepted in one turn, so that open ones get their turn.
const ACCEPTS_PER_TURN: usize = 64;

/// Limits on concurrent connections of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The total. Each costs a receive buffer of about 100 KiB, and one that does not log in is
    /// closed by its login timeout.
    pub all: u32,
    /// Connections from one address; of IPv6, from one 64-bit network.
    pub per_address: u32,
}

impl ConnectionLimits {
    /// The limits with unlimited descriptors.
    pub const MOST: Self = Self { all: 4096, per_address: 1024 };

    /// Returns the limits with this many descriptors for them: an address gets the same quarter.
    pub fn within(descriptors: u64) -> Self {
        let all = u32::try_from(descriptors).unwrap_or(u32::MAX).clamp(1, Self::MOST.all);
        Self { all, per_address: (all / 4).max(1) }
    }
}
/// The number of connections from each address.
#[derive(Default)]
pub(super) struct Neighbours(Mutex<HashMap<IpAddr, u32>>);

impl Neighbours {
    /// Adds one, if there are fewer than `most`. Returns whether it did.
    pub(super) fn enter(&self, address: IpAddr, most: u32) -> bool {
        let mut all = self.0.lock();
        let count = all.entry(neighbourhood(address)).or_default();
        if *count >= most {
            return false;
        }
        *count += 1;
        true
    }

    /// Removes one.
    pub(super) fn leave(&self, address: IpAddr) {
        let mut all = self.0.lock();
        let key = neighbourhood(address);
        match all.get_mut(&key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(all.remove(&key)),
        }
    }
}

/// An accepted connection.
pub(super) struct Accepted {
    pub stream: Stream,
    pub portal_index: usize,
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// Its state, if another process has handed it over.
    pub handed: Option<Handed>,
}

/// Checks that an array can have this many portals.
///
/// # Errors
/// [`ServeError::PortalCount`].
pub fn check_count(portals: usize) -> Result<(), ServeError> {
    if portals == 0 || portals > array::PORTS_MAX {
        return Err(ServeError::PortalCount(portals));
    }
    Ok(())
}

/// Binds all portals before anything is started, so that an address in use is reported at once.
/// Sockets that the supervisor has kept are reused, and new ones are passed to it. An address that
/// moves may be at another machine.
pub(super) fn bind(
    portals: &[SocketAddr],
    mut kept: Kept,
    moving: Option<&Addresses>,
) -> Result<Vec<(SocketAddr, StdListener)>, ServeError> {
    check_count(portals.len())?;
    let mut bind_one = |asked: SocketAddr| match kept.take(asked) {
        Some(listener) => {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        }
        None => {
            let listener = match moving.is_some_and(|moving| moving.may_move(asked.ip())) {
                true => bind_absent(asked)?,
                false => StdListener::from(OwnedFd::from(TcpListener::bind(asked)?)),
            };
            let local = listener.local_addr()?;
            supervisor::keep(&listener, local);
            Ok((local, listener))
        }
    };
    let refused = |address, error| ServeError::Listen { address, error };
    let bound = portals.iter().map(|at| bind_one(*at).map_err(|error| refused(*at, error)));
    let bound = bound.collect();
    kept.end();
    bound
}

/// The listening sockets, owned by one thread.
#[derive(Default)]
pub(super) struct Listeners {
    /// Each with the index of its portal among all.
    listeners: Vec<(usize, TcpListener)>,
    /// Whether there may be connections to accept: the poller reports only new ones.
    pending: bool,
    door: Door,
    failed: Episode,
}

/// Assigns connections to the threads in turn, within the limits.
#[derive(Default)]
pub(super) struct Door {
    next_thread: usize,
    refused: Episode,
}

impl Listeners {
    /// Registers the listeners with consecutive tokens from `first` on.
    pub(super) fn new(
        bound: Vec<(usize, StdListener)>,
        registry: &Registry,
        first: usize,
    ) -> io::Result<Self> {
        let mut listeners = Vec::new();
        for (index, (portal_index, listener)) in bound.into_iter().enumerate() {
            let mut listener = TcpListener::from_std(listener);
            registry.register(&mut listener, Token(first + index), Interest::READABLE)?;
            listeners.push((portal_index, listener));
        }
        Ok(Self { listeners, pending: true, ..Self::default() })
    }

    pub(super) fn set_pending(&mut self) {
        self.pending = true;
    }

    /// Accepts available connections, and assigns them to the threads in turn. What can't be
    /// accepted now (out of descriptors) is retried after a call of [`Listeners::set_pending`].
    pub(super) fn accept(&mut self, shared: &Shared, now: Duration) {
        if !std::mem::take(&mut self.pending) {
            return;
        }
        self.door.tell(now);
        if let Some(count) = self.failed.end(now) {
            tracing::info!("connections can be accepted again, after {count} failures");
        }
        for (portal_index, listener) in &self.listeners {
            for turn in 0..=ACCEPTS_PER_TURN {
                if turn == ACCEPTS_PER_TURN {
                    self.pending = true;
                    break;
                }
                match listener.accept() {
                    Ok((stream, peer)) => {
                        // Responses are sent as whole batches; waiting for more to send only adds
                        // latency.
                        let prepared = stream.set_nodelay(true).and_then(|()| stream.local_addr());
                        let stream = shared.stream(*portal_index, stream);
                        // Otherwise it was already closed.
                        if let (Ok(local), Some(stream)) = (prepared, stream) {
                            let ends = (local, peer);
                            self.door.hand_out(shared, stream, *portal_index, ends, now);
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        if self.failed.note(now) {
                            tracing::warn!("can't accept connections: {error}");
                        }
                        break;
                    }
                }
            }
        }
    }
}

impl Door {
    /// Logs how many were refused, once they are accepted again.
    fn tell(&mut self, now: Duration) {
        if let Some(count) = self.refused.end(now) {
            tracing::info!("connections are accepted again; {count} were refused");
        }
    }

    /// Assigns a connection to the next thread, if the limits allow it. It arrived at the portal
    /// with this index among all, and has these addresses: the array's and the host's.
    pub(super) fn hand_out(
        &mut self,
        shared: &Shared,
        stream: Stream,
        portal_index: usize,
        ends: (SocketAddr, SocketAddr),
        now: Duration,
    ) {
        self.hand_on(shared, stream, portal_index, ends, None, now);
    }

    /// The same for one that another process has handed over with this state.
    pub(super) fn hand_on(
        &mut self,
        shared: &Shared,
        stream: Stream,
        portal_index: usize,
        (local, peer): (SocketAddr, SocketAddr),
        handed: Option<Handed>,
        now: Duration,
    ) {
        let ConnectionLimits { all, per_address } = shared.connections;
        let why = if shared.front.counters.wire().connections >= u64::from(all) {
            Some(format!("{all} are open"))
        } else if !shared.addresses.enter(peer.ip(), per_address) {
            Some(format!("{per_address} of this address are open"))
        } else {
            None
        };
        if let Some(why) = why {
            if self.refused.note(now) {
                tracing::warn!("a connection of {peer} was refused: {why}");
            }
            return;
        }
        let thread = self.next_thread % shared.accepted.len();
        self.next_thread = thread + 1;
        shared.front.counters.connection_opened(thread);
        let accepted = Accepted { stream, portal_index, local, peer, handed };
        shared.accepted[thread].lock().push(accepted);
        shared.front.mailboxes[thread].wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_per_address() {
        let addresses = Neighbours::default();
        let of = |text: &str| text.parse::<IpAddr>().unwrap();
        let enter = |text: &str| addresses.enter(of(text), 7);
        for _ in 0..7 {
            assert!(enter("192.0.2.1"));
        }
        assert!(!enter("::ffff:192.0.2.1") && enter("192.0.2.2"));
        addresses.leave(of("192.0.2.1"));
        assert!(enter("192.0.2.1"));
        for _ in 0..7 {
            addresses.leave(of("192.0.2.1"));
        }
        addresses.leave(of("192.0.2.2"));
        assert!(addresses.0.lock().is_empty());
    }

    #[test]
    fn an_address_gets_a_quarter_of_all_connections() {
        let within = |descriptors| {
            let limits = ConnectionLimits::within(descriptors);
            (limits.all, limits.per_address)
        };
        assert_eq!((within(137), within(0), within(3)), ((137, 34), (1, 1), (3, 1)));
        for many in [4096, 4097, u64::MAX] {
            assert_eq!(ConnectionLimits::within(many), ConnectionLimits::MOST);
        }
    }
}
