//! A thread that moves the bytes of sessions: its poller, and the sessions it was given.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token, Waker};
use parking_lot::Mutex;

use super::super::pipe::Spare;
use super::Trouble;
use super::session::{Session, Turn};

/// The interval for checking whether a session takes too long.
const TICK: Duration = Duration::from_millis(250);
/// Rounds of one session per turn, so that a fast sender does not starve others.
const ROUNDS_MAX: usize = 8;
const WAKER: Token = Token(0);
/// Each session has two tokens.
const SESSIONS: usize = 2;

/// New sessions of a thread.
pub(super) struct Inbox {
    new: Mutex<Vec<Session>>,
    has_ended: AtomicBool,
    waker: Waker,
}

impl Inbox {
    /// Adds a session.
    pub(super) fn put(&self, session: Session) {
        self.new.lock().push(session);
        self.wake();
    }

    /// Ends the thread, with all its sessions.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        self.waker.wake().unwrap_or_else(|error| panic!("can't wake the link: {error}"));
    }
}

/// Starts a thread.
pub(super) fn start(trouble: &Arc<Trouble>) -> io::Result<Arc<Inbox>> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    let (new, has_ended) = (Mutex::default(), AtomicBool::new(false));
    let inbox = Arc::new(Inbox { new, has_ended, waker });
    let carrier = Carrier {
        inbox: inbox.clone(),
        poll,
        trouble: trouble.clone(),
        sessions: Vec::new(),
        free: Vec::new(),
        ready: Vec::new(),
        spare: Spare::default(),
    };
    thread::Builder::new().name("link-bytes".into()).spawn(move || carrier.run())?;
    Ok(inbox)
}

struct Carrier {
    inbox: Arc<Inbox>,
    poll: Poll,
    trouble: Arc<Trouble>,
    sessions: Vec<Option<Box<Session>>>,
    free: Vec<usize>,
    /// Sessions with work to do.
    ready: Vec<usize>,
    spare: Spare,
}

impl Carrier {
    fn run(mut self) {
        let mut events = Events::with_capacity(256);
        let mut looked = Instant::now();
        while !self.inbox.has_ended.load(Ordering::Acquire) {
            let wait = if self.ready.is_empty() { TICK } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(wait)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("can't wait for the link: {error}"),
            }
            for event in events.iter().filter(|event| event.token() != WAKER) {
                self.note(event);
            }
            let new = std::mem::take(&mut *self.inbox.new.lock());
            new.into_iter().for_each(|session| self.add(session));
            self.work_off();
            if looked.elapsed() >= TICK {
                looked = Instant::now();
                self.look_at_the_clock(looked);
            }
        }
    }

    fn add(&mut self, session: Session) {
        let mut session = Box::new(session);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.sessions.push(None);
            self.sessions.len() - 1
        });
        let (registry, token) = (self.poll.registry(), SESSIONS + 2 * slot);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered =
            registry.register(&mut session.tcp.socket, Token(token), interest).and_then(|()| {
                registry.register(&mut session.local.socket, Token(token + 1), interest)
            });
        self.sessions[slot] = Some(session);
        match registered {
            Ok(()) => self.ready.push(slot),
            Err(error) => self.end(slot, Some(error)),
        }
    }

    fn note(&mut self, event: &mio::event::Event) {
        let at = event.token().0 - SESSIONS;
        let (slot, is_local) = (at / 2, at % 2 == 1);
        let Some(session) = self.sessions.get_mut(slot).and_then(Option::as_mut) else { return };
        let readable = event.is_readable() || event.is_read_closed() || event.is_error();
        let writable = event.is_writable() || event.is_error();
        let (reads, writes) = match is_local {
            true => (&mut session.local.is_readable, &mut session.local.is_writable),
            false => (&mut session.tcp.is_readable, &mut session.tcp.is_writable),
        };
        *reads |= readable;
        *writes |= writable;
        self.ready.push(slot);
    }

    fn work_off(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_unstable();
        ready.dedup();
        for slot in ready {
            self.pump(slot);
        }
    }

    fn pump(&mut self, slot: usize) {
        let Some(session) = self.sessions.get_mut(slot).and_then(Option::as_mut) else { return };
        let was_made = session.is_made();
        let mut turn = Ok(Turn::Moved);
        for _ in 0..ROUNDS_MAX {
            turn = session.pump(&mut self.spare);
            if !matches!(turn, Ok(Turn::Moved)) {
                break;
            }
        }
        if !was_made && session.is_made() {
            self.trouble.end();
        }
        match turn {
            Ok(Turn::Moved) => self.ready.push(slot),
            Ok(Turn::Waits) => {}
            Ok(Turn::Over) => self.end(slot, None),
            Err(error) => self.end(slot, Some(error)),
        }
    }

    fn look_at_the_clock(&mut self, now: Instant) {
        for slot in 0..self.sessions.len() {
            let Some(session) = &self.sessions[slot] else { continue };
            match session.look_at_the_clock(now) {
                Ok(Turn::Over) => self.end(slot, None),
                Ok(_) => {}
                Err(error) => self.end(slot, Some(error)),
            }
        }
    }

    fn end(&mut self, slot: usize, why: Option<io::Error>) {
        // Dropping the sockets also removes them from the poller.
        let Some(session) = self.sessions[slot].take() else { return };
        self.free.push(slot);
        if session.is_made() {
            tracing::trace!("a connection of the link is over: {why:?}");
            return;
        }
        let ended = || io::Error::other("the other end has closed the connection");
        self.trouble.note(&why.unwrap_or_else(ended));
    }
}
