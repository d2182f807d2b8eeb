//! Addresses that move between two machines: the owner takes the other controller's addresses when
//! that controller is gone, and gives them back when it is present again, so that hosts that know
//! only one address continue (RFC 0015).
//!
//! * [`plan`]: the rules that keep an address from being at both machines,
//! * [`keeper`]: applies them,
//! * [`kernel`]: the kernel interface.
//!
//! Invariants:
//! 1. An address is at one machine at a time, unless one of them was stopped: then for as long as
//!    its kernel keeps it, 4 s at most. Correctness never depends on it: a controller without the
//!    pool never answers a host itself, whatever it receives.
//! 2. An address is given back only when nothing more is received from connections that arrived at
//!    it: hosts repeat unanswered commands at the other machine.
//! 3. The owner grants the other controller its addresses only while it certainly does not have
//!    them.

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

/// The interval for checking what is to be done.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Beats of the other controller are numbered below this, cyclically.
const BEATS: u8 = 0x80;
/// The owner's answer when it grants nothing.
pub(super) const DOT: u8 = b'.';

/// An address that may be at either machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moving {
    /// The address, used by portals of either controller.
    pub address: IpAddr,
    /// The interface that gets it, on this machine.
    pub interface: String,
    /// Whether it belongs to portals of this controller.
    pub is_own: bool,
}

/// Called when the owner has taken addresses of the other controller, and when it gives them back.
pub(super) type WhenMoved = Box<dyn Fn(bool) + Send>;

/// The state shared by the thread and the link.
struct Inside {
    moving: Vec<Moving>,
    plan: Mutex<Plan>,
    /// The lease to answer hosts, if the pool's devices are fenced.
    lease: Mutex<Option<Arc<Lease>>>,
    /// The other controller's link, as seen by the owner.
    other: Mutex<Option<Arc<Generation>>>,
    /// The generation of connections at addresses of the other controller, while these are here.
    guests: Mutex<Option<Arc<Generation>>>,
    when_moved: Mutex<Option<WhenMoved>>,
    /// Whether certainly no address of the other controller is here.
    has_none: AtomicBool,
    clock: Clock,
    has_ended: AtomicBool,
}

/// The addresses, which are renewed until this is dropped; then the kernel removes them.
pub struct Addresses(Arc<Inside>);

impl Addresses {
    /// Starts the thread. No addresses are here yet.
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
            // An earlier process may have left some.
            has_none: AtomicBool::new(false),
            clock: Clock::start(),
            has_ended: AtomicBool::new(false),
        });
        let kept = inside.clone();
        let builder = thread::Builder::new().name("addresses".into());
        builder.spawn(move || kept.keep(kernel))?;
        Ok(Arc::new(Self(inside)))
    }

    /// Returns whether a portal's address may be at the other machine.
    pub fn may_move(&self, address: IpAddr) -> bool {
        self.0.moving.iter().any(|moving| moving.address == address)
    }

    /// Stops renewing them.
    pub(super) fn end(&self) {
        self.0.has_ended.store(true, Ordering::Release);
    }

    /// Notes that there is an owner, which this controller follows.
    pub(super) fn follow(&self) {
        self.0.plan.lock().follow();
    }

    /// Notes that the owner has answered a beat sent at this time, and grants this controller its
    /// addresses.
    pub(super) fn grant(&self, sent_ms: u64) {
        self.0.plan.lock().grant(sent_ms);
    }

    /// Notes that this controller has the pool from now on.
    pub(super) fn own(&self, lease: Option<Arc<Lease>>, when_moved: WhenMoved) {
        *self.0.lease.lock() = lease;
        *self.0.when_moved.lock() = Some(when_moved);
        self.0.plan.lock().own(now_ms());
    }

    /// Notes that the owner has a link to the other controller.
    pub(super) fn meet(&self, other: Arc<Generation>) {
        *self.0.other.lock() = Some(other);
        self.hear();
    }

    /// Notes that the owner has received a beat of the other controller.
    pub(super) fn hear(&self) {
        self.0.plan.lock().hear(now_ms());
    }

    /// Returns the owner's answer to a beat.
    pub(super) fn answer(&self, beat: u8) -> u8 {
        answer_of(beat, self.0.has_none.load(Ordering::Acquire))
    }

    /// Returns the generation for connections that arrive at an address of the other controller;
    /// `None` while that address is not here.
    pub(super) fn guests(&self) -> Option<Arc<Generation>> {
        self.0.guests.lock().clone()
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the owner's answer to a beat: a grant is the beat with a mark.
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
                tracing::info!("addresses are renewed again, after {count} failures");
            }
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Handles addresses that are added, or are about to be given back.
    fn note(&self, moved: Moved) {
        match moved {
            Moved::Came(at) => self.tell(at, "is here now"),
            Moved::Gone(at) => self.tell(at, "is no longer here"),
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

/// The beats of a controller that forwards, with the time when each was sent.
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
    /// Returns the next beat, which is about to be sent.
    pub(super) fn next(&mut self, now_ms: u64) -> u8 {
        let beat = self.next;
        self.sent_ms[usize::from(beat)] = now_ms;
        self.next = (beat + 1) % BEATS;
        beat
    }

    /// Returns when the beat was sent that the owner has answered with a grant, if it is one.
    pub(super) fn granted(&self, answer: u8) -> Option<u64> {
        let sent_ms = self.sent_ms.get(usize::from(answer.checked_sub(BEATS)?))?;
        Some(*sent_ms).filter(|sent_ms| *sent_ms > 0)
    }
}

/// Listens at an address that may now be at the other machine.
///
/// # Errors
/// The kernel's error.
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
