//! The owner's end of the link: it sends beats, listens for those of the other controller, and
//! serves connections that arrive over the link like its own.
//!
//! An uninterrupted link is a *generation*. Connections name theirs. Once nothing was heard for
//! [`SILENCE_MAX`] the generation has ended for good, and nothing more is received on its
//! connections: the other controller may have been stopped, with commands in its sockets that hosts
//! have since repeated elsewhere.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use front::PortOptions;
use mio::net::TcpStream;
use parking_lot::Mutex;
use sys::Clock;
use target::AccessState;

use super::super::ServeError;
use super::super::listen::Door;
use super::super::shared::Shared;
use super::super::stream::Stream;
use super::addresses::{self, Addresses};
use super::handing::{self, Handed, HandedOver};
use super::tunnel::prepare;
use super::wire::{Version, Welcome};
use super::{BEAT, Controller, Meeting, SILENCE_MAX};

/// What the owner must know of the two controllers.
pub struct Pair {
    /// The controller that this process is.
    pub own: Controller,
    /// Where they meet.
    pub meeting: Meeting,
    /// The portals of the other controller.
    pub portals: Vec<PortOptions>,
    /// Whether paths through the other controller are reported to hosts as equally good (symmetric
    /// access).
    pub is_symmetric: bool,
    /// Set once the pool is to be handed over to the other controller.
    pub gives_way: Arc<AtomicBool>,
    /// Addresses that move between both.
    pub addresses: Option<Arc<Addresses>>,
}

/// What is known of the other controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its process id.
    pub pid: u32,
    /// The version of its program.
    pub version: String,
    /// Since when it has been present without interruption, in milliseconds since 1970.
    pub since_ms: u64,
}

/// An uninterrupted link.
#[derive(Debug)]
pub(in crate::serve) struct Generation {
    number: u64,
    clock: Clock,
    /// The deadline for the next beat, in milliseconds of the clock.
    until_ms: AtomicU64,
    has_ended: AtomicBool,
}

impl Generation {
    pub(super) fn new(number: u64, clock: Clock) -> Arc<Self> {
        let until_ms = (clock.now_ms() + ms(SILENCE_MAX)).into();
        Arc::new(Self { number, clock, until_ms, has_ended: AtomicBool::new(false) })
    }

    /// Creates a generation that needs no beats.
    pub(super) fn lasting(clock: Clock) -> Arc<Self> {
        let until_ms = u64::MAX.into();
        Arc::new(Self { number: 0, clock, until_ms, has_ended: AtomicBool::new(false) })
    }

    /// Returns whether input over it may be accepted.
    pub(in crate::serve) fn is_alive(&self) -> bool {
        !self.has_ended.load(Ordering::Acquire)
            && self.clock.now_ms() <= self.until_ms.load(Ordering::Acquire)
    }

    /// Notes a beat of the other end. No effect after the deadline.
    pub(super) fn hear(&self) {
        if self.is_alive() {
            self.until_ms.store(self.clock.now_ms() + ms(SILENCE_MAX), Ordering::Release);
        }
    }

    /// Expires it, as if that much time had passed.
    #[cfg(test)]
    pub(super) fn let_be_silent(&self) {
        // A new clock reads 0, which would not be past the deadline.
        while self.clock.now_ms() == 0 {}
        self.until_ms.store(0, Ordering::Release);
    }

    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The link, as the owner sees it.
pub(in crate::serve) struct Link {
    pub(super) own: Controller,
    ports: Vec<PortOptions>,
    /// The index of the first of them among all of the array's ports.
    first_port: usize,
    pub(super) linked: AccessState,
    incarnation: u64,
    numbers: AtomicU64,
    current: Mutex<Option<(Arc<Generation>, Other)>>,
    /// The connection on which the other controller takes connections over, in this generation.
    pub(super) successor: Mutex<Option<(u64, UnixStream)>>,
    /// The generation of connections that the other controller has handed over and that arrived at
    /// its ports: they last as long as it is present.
    pub(super) guests: Mutex<Option<Arc<Generation>>>,
    pub(super) has_ended: AtomicBool,
    addresses: Option<Arc<Addresses>>,
}

impl Link {
    /// Creates the link of an array with this many ports of its own.
    pub(in crate::serve) fn new(pair: &Pair, own_ports: usize, incarnation: u64) -> Arc<Self> {
        let linked = match pair.is_symmetric {
            true => AccessState::ActiveOptimized,
            false => AccessState::ActiveNonOptimized,
        };
        Arc::new(Self {
            own: pair.own,
            ports: pair.portals.clone(),
            first_port: own_ports,
            linked,
            incarnation,
            numbers: AtomicU64::new(1),
            current: Mutex::default(),
            successor: Mutex::default(),
            guests: Mutex::default(),
            has_ended: AtomicBool::new(false),
            addresses: pair.addresses.clone(),
        })
    }

    /// Returns what is known of the other controller, if it is present.
    pub(in crate::serve) fn other(&self) -> Option<Other> {
        self.current.lock().as_ref().map(|(_, other)| other.clone())
    }

    /// Returns the name of the other controller.
    pub(in crate::serve) fn other_name(&self) -> &'static str {
        self.own.other().name()
    }

    /// Returns whether the other controller is present, and takes connections over.
    pub(in crate::serve) fn has_successor(&self) -> bool {
        let generation = self.successor.lock().as_ref().map(|(generation, _)| *generation);
        generation.is_some_and(|generation| self.alive(generation).is_some())
    }

    /// Hands connections over to the other controller, if it takes them.
    pub(in crate::serve) fn hand_over(&self, shared: &Shared) {
        let leaving = std::mem::take(&mut *shared.leaving.lock());
        let successor = self.successor.lock().take();
        let Some((_, stream)) = successor.filter(|_| !leaving.is_empty()) else { return };
        match handing::send(&stream, leaving, shared) {
            Ok(count) => tracing::info!("{count} connections continue at {}", self.other_name()),
            Err(error) => tracing::warn!("hosts are to log in again: {error}"),
        }
    }

    /// Continues connections that the other controller has handed over.
    pub(in crate::serve) fn take_on(&self, shared: &Shared, handed: HandedOver) {
        let guests = Generation::lasting(shared.clock);
        *self.guests.lock() = Some(guests.clone());
        let own = Generation::lasting(shared.clock);
        let mut door = Door::default();
        let (mut ends, mut known) = (Vec::new(), Vec::new());
        for Handed { connection, untold, stream, before, local, peer } in handed.all {
            ends.push((stream, before, (local, peer)));
            known.push((connection, untold));
        }
        let expected = shared.front.expect(known).into_iter().zip(ends);
        for (connection, (stream, before, ends)) in expected {
            let at = connection.as_ref().map(|connection| connection.portal_tag);
            let Some(at) = shared.ports.iter().position(|port| Some(port.id) == at) else {
                continue;
            };
            let generation = if at < self.first_port { &own } else { &guests };
            let stream = Stream::of_handed(stream, before, generation.clone());
            door.hand_on(shared, stream, at, ends, connection, shared.clock.now());
        }
    }

    /// Ends the connections that the other controller has handed over.
    pub(in crate::serve) fn end_guests(&self) {
        if let Some(guests) = self.guests.lock().take() {
            guests.end();
        }
    }

    /// Starts managing moving addresses.
    pub(super) fn keep_addresses(self: &Arc<Self>, shared: &Arc<Shared>) {
        let Some(addresses) = &self.addresses else { return };
        let (link, reported) = (self.clone(), shared.clone());
        let when_moved = Box::new(move |have_come| match have_come || link.other().is_some() {
            true => link.tell_hosts(&reported, link.linked),
            false => link.tell_hosts(&reported, AccessState::Unavailable),
        });
        addresses.own(shared.lease.clone(), when_moved);
    }

    /// Stops renewing moving addresses.
    pub(super) fn leave_addresses(&self) {
        if let Some(addresses) = &self.addresses {
            addresses.end();
        }
    }

    /// Listens at portals of the other controller whose addresses may move here.
    pub(super) fn listen_elsewhere(&self) -> Result<Vec<(usize, TcpListener)>, ServeError> {
        let Some(addresses) = &self.addresses else { return Ok(Vec::new()) };
        let may_come = |(_, port): &(usize, &PortOptions)| addresses.may_move(port.address.ip());
        let ports = self.ports.iter().enumerate().filter(may_come);
        let bound = ports.map(|(at, PortOptions { address, .. })| {
            let refused = |error| ServeError::Listen { address: *address, error };
            let listener = addresses::bind_absent(*address).map_err(refused)?;
            Ok((self.first_port + at, listener))
        });
        bound.collect()
    }

    /// Returns the stream of a connection that arrived at a port. At a port of the other controller
    /// it lasts as long as that address is here, and ends when its host acknowledges nothing,
    /// because the host may have continued elsewhere.
    pub(in crate::serve) fn stream(&self, port: usize, stream: TcpStream) -> Option<Stream> {
        if port < self.first_port {
            return Some(Stream::Host(stream));
        }
        let generation = self.addresses.as_ref()?.guests()?;
        prepare(&stream).ok()?;
        Some(Stream::of_handed(stream.into(), VecDeque::new(), generation))
    }

    /// Sets the access state that hosts see for the ports of the other controller.
    pub(super) fn tell_hosts(&self, shared: &Shared, state: AccessState) {
        let mut groups: Vec<u16> = self.ports.iter().map(|port| port.group).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            shared.front.scsi.set_implicit_access(group, state);
        }
    }

    /// Begins a new generation for the other controller, which ends the previous one.
    fn begin(&self, shared: &Shared, other: Other) -> Arc<Generation> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let generation = Generation::new(number, shared.clock);
        if let Some((before, _)) = self.current.lock().replace((generation.clone(), other)) {
            before.end();
        }
        if let Some(addresses) = &self.addresses {
            addresses.meet(generation.clone());
        }
        self.tell_hosts(shared, self.linked);
        generation
    }

    fn end(&self, shared: &Shared, generation: &Arc<Generation>) {
        generation.end();
        let mut current = self.current.lock();
        let is_current = |(it, _): &mut (Arc<Generation>, Other)| Arc::ptr_eq(it, generation);
        if current.take_if(is_current).is_some() {
            self.end_guests();
            self.tell_hosts(shared, AccessState::Unavailable);
        }
    }

    /// Returns the answer to a beat.
    fn answer(&self, beat: u8) -> u8 {
        let Some(addresses) = &self.addresses else { return addresses::DOT };
        addresses.hear();
        addresses.answer(beat)
    }

    /// Returns the generation with this number, if it has not ended.
    pub(super) fn alive(&self, number: u64) -> Option<Arc<Generation>> {
        let current = self.current.lock();
        let (generation, _) = current.as_ref()?;
        (generation.number == number && generation.is_alive()).then(|| generation.clone())
    }

    /// Returns the index of a portal of the other controller among all ports.
    pub(super) fn port_at(&self, portal: SocketAddr) -> Option<usize> {
        let at = self.ports.iter().position(|port| port.address == portal)?;
        Some(self.first_port + at)
    }
}

/// Serves the control connection of the other controller until it ends.
pub(super) fn control(
    mut stream: UnixStream,
    spoken: Version,
    other: Other,
    shared: &Arc<Shared>,
    link: &Arc<Link>,
) {
    let generation = link.begin(shared, other);
    let name = link.other_name();
    tracing::info!("controller {name} is present");
    let why = match talk(&mut stream, spoken, link, &generation) {
        Ok(()) => return link.end(shared, &generation),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => "it has ended".to_owned(),
        Err(error) => error.to_string(),
    };
    link.end(shared, &generation);
    tracing::warn!("controller {name} is gone: {why}");
}

/// Sends and receives beats. Returns without an error at the end of this controller.
fn talk(
    stream: &mut UnixStream,
    spoken: Version,
    link: &Link,
    generation: &Generation,
) -> io::Result<()> {
    stream.set_read_timeout(Some(BEAT))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let welcome = Welcome { generation: generation.number, incarnation: link.incarnation };
    stream.write_all(welcome.to_line(spoken).as_bytes())?;
    let (mut said, mut answer) = (Instant::now(), addresses::DOT);
    while !link.has_ended.load(Ordering::Acquire) {
        let mut beats = [0; 64];
        match stream.read(&mut beats) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                generation.hear();
                answer = link.answer(beats[count - 1]);
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
        if !generation.is_alive() {
            let silence = SILENCE_MAX.as_secs();
            return Err(io::Error::other(format!("nothing was heard from it for {silence} s")));
        }
        if said.elapsed() >= BEAT {
            said = Instant::now();
            stream.write_all(&[answer])?;
        }
    }
    Ok(())
}
