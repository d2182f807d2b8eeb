//! Portals: listening, accepting, and handing connections out.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::time::Duration;

use iscsi::neighbourhood;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use parking_lot::Mutex;

use super::ServeError;
use super::mailbox::Message;
use super::shared::Shared;

/// Connections that may be open at the same time. Each costs a receive buffer of some 100 KiB, and
/// one that does not log in is closed by its login timeout.
const CONNECTIONS_MAX: u64 = 4096;
/// Connections that are accepted in one turn, so that those that are open get theirs.
const ACCEPTS_PER_TURN: usize = 64;

/// Connections from one address; of IPv6, from one network of 64 bits.
const CONNECTIONS_PER_ADDRESS_MAX: u32 = 1024;
/// For how long connections must have been taken again before people are told of the next refusal.
const EPISODE: Duration = Duration::from_secs(60);

/// How many connections there are from each address.
#[derive(Default)]
pub(super) struct Addresses(Mutex<HashMap<IpAddr, u32>>);

impl Addresses {
    /// One more, if there may be.
    fn enter(&self, address: IpAddr) -> bool {
        let mut all = self.0.lock();
        let count = all.entry(neighbourhood(address)).or_default();
        if *count >= CONNECTIONS_PER_ADDRESS_MAX {
            return false;
        }
        *count += 1;
        true
    }

    /// One less.
    pub(super) fn leave(&self, address: IpAddr) {
        let mut all = self.0.lock();
        let key = neighbourhood(address);
        match all.get_mut(&key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(all.remove(&key)),
        }
    }
}

/// Something that goes wrong again and again: people are told when it begins, and when it is over.
#[derive(Debug, Default)]
struct Episode {
    count: u64,
    last: Duration,
}

impl Episode {
    /// It has gone wrong. Whether that is the first time.
    fn note(&mut self, now: Duration) -> bool {
        self.count += 1;
        self.last = now;
        self.count == 1
    }

    /// How often it has gone wrong, once it has not for a while.
    fn end(&mut self, now: Duration) -> Option<u64> {
        let is_over = self.count > 0 && now >= self.last + EPISODE;
        is_over.then(|| std::mem::take(&mut self.count))
    }
}

/// A connection that was accepted.
pub(super) struct Accepted {
    pub stream: TcpStream,
    pub portal_index: usize,
    pub local: SocketAddr,
    pub peer: SocketAddr,
}

/// Checks that an array can have so many portals.
///
/// # Errors
/// [`ServeError::PortalCount`].
pub fn check_count(portals: usize) -> Result<(), ServeError> {
    if portals == 0 || portals > array::PORTS_MAX {
        return Err(ServeError::PortalCount(portals));
    }
    Ok(())
}

/// Binds all portals, before anything is started: an address that is taken is told at once.
pub(super) fn bind(portals: &[SocketAddr]) -> Result<Vec<(SocketAddr, TcpListener)>, ServeError> {
    check_count(portals.len())?;
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
    refused: Episode,
    failed: Episode,
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
        Ok(Self { listeners, pending: true, ..Self::default() })
    }

    pub(super) fn set_pending(&mut self) {
        self.pending = true;
    }

    /// Accepts what there is, and gives the connections to the threads in turn. What can't be
    /// accepted now (out of descriptors) is tried again when [`Listeners::set_pending`] was called.
    pub(super) fn accept(&mut self, shared: &Shared, now: Duration) {
        if !std::mem::take(&mut self.pending) {
            return;
        }
        if let Some(count) = self.refused.end(now) {
            tracing::info!("connections are taken again; {count} were refused");
        }
        if let Some(count) = self.failed.end(now) {
            tracing::info!("connections can be accepted again, after {count} failures");
        }
        for portal_index in 0..self.listeners.len() {
            for turn in 0..=ACCEPTS_PER_TURN {
                if turn == ACCEPTS_PER_TURN {
                    self.pending = true;
                    break;
                }
                match self.listeners[portal_index].accept() {
                    Ok((stream, peer)) => self.hand_out(shared, stream, portal_index, peer, now),
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

    fn hand_out(
        &mut self,
        shared: &Shared,
        stream: TcpStream,
        portal_index: usize,
        peer: SocketAddr,
        now: Duration,
    ) {
        let why = if shared.counters.wire().connections >= CONNECTIONS_MAX {
            Some(format!("{CONNECTIONS_MAX} are open"))
        } else if !shared.addresses.enter(peer.ip()) {
            Some(format!("{CONNECTIONS_PER_ADDRESS_MAX} of this address are open"))
        } else {
            None
        };
        if let Some(why) = why {
            if self.refused.note(now) {
                tracing::warn!("a connection of {peer} was refused: {why}");
            }
            return;
        }
        // Answers are sent as whole batches; waiting for more to send only adds latency.
        let prepared = stream.set_nodelay(true).and_then(|()| stream.local_addr());
        let Ok(local) = prepared else {
            return shared.addresses.leave(peer.ip()); // it was closed already
        };
        let thread = self.next_thread % shared.mailboxes.len();
        self.next_thread = thread + 1;
        shared.counters.wire_of(thread).connections.fetch_add(1, Ordering::Relaxed);
        let accepted = Accepted { stream, portal_index, local, peer };
        shared.mailboxes[thread].post(Message::Serve(Box::new(accepted)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_connections_and_others_have_theirs() {
        let addresses = Addresses::default();
        let of = |text: &str| text.parse::<IpAddr>().unwrap();
        for _ in 0..CONNECTIONS_PER_ADDRESS_MAX {
            assert!(addresses.enter(of("192.0.2.1")));
        }
        assert!(!addresses.enter(of("::ffff:192.0.2.1")) && addresses.enter(of("192.0.2.2")));
        addresses.leave(of("192.0.2.1"));
        assert!(addresses.enter(of("192.0.2.1")));
        for _ in 0..CONNECTIONS_PER_ADDRESS_MAX {
            addresses.leave(of("192.0.2.1"));
        }
        addresses.leave(of("192.0.2.2"));
        assert!(addresses.0.lock().is_empty());
    }

    #[test]
    fn refusals_are_told_once_an_episode() {
        let mut episode = Episode::default();
        let at = Duration::from_secs;
        assert_eq!(episode.end(at(0)), None);
        assert!(episode.note(at(1)));
        assert!(
            (2..100).all(|second| !episode.note(at(second)) && episode.end(at(second)).is_none())
        );
        assert_eq!((episode.end(at(158)), episode.end(at(159))), (None, Some(99)));
        assert_eq!(episode.end(at(1000)), None);
        assert!(episode.note(at(1001)));
    }
}
