//! The forwarding end of the link: sockets of hosts, and a link connection for each of them. Bytes
//! are moved from one to the other; only the owner interprets them.
//!
//! Each thread has a poller, accepts connections from all portals, and serves those. One more
//! thread keeps the link: it sends and receives beats, and knows the generation. Without a link
//! nothing is accepted: hosts wait in the backlog of the portals until there is an owner.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use front::episode::Episode;
use mio::net::TcpListener as MioListener;
use mio::{Interest, Poll, Token, Waker};
use parking_lot::Mutex;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::super::listen::{self, ConnectionLimits};
use super::super::supervisor::{Kept, tell_alive, watchdog_limit};
use super::super::{ServeError, background};
use super::addresses::{Addresses, Beats};
use super::fence::now_ms;
use super::forward::{Forwarder, LISTENERS, Rest, WAKER};
use super::guests::Guests;
use super::handing::{self, Arrivals, HandedOver};
use super::wire::{Answer, Purpose, Version, Versions, Welcome, read_line};
use super::{BEAT, Claim, Controller, Meeting, SILENCE_MAX};

/// The interval for looking for an owner.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// The same for an owner on another machine.
const DIAL_INTERVAL: Duration = Duration::from_millis(50);

/// How to follow the owner.
pub struct FollowOptions {
    /// The controller that this process is.
    pub own: Controller,
    /// Where the two meet.
    pub meeting: Meeting,
    /// Its own portals.
    pub portals: Vec<SocketAddr>,
    /// Sockets that already listen there.
    pub kept: Kept,
    /// Limits on forwarded hosts.
    pub connections: ConnectionLimits,
    /// The number of threads.
    pub threads: usize,
    /// Addresses that move between both.
    pub addresses: Option<Arc<Addresses>>,
    /// Waits for the pool.
    pub turn: AwaitTurn,
}

/// Waits until the pool belongs to this controller. May wait forever, on its own thread. Calls its
/// argument once no other process comes first, if there is a link to the owner ([`Claim::wait`]).
pub type AwaitTurn = Box<dyn FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<Claim> + Send>;

/// How following ended.
pub enum Followed {
    /// The pool now belongs to this controller.
    Owner {
        /// The proof of that.
        claim: Claim,
        /// The sockets of its portals.
        kept: Kept,
        /// The incarnation in which the previous owner served, if this controller had a link to it
        /// until it ended.
        incarnation: Option<u64>,
        /// Connections of hosts that continue here.
        handed: Option<HandedOver>,
    },
    /// It was asked to end.
    Stopped,
}

/// The state that all threads share.
pub(super) struct Relay {
    pub(super) meeting: Meeting,
    own: Controller,
    pub(super) guests: Arc<Guests>,
    /// The generation of the link; 0 while there is none.
    pub(super) generation: AtomicU64,
    /// The version of the link in which connections of this generation begin.
    pub(super) version: AtomicU32,
    /// The incarnation announced by the last owner; 0 before.
    incarnation: AtomicU64,
    /// Whether this controller is the next owner. Before that it does not contact an owner, which
    /// would hand the pool over to it.
    has_turn: AtomicBool,
    /// What the owner has handed over: nothing is forwarded any more once it is present.
    arrivals: Mutex<Option<Arrivals>>,
    addresses: Option<Arc<Addresses>>,
    has_ended: AtomicBool,
    wakers: Vec<Waker>,
}

impl Relay {
    fn wake(&self) {
        for waker in &self.wakers {
            if let Err(error) = waker.wake() {
                panic!("can't wake a thread that forwards: {error}");
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    pub(super) fn has_all(&self) -> bool {
        self.arrivals.lock().is_some()
    }

    /// Takes connections over, in a thread that waits for them as long as this generation lasts.
    fn succeed(self: &Arc<Self>, generation: u64) -> io::Result<()> {
        if !self.meeting.is_of_one_machine() {
            return Ok(());
        }
        let mut stream = self.meeting.connect()?;
        let version = self.version.load(Ordering::Acquire);
        stream.write_all(Purpose::Successor { generation }.to_line(version).as_bytes())?;
        let relay = self.clone();
        let run = move || match handing::receive(&stream) {
            Ok(arrivals) => {
                *relay.arrivals.lock() = Some(arrivals);
                relay.wake();
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => tracing::warn!("connections can't be taken over: {error}"),
        };
        thread::Builder::new().name("successor".into()).spawn(run).map(drop)
    }

    /// Processes the owner's answers to beats.
    fn hear(&self, said: &Beats, answers: &[u8]) {
        let Some(addresses) = &self.addresses else { return };
        let granted = answers.iter().filter_map(|answer| said.granted(*answer));
        granted.for_each(|sent_ms| addresses.grant(sent_ms));
    }

    fn set_generation(&self, number: u64) {
        self.generation.store(number, Ordering::Release);
        self.wake();
    }
}

/// The reason why following ends.
enum Ending {
    Claimed(io::Result<Claim>),
    Signal,
}

/// Forwards to the owner until this controller is the owner, or is asked to end (SIGTERM, SIGINT).
/// `linked` is called once, when it forwards.
///
/// # Errors
/// [`ServeError::Listen`], [`ServeError::Start`].
pub fn follow(
    options: FollowOptions,
    linked: impl FnOnce() + Send + 'static,
) -> Result<Followed, ServeError> {
    let FollowOptions { own, meeting, portals, kept, connections, threads, addresses, turn } =
        options;
    background::note_signals().map_err(ServeError::Start)?;
    let bound = listen::bind(&portals, kept, addresses.as_deref())?;
    let (polls, wakers) = pollers(threads.max(1)).map_err(ServeError::Start)?;
    let relay = Arc::new(Relay {
        meeting,
        own,
        guests: Guests::new(connections),
        generation: AtomicU64::new(0),
        version: AtomicU32::new(Versions::OWN.newest),
        incarnation: AtomicU64::new(0),
        has_turn: AtomicBool::new(false),
        arrivals: Mutex::default(),
        addresses,
        has_ended: AtomicBool::new(false),
        wakers,
    });
    let (forwarders, link) = start(&relay, polls, &bound, linked).map_err(ServeError::Start)?;
    let ended = wait_for_end(turn, relay.clone()).map_err(ServeError::Start)?;
    relay.has_ended.store(true, Ordering::Release);
    relay.wake();
    // They can't have panicked: that ends the process.
    let _ = link.join();
    let rests = forwarders.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect();
    match ended {
        Ending::Signal => Ok(Followed::Stopped),
        Ending::Claimed(claim) => {
            let claim = claim.map_err(ServeError::Start)?;
            let incarnation = relay.incarnation.load(Ordering::Acquire);
            let kept = Kept::new(bound.into_iter().map(|(_, listener)| listener).collect());
            let handed = relay.arrivals.lock().take().map(|arrivals| arrivals.join(rests));
            let incarnation = Some(incarnation).filter(|it| *it > 0);
            Ok(Followed::Owner { claim, kept, incarnation, handed })
        }
    }
}

fn pollers(count: usize) -> io::Result<(Vec<Poll>, Vec<Waker>)> {
    let (mut polls, mut wakers) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let poll = Poll::new()?;
        wakers.push(Waker::new(poll.registry(), WAKER)?);
        polls.push(poll);
    }
    Ok((polls, wakers))
}

/// The threads that forward, and the one that keeps the link.
type Threads = (Vec<JoinHandle<Vec<Rest>>>, JoinHandle<()>);

/// Starts the threads that forward, and the one that keeps the link.
fn start(
    relay: &Arc<Relay>,
    polls: Vec<Poll>,
    bound: &[(SocketAddr, TcpListener)],
    linked: impl FnOnce() + Send + 'static,
) -> io::Result<Threads> {
    let mut threads = Vec::new();
    for (index, poll) in polls.into_iter().enumerate() {
        let mut listeners = Vec::new();
        for (at, (address, listener)) in bound.iter().enumerate() {
            let mut listener = MioListener::from_std(listener.try_clone()?);
            let token = Token(LISTENERS + at);
            poll.registry().register(&mut listener, token, Interest::READABLE)?;
            listeners.push((*address, listener));
        }
        let forwarder = Forwarder::new(relay.clone(), poll, listeners);
        let builder = thread::Builder::new().name(format!("relay-{index}"));
        threads.push(builder.spawn(move || forwarder.run())?);
    }
    let kept = relay.clone();
    let builder = thread::Builder::new().name("link".into());
    Ok((threads, builder.spawn(move || keep_link(&kept, linked))?))
}

/// Waits for the claim, and for signals.
fn wait_for_end(turn: AwaitTurn, relay: Arc<Relay>) -> io::Result<Ending> {
    let (sender, ends) = mpsc::channel();
    let claimed = sender.clone();
    // That thread ends with the process if it gets nothing.
    let has_turn = Box::new(move || relay.has_turn.store(true, Ordering::Release));
    thread::Builder::new()
        .name("claim".into())
        .spawn(move || drop(claimed.send(Ending::Claimed(turn(has_turn)))))?;
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
    let handle = signals.handle();
    let thread = thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            tracing::info!("signal {signal}: forwarding ends");
            // The receiver may be gone.
            let _ = sender.send(Ending::Signal);
        }
    })?;
    let end = ends.recv().map_err(io::Error::other)?;
    handle.close();
    // It can't have panicked: that ends the process.
    let _ = thread.join();
    Ok(end)
}

/// Keeps a link to the current owner.
fn keep_link(relay: &Arc<Relay>, linked: impl FnOnce()) {
    let mut linked = Some(linked);
    let (mut reported, mut alive) = (Episode::default(), Alive::default());
    let began = Instant::now();
    let is_here = relay.meeting.is_of_one_machine();
    let interval = if is_here { LOOK_INTERVAL } else { DIAL_INTERVAL };
    // Between two owners there is none, and one that ends may do so before a beat, which then
    // fails. For the network the tunnel reports errors itself.
    let is_usual = |kind| match kind {
        io::ErrorKind::NotFound
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => true,
        kind => !is_here && kind == io::ErrorKind::UnexpectedEof,
    };
    while !relay.has_ended() {
        if relay.has_turn.load(Ordering::Acquire)
            && !relay.has_all()
            && let Err(error) = link_once(relay, &mut linked, &mut alive)
            && !is_usual(error.kind())
            && reported.note(began.elapsed())
        {
            tracing::warn!("no link to the owner: {error}");
        }
        // The rest of connections that were handed over is not dropped.
        if !relay.has_all() {
            relay.set_generation(0);
        }
        alive.say();
        thread::sleep(interval);
    }
}

/// Greets the owner in the newest version of the link that both speak.
fn greet(relay: &Relay) -> io::Result<(UnixStream, Version, Welcome)> {
    let spoken = Versions::OWN;
    let mut version = spoken.newest;
    loop {
        let (stream, answer) = hail(relay, version)?;
        match answer {
            Answer::Welcome(welcome) => return Ok((stream, version, welcome)),
            Answer::Speaks(others) => match spoken.newest_of_both(others) {
                Some(newest) if newest < version => version = newest,
                _ => {
                    return Err(io::Error::other(format!(
                        "the owner speaks versions {others} of the link, and this program {spoken}"
                    )));
                }
            },
        }
    }
}

fn hail(relay: &Relay, spoken: Version) -> io::Result<(UnixStream, Answer)> {
    let mut stream = relay.meeting.connect()?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let hello = Purpose::Control { controller: relay.own, pid: std::process::id(), version };
    stream.write_all(hello.to_line(spoken).as_bytes())?;
    let line = read_line(&mut stream)?;
    let unknown = || io::Error::other(format!("the owner answers {line:?}"));
    Ok((stream, Answer::of_line(&line, spoken).ok_or_else(unknown)?))
}

/// Runs one generation, from its beginning to its end.
fn link_once(
    relay: &Arc<Relay>,
    linked: &mut Option<impl FnOnce()>,
    alive: &mut Alive,
) -> io::Result<()> {
    let (mut stream, version, welcome) = greet(relay)?;
    let Welcome { generation, incarnation } = welcome;
    relay.version.store(version, Ordering::Release);
    relay.incarnation.store(incarnation, Ordering::Release);
    relay.set_generation(generation);
    relay.succeed(generation)?;
    tracing::info!("{} forwards to the owner", relay.own.name());
    if let Some(linked) = linked.take() {
        linked();
    }
    stream.set_read_timeout(Some(BEAT))?;
    let (mut ran, mut heard) = (Instant::now(), Instant::now());
    let mut said = Beats::default();
    if let Some(addresses) = &relay.addresses {
        addresses.follow();
    }
    while !relay.has_ended() {
        // The other end measures the same time, and has not heard from this one.
        if ran.elapsed() > SILENCE_MAX {
            return Err(io::Error::other("this controller did not run for a while"));
        }
        ran = Instant::now();
        if heard.elapsed() > SILENCE_MAX {
            return Err(io::Error::other("nothing was heard from the owner for a while"));
        }
        stream.write_all(&[said.next(now_ms())])?;
        alive.say();
        let mut beats = [0; 64];
        match stream.read(&mut beats) {
            Ok(0) => return Ok(()),
            // As often as beats arrive, or the own beat is due.
            Ok(count) => {
                heard = Instant::now();
                relay.hear(&said, &beats[..count]);
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            },
        }
    }
    Ok(())
}

/// Reports to the supervisor, if requested, that this process is alive.
#[derive(Default)]
struct Alive {
    said: Option<Instant>,
}

impl Alive {
    fn say(&mut self) {
        let is_due = self.said.is_none_or(|said| said.elapsed() >= BEAT);
        if !is_due || watchdog_limit().is_none() {
            return;
        }
        self.said = Some(Instant::now());
        if let Err(error) = tell_alive() {
            tracing::debug!("can't report that the controller is alive: {error}");
        }
    }
}
