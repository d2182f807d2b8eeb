//! What the threads of a serving process share.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use front::transport::iscsi::{self, Iscsi};
use front::{PortOptions, Wake};
use mio::net::TcpStream;
use mio::{Poll, Waker};
use parking_lot::Mutex;
use sys::Clock;
use sys::attendant::Bell;
use sys::wall::now_ms;

use super::background::Shutdown;
use super::controllers::fence::Lease;
use super::controllers::{Leaving, Link};
use super::listen::{Accepted, ConnectionLimits, Neighbours};
use super::observer::Troubles;
use super::runner::WAKER;
use super::stream::Stream;
use super::watchdog::Turns;
use super::{Duties, ServeOptions};

/// What all threads share.
pub(super) struct Shared {
    pub front: Arc<front::Shared>,
    pub duties: Arc<dyn Duties>,
    pub clock: Clock,
    pub shutdown: Shutdown,
    pub addresses: Neighbours,
    pub connections: ConnectionLimits,
    pub troubles: Troubles,
    pub checkpoint_bell: Arc<Bell>,
    pub saver_bell: Arc<Bell>,
    pub medium: segments::Shared,
    /// The pollers, until their threads take them.
    pub polls: Mutex<Vec<Option<Poll>>>,
    /// Accepted connections, by the thread that will serve them.
    pub accepted: Vec<Mutex<Vec<Accepted>>>,
    /// Connections to hand over to the other controller, once the threads have ended.
    pub leaving: Mutex<Vec<Leaving>>,
    pub turns: Turns,
    /// All ports of the array: its own, then those of the other controller.
    pub ports: Vec<PortOptions>,
    /// The link to the other controller, if there are two.
    pub link: Option<Arc<Link>>,
    /// The lease, if there is one: without it nothing is received from hosts or sent to them.
    pub lease: Option<Arc<Lease>>,
}

impl Shared {
    /// Creates the shared state. `own`: the addresses of its portals.
    pub(super) fn new(options: &ServeOptions, own: &[SocketAddr]) -> io::Result<Arc<Self>> {
        let count = super::thread_count(options.threads);
        let mut wakers: Vec<Box<dyn Wake>> = Vec::new();
        let mut polls = Vec::new();
        for _ in 0..count {
            let poll = Poll::new()?;
            wakers.push(Box::new(PollWaker(Waker::new(poll.registry(), WAKER)?)));
            polls.push(Some(poll));
        }
        let (checkpoint_bell, saver_bell) = (Arc::<Bell>::default(), Arc::<Bell>::default());
        let clock = Clock::start();
        let bound = options.portals.iter().zip(own);
        let mut ports: Vec<PortOptions> =
            bound.map(|(port, address)| PortOptions { address: *address, ..*port }).collect();
        ports.extend(options.pair.iter().flat_map(|pair| &pair.portals));
        let incarnation = options.store.incarnation().number;
        let link = options.pair.as_ref().map(|pair| Link::new(pair, own.len(), incarnation));
        let transports = Arc::new(Iscsi::new(iscsi::Options {
            target_name: options.identity.target_name.clone(),
            target_alias: options.target_alias.clone(),
            ports: ports.clone(),
            access: options.access.clone(),
            limits: options.limits.clone(),
        }));
        let front = front::Shared::new(front::Options {
            store: options.store.clone(),
            tokens: super::tokens::volume(options)?,
            identity: options.identity.clone(),
            ports: ports.clone(),
            transports,
            luns: options.luns.clone(),
            clock: Arc::new(SystemClock(clock)),
            wakers,
            saver: Box::new(Ring(saver_bell.clone())),
            maintenance: Box::new(Ring(checkpoint_bell.clone())),
        });
        Ok(Arc::new(Self {
            shutdown: Shutdown::new(front.mailboxes.clone()),
            front,
            duties: options.duties.clone(),
            clock,
            addresses: Neighbours::default(),
            connections: options.connections,
            troubles: Troubles::default(),
            checkpoint_bell,
            saver_bell,
            medium: options.medium.clone(),
            polls: Mutex::new(polls),
            accepted: (0..count).map(|_| Mutex::default()).collect(),
            leaving: Mutex::default(),
            turns: Turns::new(count, clock.now()),
            ports,
            link,
            lease: options.lease.clone(),
        }))
    }
}

impl Shared {
    /// Returns the stream of a connection that arrived at the port with this index, if it should be
    /// served.
    pub(super) fn stream(&self, port: usize, stream: TcpStream) -> Option<Stream> {
        match &self.link {
            Some(link) => link.stream(port, stream),
            None => Some(Stream::Host(stream)),
        }
    }
}

/// Wakes a thread out of its poller.
struct PollWaker(Waker);

impl Wake for PollWaker {
    fn wake(&self) {
        // It writes eight bytes to an eventfd; a thread that can't be woken is fatal.
        self.0.wake().unwrap_or_else(|error| panic!("can't wake a front-end thread: {error}"));
    }
}

/// Rings a bell.
struct Ring(Arc<Bell>);

impl Wake for Ring {
    fn wake(&self) {
        self.0.ring();
    }
}

/// The clocks of the machine.
struct SystemClock(Clock);

impl front::Clock for SystemClock {
    fn now(&self) -> std::time::Duration {
        self.0.now()
    }

    fn wall_ms(&self) -> u64 {
        now_ms()
    }
}
