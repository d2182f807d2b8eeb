//! Addresses that two machines have in turn: the owner takes those of the other controller when
//! that is gone, and gives them back when it is there again, so that hosts that know one address
//! only go on (RFC 0015).
//!
//! * [`plan`]: the rules by which no address is at both machines,
//! * [`keeper`]: putting them in force,
//! * [`kernel`]: what the kernel is asked to do.
//!
//! Invariants:
//! 1. An address is at one machine at a time, unless one of both was stopped: then for as long as
//!    the kernel of that one keeps it, 4 s at most. What hosts may be told never depends on it: who
//!    does not have the pool answers nothing by itself, whatever it is sent.
//! 2. An address is given back only when nothing is received any more from connections that have
//!    come in there: hosts repeat at the other machine what was not answered.
//! 3. The owner grants the other one its addresses only while it is certain not to have them.

mod keeper;
mod kernel;
mod plan;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use front::episode::Episode;
use parking_lot::Mutex;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use sys::Clock;

use super::BACKLOG;
use super::fence::{Lease, now_ms};
use super::link::Generation;
use keeper::{Keeper, Moved};
use kernel::Netlink;
use plan::{Plan, Whose};

/// How often it is looked what is to be done.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// A beat of the other controller is a number below this, in turn.
const BEATS: u8 = 0x80;
/// What the owner says where it grants nothing.
pub(super) const DOT: u8 = b'.';

/// An address that may be at either machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moving {
    /// The address, of portals of one of both controllers.
    pub address: IpAddr,
    /// The interface that gets it, at this machine.
    pub interface: String,
    /// Whether the portals are this controller's.
    pub is_own: bool,
}

/// What is done when the owner has taken addresses of the other controller, or gives them back.
pub(super) type WhenMoved = Box<dyn Fn(bool) + Send>;

/// What the thread and the link share.
struct Inside {
    moving: Vec<Moving>,
    plan: Mutex<Plan>,
    /// Until when this process may answer hosts, where the pool is fenced by its devices.
    lease: Mutex<Option<Arc<Lease>>>,
    /// The other controller, as its owner hears of it.
    other: Mutex<Option<Arc<Generation>>>,
    /// Connections that came in at addresses of the other one, as long as these are here.
    guests: Mutex<Option<Arc<Generation>>>,
    when_moved: Mutex<Option<WhenMoved>>,
    /// Whether no address of the other one can be here.
    has_none: AtomicBool,
    clock: Clock,
    has_ended: AtomicBool,
}

/// The addresses, which are kept until this is dropped; then the kernel takes them away.
pub struct Addresses(Arc<Inside>);

impl Addresses {
    /// Begins to keep them: none are here yet.
    ///
    /// # Errors
    /// If an interface does not exist, or this process may not change addresses.
    pub fn start(moving: Vec<Moving>) -> io::Result<Arc<Self>> {
        let kernel = Netlink::open(&moving)?;
        let inside = Arc::new(Inside {
            moving,
            plan: Mutex::default(),
            lease: Mutex::default(),
            other: Mutex::default(),
            guests: Mutex::default(),
            when_moved: Mutex::default(),
            // A process before may have left some.
            has_none: AtomicBool::new(false),
            clock: Clock::start(),
            has_ended: AtomicBool::new(false),
        });
        let kept = inside.clone();
        let builder = thread::Builder::new().name("addresses".into());
        builder.spawn(move || kept.keep(kernel))?;
        Ok(Arc::new(Self(inside)))
    }

    /// Whether a portal's address may be at the other machine.
    pub fn may_move(&self, address: IpAddr) -> bool {
        self.0.moving.iter().any(|moving| moving.address == address)
    }

    /// They are not renewed any more.
    pub(super) fn end(&self) {
        self.0.has_ended.store(true, Ordering::Release);
    }

    /// There is an owner, which this controller follows.
    pub(super) fn follow(&self) {
        self.0.plan.lock().follow();
    }

    /// The owner leaves this controller its addresses: it has answered a beat that was sent then.
    pub(super) fn grant(&self, sent_ms: u64) {
        self.0.plan.lock().grant(sent_ms);
    }

    /// This controller has the pool from now on.
    pub(super) fn own(&self, lease: Option<Arc<Lease>>, when_moved: WhenMoved) {
        *self.0.lease.lock() = lease;
        *self.0.when_moved.lock() = Some(when_moved);
        self.0.plan.lock().own(now_ms());
    }

    /// The owner has a link to the other controller.
    pub(super) fn meet(&self, other: Arc<Generation>) {
        *self.0.other.lock() = Some(other);
        self.hear();
    }

    /// The owner has heard a beat of the other controller.
    pub(super) fn hear(&self) {
        self.0.plan.lock().hear(now_ms());
    }

    /// What the owner answers to a beat.
    pub(super) fn answer(&self, beat: u8) -> u8 {
        answer_of(beat, self.0.has_none.load(Ordering::Acquire))
    }

    /// Of which connections are that come in at an address of the other controller; `None` while
    /// that is not here.
    pub(super) fn guests(&self) -> Option<Arc<Generation>> {
        self.0.guests.lock().clone()
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the owner answers to a beat: a grant is the beat, marked.
fn answer_of(beat: u8, may_grant: bool) -> u8 {
    if beat < BEATS && may_grant { beat | BEATS } else { DOT }
}

impl Inside {
    fn keep(&self, kernel: Netlink) {
        let whose = |it: &Moving| if it.is_own { Whose::Own } else { Whose::Others };
        let all = self.moving.iter().map(whose).collect();
        let mut keeper = Keeper::new(kernel, all, now_ms());
        let mut failed = Episode::default();
        while !self.has_ended.load(Ordering::Acquire) {
            let may_serve = self.lease.lock().as_ref().is_none_or(|lease| lease.is_valid());
            let is_there = self.other.lock().as_ref().is_some_and(|other| other.is_alive());
            let plan = self.plan.lock().clone();
            let step = keeper.step(now_ms(), &plan, may_serve, is_there, |it| self.note(it));
            if let Err((at, error)) = step
                && failed.note(self.clock.now())
            {
                let Moving { address, interface, .. } = &self.moving[at];
                tracing::error!("the address {address} at {interface}: {error}");
            }
            self.has_none.store(keeper.has_none_of_other(now_ms()), Ordering::Release);
            if let Some(count) = failed.end(self.clock.now()) {
                tracing::info!("addresses are kept again, after {count} failures");
            }
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Addresses come, or are about to go.
    fn note(&self, moved: Moved) {
        match moved {
            Moved::Came(at) => self.tell(at, "is here now"),
            Moved::Gone(at) => self.tell(at, "is not here any more"),
            Moved::OthersCome => {
                *self.guests.lock() = Some(Generation::lasting(self.clock));
                self.call(true);
            }
            Moved::OthersGo => {
                if let Some(guests) = self.guests.lock().take() {
                    guests.end();
                }
                self.call(false);
            }
        }
    }

    fn tell(&self, at: usize, what: &str) {
        let Moving { address, interface, is_own } = &self.moving[at];
        let whose = if *is_own { "" } else { " of the other controller" };
        tracing::info!("the address {address}{whose} {what} ({interface})");
    }

    fn call(&self, have_come: bool) {
        if let Some(when_moved) = &*self.when_moved.lock() {
            when_moved(have_come);
        }
    }
}

/// The beats of a controller that forwards: when each was sent.
pub(super) struct Beats {
    sent_ms: [u64; BEATS as usize],
    next: u8,
}

impl Default for Beats {
    fn default() -> Self {
        Self { sent_ms: [0; BEATS as usize], next: 0 }
    }
}

impl Beats {
    /// The next one, which is about to be sent.
    pub(super) fn next(&mut self, now_ms: u64) -> u8 {
        let beat = self.next;
        self.sent_ms[usize::from(beat)] = now_ms;
        self.next = (beat + 1) % BEATS;
        beat
    }

    /// When the beat was sent that the owner has answered with a grant, if it is one.
    pub(super) fn granted(&self, answer: u8) -> Option<u64> {
        let sent_ms = self.sent_ms.get(usize::from(answer.checked_sub(BEATS)?))?;
        Some(*sent_ms).filter(|sent_ms| *sent_ms > 0)
    }
}

/// Listens at an address that may be at the other machine now.
///
/// # Errors
/// What the kernel says.
pub(in crate::serve) fn bind_absent(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket: OwnedFd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    match address {
        SocketAddr::V4(_) => sockopt::set_ip_freebind(&socket, true)?,
        SocketAddr::V6(_) => sockopt::set_ipv6_freebind(&socket, true)?,
    }
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}
