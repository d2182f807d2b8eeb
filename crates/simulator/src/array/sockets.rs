//! The array's end of connections, as front ends and their pollers see it.

use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::time::Duration;

use front::{Handed, Wires};

use super::network::{Link, Network, Side};

/// A connection at the array's end, with the edge-triggered state of a poller.
pub(super) struct Socket {
    pub(super) link: Link,
    /// Whether everything that has arrived was read: then the poller signals when more arrives.
    pub(super) drained: Cell<bool>,
    /// Whether not everything was accepted: then the poller signals when there is room.
    pub(super) clogged: Cell<bool>,
}

impl Socket {
    pub(super) fn is_readable(&self, network: &Network, now: Duration) -> bool {
        self.drained.get() && network.is_readable(self.link, Side::Array, now)
    }

    pub(super) fn is_writable(&self, network: &Network) -> bool {
        let link = self.link;
        let goes_on = network.room(link, Side::Array) > 0 || network.is_broken(link, Side::Array);
        self.clogged.get() && goes_on
    }

    pub(super) fn has_event(&self, network: &Network, now: Duration) -> bool {
        self.is_readable(network, now) || self.is_writable(network)
    }
}

/// The connections of a front end during a turn.
pub(super) struct Sockets<'a> {
    pub(super) network: &'a mut Network,
    pub(super) sockets: &'a mut Vec<Option<Socket>>,
    /// Connections that continue at the next controller.
    pub(super) leaving: &'a mut Vec<(Link, Handed)>,
    pub(super) now: Duration,
}

impl Sockets<'_> {
    fn of(&self, slot: usize) -> io::Result<&Socket> {
        let socket = self.sockets.get(slot).and_then(Option::as_ref);
        socket.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Wires for Sockets<'_> {
    fn receive(&mut self, slot: usize, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let link = self.of(slot)?.link;
        let mut total = 0;
        for slice in into.iter_mut() {
            let mut filled = 0;
            while filled < slice.len() {
                match self.network.receive(link, Side::Array, &mut slice[filled..], self.now) {
                    // The end is reported by a receive that returns nothing else.
                    Some(0) if total + filled > 0 => return Ok(total + filled),
                    Some(0) => return Ok(0),
                    Some(bytes) => filled += bytes,
                    None => {
                        self.of(slot)?.drained.set(true);
                        return match total + filled {
                            0 => Err(io::ErrorKind::WouldBlock.into()),
                            bytes => Ok(bytes),
                        };
                    }
                }
            }
            total += filled;
        }
        Ok(total)
    }

    fn send(&mut self, slot: usize, from: &[IoSlice<'_>]) -> io::Result<usize> {
        let link = self.of(slot)?.link;
        if self.network.is_broken(link, Side::Array) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut total = 0;
        for slice in from {
            let taken = self.network.send(link, Side::Array, slice, self.now);
            total += taken;
            if taken < slice.len() {
                self.of(slot)?.clogged.set(true);
                break;
            }
        }
        if total == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(total) }
    }

    fn hand_over(&mut self, slot: usize, handed: Handed) {
        if let Some(socket) = self.sockets.get_mut(slot).and_then(Option::take) {
            self.leaving.push((socket.link, handed));
        }
    }

    fn close(&mut self, slot: usize) {
        if let Some(socket) = self.sockets.get_mut(slot).and_then(Option::take) {
            self.network.close(socket.link, Side::Array, self.now);
        }
    }
}
