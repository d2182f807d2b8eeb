//! A thread of an array.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use front::{FrontEnd, Wires, transport};

use super::super::channel::Way;
use super::super::network::{Link, Network};
use super::super::sockets::Socket;
use super::{Flag, opening};
use crate::rng::Rng;

/// One front end, and what a thread has in addition.
pub(super) struct Thread {
    pub(super) front: FrontEnd,
    pub(super) way: Rc<Way>,
    pub(super) woken: Flag,
    pub(super) sockets: Vec<Option<Socket>>,
    pub(super) accepted: Vec<(Link, u16, Option<transport::Handed>)>,
    /// When its next turn is due if nothing happens.
    pub(super) due: Duration,
}

impl Thread {
    pub(super) fn open_accepted(&mut self, now: Duration, rng: &mut Rng) {
        for (link, port, handed) in std::mem::take(&mut self.accepted) {
            let socket = Socket { link, drained: Cell::new(true), clogged: Cell::new(false) };
            let slot = match self.sockets.iter().position(Option::is_none) {
                Some(slot) => slot,
                None => {
                    self.sockets.push(None);
                    self.sockets.len() - 1
                }
            };
            self.sockets[slot] = Some(socket);
            let opening = opening(link, port, now, rng);
            match handed {
                None => self.front.open(slot, opening),
                Some(handed) => {
                    let goes_on = self.front.go_on_with(slot, opening, handed);
                    assert!(goes_on, "no session was reinstated in the meantime");
                }
            }
        }
    }

    pub(super) fn turn(&mut self, now: Duration, wires: &mut dyn Wires) {
        let found = self.way.take_signal();
        let woken = self.woken.take();
        self.front.looked(now, found || woken);
        self.front.turn(woken, now, wires);
        self.due = now + self.front.sleep_time();
    }

    /// Notifies the front end as a poller would.
    pub(super) fn note(&mut self, network: &Network, now: Duration) {
        for (slot, socket) in self.sockets.iter().enumerate() {
            let Some(socket) = socket else { continue };
            if socket.is_readable(network, now) {
                socket.drained.set(false);
                self.front.readable(slot, false);
            }
            if socket.is_writable(network) {
                socket.clogged.set(false);
                self.front.writable(slot);
            }
        }
    }
}
