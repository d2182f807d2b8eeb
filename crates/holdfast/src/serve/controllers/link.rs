//! The owner's end of the link: it says that it is there, hears whether the other controller is,
//! and serves connections that have come in there as its own.
//!
//! A link without a break is a *generation*. Connections name theirs. Once nothing was heard for
//! [`SILENCE_MAX`] a generation is over for good, and nothing more is received on its connections:
//! the other controller may have been stopped, with commands in its sockets that hosts have
//! repeated elsewhere since.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use front::PortOptions;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::Clock;
use sys::wall::now_ms;
use target::AccessState;

use super::super::listen::Door;
use super::super::shared::Shared;
use super::super::stream::Stream;
use super::handing::{self, Handed, HandedOver};
use super::wire::{Purpose, Welcome, read_line};
use super::{BEAT, Controller, Meeting, SILENCE_MAX};

/// The other end says what a connection is for as soon as it has made it.
const LINE_WITHIN: Duration = Duration::from_secs(1);
/// Connections that wait to be accepted: one for each session of hosts, which all come at once.
const BACKLOG: i32 = 1024;
/// How often the threads of the link look whether it has ended.
const LOOK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What the owner has to know of the two controllers.
pub struct Pair {
    /// Which one it is.
    pub own: Controller,
    /// Where they meet.
    pub meeting: Meeting,
    /// Where hosts come in at the other controller.
    pub portals: Vec<PortOptions>,
    /// Whether hosts are told that they reach volumes there as well as here.
    pub is_symmetric: bool,
    /// Set once the pool is to be left to the other one.
    pub gives_way: Arc<AtomicBool>,
}

/// What is known of the other controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its process.
    pub pid: u32,
    /// The version of its program.
    pub version: String,
    /// Since when it has been there without a break, in milliseconds since 1970.
    pub since_ms: u64,
}

/// A link without a break.
#[derive(Debug)]
pub(in crate::serve) struct Generation {
    number: u64,
    clock: Clock,
    /// When, in milliseconds of the clock, something is heard too late.
    until_ms: AtomicU64,
    has_ended: AtomicBool,
}

impl Generation {
    pub(super) fn new(number: u64, clock: Clock) -> Arc<Self> {
        let until_ms = (clock.now_ms() + ms(SILENCE_MAX)).into();
        Arc::new(Self { number, clock, until_ms, has_ended: AtomicBool::new(false) })
    }

    /// One that nothing needs to be heard of.
    pub(super) fn lasting(clock: Clock) -> Arc<Self> {
        let until_ms = u64::MAX.into();
        Arc::new(Self { number: 0, clock, until_ms, has_ended: AtomicBool::new(false) })
    }

    /// Whether what comes over it may be taken.
    pub(in crate::serve) fn is_alive(&self) -> bool {
        !self.has_ended.load(Ordering::Acquire)
            && self.clock.now_ms() <= self.until_ms.load(Ordering::Acquire)
    }

    /// The other end is alive. Too late once it was silent.
    pub(super) fn hear(&self) {
        if self.is_alive() {
            self.until_ms.store(self.clock.now_ms() + ms(SILENCE_MAX), Ordering::Release);
        }
    }

    /// As if so much time had passed.
    #[cfg(test)]
    pub(super) fn let_be_silent(&self) {
        // The time of a clock that has just begun is 0, which is not past it.
        while self.clock.now_ms() == 0 {}
        self.until_ms.store(0, Ordering::Release);
    }

    fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The link, as the owner sees it.
pub(in crate::serve) struct Link {
    own: Controller,
    ports: Vec<PortOptions>,
    /// The place of the first of them among all of the array's ports.
    first_port: usize,
    linked: AccessState,
    incarnation: u64,
    numbers: AtomicU64,
    current: Mutex<Option<(Arc<Generation>, Other)>>,
    /// Where the other controller takes connections over, in this generation.
    successor: Mutex<Option<(u64, UnixStream)>>,
    /// Connections that the other controller has handed over, and that came in at its ports: they
    /// last as long as it does.
    guests: Mutex<Option<Arc<Generation>>>,
    has_ended: AtomicBool,
}

impl Link {
    /// That of an array with so many ports of its own.
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
        })
    }

    /// What is known of the other controller, if it is there.
    pub(in crate::serve) fn other(&self) -> Option<Other> {
        self.current.lock().as_ref().map(|(_, other)| other.clone())
    }

    /// The name of the other controller.
    pub(in crate::serve) fn other_name(&self) -> &'static str {
        self.own.other().name()
    }

    /// Whether the other controller is there, and takes connections over.
    pub(in crate::serve) fn has_successor(&self) -> bool {
        let generation = self.successor.lock().as_ref().map(|(generation, _)| *generation);
        generation.is_some_and(|generation| self.alive(generation).is_some())
    }

    /// Leaves connections to the other controller, if it takes them.
    pub(in crate::serve) fn hand_over(&self, shared: &Shared) {
        let leaving = std::mem::take(&mut *shared.leaving.lock());
        let successor = self.successor.lock().take();
        let Some((_, stream)) = successor.filter(|_| !leaving.is_empty()) else { return };
        match handing::send(&stream, leaving, shared) {
            Ok(count) => tracing::info!("{count} connections go on at {}", self.other_name()),
            Err(error) => tracing::warn!("hosts are to log in again: {error}"),
        }
    }

    /// Connections that the other controller has handed over go on here.
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

    /// The connections that the other controller has handed over last no longer.
    pub(in crate::serve) fn end_guests(&self) {
        if let Some(guests) = self.guests.lock().take() {
            guests.end();
        }
    }

    /// Tells hosts how they reach volumes by the ports of the other controller.
    fn tell_hosts(&self, shared: &Shared, state: AccessState) {
        let mut groups: Vec<u16> = self.ports.iter().map(|port| port.group).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            shared.front.scsi.set_implicit_access(group, state);
        }
    }

    /// The other controller is there: a new generation begins, and the one before ends.
    fn begin(&self, shared: &Shared, other: Other) -> Arc<Generation> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let generation = Generation::new(number, shared.clock);
        if let Some((before, _)) = self.current.lock().replace((generation.clone(), other)) {
            before.end();
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

    /// The generation with this number, if it goes on.
    fn alive(&self, number: u64) -> Option<Arc<Generation>> {
        let current = self.current.lock();
        let (generation, _) = current.as_ref()?;
        (generation.number == number && generation.is_alive()).then(|| generation.clone())
    }

    /// The place of a portal of the other controller among all ports.
    fn port_at(&self, portal: SocketAddr) -> Option<usize> {
        let at = self.ports.iter().position(|port| port.address == portal)?;
        Some(self.first_port + at)
    }
}

/// The threads that listen on the link, until this is dropped.
pub(in crate::serve) struct Listening {
    link: Arc<Link>,
    meeting: Meeting,
    /// The socket that the thread waits at.
    listener: UnixListener,
    thread: Option<JoinHandle<()>>,
}

/// Starts to listen: whoever has the claim takes the place of a socket that is there.
pub(in crate::serve) fn start(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    meeting: &Meeting,
) -> io::Result<Listening> {
    match std::fs::remove_file(&meeting.socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // What was handed over is served.
    let has_guests = link.guests.lock().is_some();
    link.tell_hosts(shared, if has_guests { link.linked } else { AccessState::Unavailable });
    let listener = UnixListener::bind(&meeting.socket)?;
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    let (shared, listened, own) = (shared.clone(), link.clone(), listener.try_clone()?);
    let builder = thread::Builder::new().name("link".into());
    let thread = Some(builder.spawn(move || listen(&own, &shared, &listened))?);
    Ok(Listening { link: link.clone(), meeting: meeting.clone(), listener, thread })
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.link.has_ended.store(true, Ordering::Release);
        if let Err(error) = std::fs::remove_file(&self.meeting.socket) {
            tracing::warn!("can't remove {}: {error}", self.meeting.socket.display());
        }
        // Wakes the thread, for which the next owner waits.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // It can't have panicked: that ends the process.
            let _ = thread.join();
        }
    }
}

fn listen(listener: &UnixListener, shared: &Arc<Shared>, link: &Arc<Link>) {
    let mut door = Door::default();
    while !link.has_ended.load(Ordering::Acquire) {
        let mut waits = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
        // Whatever it says, the listener is looked at.
        let _ = poll(&mut waits, Some(&LOOK_INTERVAL));
        while let Ok((stream, _)) = listener.accept() {
            if let Err(error) = meet(stream, shared, link, &mut door) {
                tracing::warn!("a connection of the other controller is of no use: {error}");
            }
        }
    }
}

/// Does what a new connection is for.
fn meet(
    mut stream: UnixStream,
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    door: &mut Door,
) -> io::Result<()> {
    stream.set_read_timeout(Some(LINE_WITHIN))?;
    let line = read_line(&mut stream)?;
    let unknown = || io::Error::other(format!("{line:?} is not of this version"));
    match Purpose::of_line(&line).ok_or_else(unknown)? {
        Purpose::Control { controller, .. } if controller == link.own => {
            Err(io::Error::other(format!("two processes are {}", controller.name())))
        }
        Purpose::Control { pid, version, .. } => {
            let other = Other { pid, version, since_ms: now_ms() };
            let (shared, link) = (shared.clone(), link.clone());
            let builder = thread::Builder::new().name("link-control".into());
            builder.spawn(move || control(stream, other, &shared, &link)).map(drop)
        }
        Purpose::Successor { generation } => {
            stream.set_read_timeout(None)?;
            *link.successor.lock() = Some((generation, stream));
            Ok(())
        }
        Purpose::Host { generation, portal, local, peer } => {
            let unknown = || io::Error::other(format!("{portal} is no portal of its own"));
            let port = link.port_at(portal).ok_or_else(unknown)?;
            // One that comes too late is closed, as is what it names.
            let Some(generation) = link.alive(generation) else { return Ok(()) };
            stream.set_nonblocking(true)?;
            let stream = Stream::of_link(stream, generation);
            door.hand_out(shared, stream, port, (local, peer), shared.clock.now());
            Ok(())
        }
    }
}

/// Listens to the other controller until it says nothing more.
fn control(mut stream: UnixStream, other: Other, shared: &Arc<Shared>, link: &Arc<Link>) {
    let generation = link.begin(shared, other);
    let name = link.other_name();
    tracing::info!("controller {name} is there");
    let why = match talk(&mut stream, link, &generation) {
        Ok(()) => return link.end(shared, &generation),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => "it has ended".to_owned(),
        Err(error) => error.to_string(),
    };
    link.end(shared, &generation);
    tracing::warn!("controller {name} is not there any more: {why}");
}

/// Says and hears beats. Returns without an error at the end of this controller.
fn talk(stream: &mut UnixStream, link: &Link, generation: &Generation) -> io::Result<()> {
    stream.set_read_timeout(Some(BEAT))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let welcome = Welcome { generation: generation.number, incarnation: link.incarnation };
    stream.write_all(welcome.to_line().as_bytes())?;
    let mut said = Instant::now();
    while !link.has_ended.load(Ordering::Acquire) {
        let mut beats = [0; 64];
        match stream.read(&mut beats) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => generation.hear(),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
        if !generation.is_alive() {
            let silence = SILENCE_MAX.as_secs();
            return Err(io::Error::other(format!("nothing was heard of it for {silence} s")));
        }
        if said.elapsed() >= BEAT {
            said = Instant::now();
            stream.write_all(b".")?;
        }
    }
    Ok(())
}
