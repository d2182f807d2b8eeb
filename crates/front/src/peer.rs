//! A connection's input and output.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use block::LunMap;

use super::counters::{PathCounters, WireCounters};
use super::sessions::Session;
use super::throttle::Gates;
use super::transport::{ConnectionId, NexusInfo, Slices, SlicesMut, Transport};
use super::wires::Wires;

/// Receives per connection and turn, so that a fast sender does not starve others.
const READS_PER_TURN: usize = 1;
/// Sends per connection and turn, for the same reason.
const SENDS_PER_TURN: usize = 4;
/// The most bytes of one send: about the size of a socket's buffer.
const SEND_BYTES_MAX: usize = 1 << 20;

/// A connection's state for a LUN.
pub(super) struct PeerPath {
    pub lun: [u8; 8],
    pub counters: Arc<PathCounters>,
    /// The gates of a volume with limits.
    pub gates: Gates,
}

/// A connection and the thread's state for it.
pub(super) struct Peer {
    pub id: ConnectionId,
    pub connection: Box<dyn Transport>,
    /// Whether the socket may be readable: the poller reports only changes.
    pub readable: bool,
    /// Whether the socket may be writable.
    pub writable: bool,
    /// Whether the peer was seen to close: then a short read does not mean that the socket is
    /// empty.
    pub read_closed: bool,
    /// Whether receiving is suspended because the machine has too much output.
    pub blocked: bool,
    /// Whether the socket is lost.
    pub lost: bool,
    /// Whether it is in the list of connections to read.
    pub in_ready: bool,
    /// Whether it is in the list of connections to process before the turn ends.
    pub in_touched: bool,
    /// Whether a long read is in progress.
    pub gathers: bool,
    /// The session, once it may send commands.
    pub session: Option<Arc<Session>>,
    /// A session that waits for the end of the previous one.
    pub held: Option<Arc<NexusInfo>>,
    /// The initiator's LUN map, with its generation.
    pub luns: Option<(u64, Arc<LunMap>)>,
    /// The state of LUNs, of that generation.
    pub paths: Vec<PeerPath>,
}

impl Peer {
    pub(super) fn new(connection: Box<dyn Transport>) -> Self {
        Self {
            id: connection.id(),
            connection,
            readable: true,
            writable: true,
            read_closed: false,
            blocked: false,
            lost: false,
            in_ready: false,
            in_touched: false,
            gathers: false,
            session: None,
            held: None,
            luns: None,
            paths: Vec::new(),
        }
    }

    /// Returns whether there is work for another turn that the poller does not know of.
    pub(super) fn has_more(&self) -> bool {
        let connection = &self.connection;
        let sends = self.writable && !self.lost && connection.has_output();
        sends || connection.has_input() || connection.has_events() && self.held.is_none()
    }

    /// Receives some data. Returns whether there may be more for another turn.
    pub(super) fn receive(
        &mut self,
        wires: &mut dyn Wires,
        slot: usize,
        now: Duration,
        wire: &WireCounters,
    ) -> bool {
        if self.connection.has_input() {
            self.connection.set_time(now);
            self.connection.go_on();
            return true;
        }
        for _ in 0..READS_PER_TURN {
            if !self.readable || self.lost {
                return false;
            }
            if !self.receive_once(wires, slot, now, wire) {
                return false;
            }
        }
        self.readable
    }

    /// Returns whether something was received.
    fn receive_once(
        &mut self,
        wires: &mut dyn Wires,
        slot: usize,
        now: Duration,
        wire: &WireCounters,
    ) -> bool {
        let mut slices = SlicesMut::new();
        self.connection.receive_slices(&mut slices);
        if slices.is_empty() {
            self.blocked = true;
            return false;
        }
        let room: usize = slices.iter().map(|slice| slice.len()).sum();
        match wires.receive(slot, &mut slices) {
            Ok(0) => self.lost = true,
            Ok(bytes) => {
                drop(slices);
                wire.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                // A short read means that the socket is empty; the poller reports when that changes
                // (epoll(7), on edge-triggered mode).
                if bytes < room && !self.read_closed {
                    self.readable = false;
                }
                self.connection.received(bytes, now);
                return true;
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => self.readable = false,
                io::ErrorKind::Interrupted => return true,
                _ => self.lost = true,
            },
        }
        false
    }

    /// Sends as much as the socket accepts.
    pub(super) fn transmit(&mut self, wires: &mut dyn Wires, slot: usize, wire: &WireCounters) {
        for _ in 0..SENDS_PER_TURN {
            if !self.writable || self.lost || !self.connection.has_output() {
                return;
            }
            let mut slices = Slices::new();
            self.connection.transmit_slices(&mut slices, SEND_BYTES_MAX);
            let wanted: usize = slices.iter().map(|slice| slice.len()).sum();
            if wanted == 0 {
                return;
            }
            match wires.send(slot, &slices) {
                Ok(bytes) => {
                    drop(slices);
                    wire.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                    self.connection.transmitted(bytes);
                    self.writable = bytes == wanted;
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => self.writable = false,
                    io::ErrorKind::Interrupted => {}
                    _ => self.lost = true,
                },
            }
        }
    }

    /// Returns whether the reason for suspending input is gone, and there may be input. Until then
    /// the thread need not check: sending output and returning memory both trigger another check.
    pub(super) fn is_let_go(&mut self) -> bool {
        let is_let_go = self.blocked && !self.connection.is_output_full();
        self.blocked &= !is_let_go;
        // A closing connection receives nothing more, and only sends the rest of its output.
        is_let_go && self.readable && !self.connection.is_closed()
    }

    /// Returns whether it has ended and must be removed.
    pub(super) fn is_over(&self) -> bool {
        self.lost || (self.connection.is_closed() && !self.connection.has_output())
    }
}
