//! A connection's bytes: into the machine, and out of it.

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

/// Reads of one connection in a turn, so that one that sends fast does not starve the others.
const READS_PER_TURN: usize = 1;
/// Sends of one connection in a turn, for the same reason.
const SENDS_PER_TURN: usize = 4;
/// The most that is given to one send: about what a socket's buffer takes.
const SEND_BYTES_MAX: usize = 1 << 20;

/// What belongs to a LUN of a connection.
pub(super) struct PeerPath {
    pub lun: [u8; 8],
    pub counters: Arc<PathCounters>,
    /// Of a volume that has limits.
    pub gates: Gates,
}

/// A connection and what the thread keeps with it.
pub(super) struct Peer {
    pub id: ConnectionId,
    pub connection: Box<dyn Transport>,
    /// Whether the socket may have bytes: the poller tells only when that changes.
    pub readable: bool,
    /// Whether the socket may take bytes.
    pub writable: bool,
    /// Whether the other end was seen to close: then a short read does not mean "empty".
    pub read_closed: bool,
    /// Whether nothing is received because the machine has too much to send.
    pub blocked: bool,
    /// Whether the socket is lost.
    pub lost: bool,
    /// Whether it stands in the list of those to be read.
    pub in_ready: bool,
    /// Whether it stands in the list of those to be looked at before the turn ends.
    pub in_touched: bool,
    /// Whether a long read is under way.
    pub gathers: bool,
    /// The session, from when it may send commands.
    pub session: Option<Arc<Session>>,
    /// A session that has to wait until the one before it has ended wholly.
    pub held: Option<Arc<NexusInfo>>,
    /// What the initiator sees, and the generation that this is of.
    pub luns: Option<(u64, Arc<LunMap>)>,
    /// What belongs to a LUN, of that generation.
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

    /// Whether there is something to do in another turn that the poller does not know of.
    pub(super) fn has_more(&self) -> bool {
        let connection = &self.connection;
        let sends = self.writable && !self.lost && connection.has_output();
        sends || connection.has_input() || connection.has_events() && self.held.is_none()
    }

    /// Receives some of what there is. Returns whether there may be more for another turn.
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

    /// Whether something was received.
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
                // A stream that gave less than there was room for is empty; the poller tells when
                // that changes (epoll(7), on the edge-triggered mode).
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

    /// Sends what the socket takes.
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

    /// Whether what kept it from receiving is gone, and there may be something to receive. As long
    /// as it is not, the thread need not look: whoever takes output, or gives memory back, has it
    /// looked at again.
    pub(super) fn is_let_go(&mut self) -> bool {
        let is_let_go = self.blocked && !self.connection.is_output_full();
        self.blocked &= !is_let_go;
        // One that is to be closed takes nothing more, and only sends what is left.
        is_let_go && self.readable && !self.connection.is_closed()
    }

    /// Whether it has ended: to be taken out.
    pub(super) fn is_over(&self) -> bool {
        self.lost || (self.connection.is_closed() && !self.connection.has_output())
    }
}
