//! The response fence of a session with several connections (RFC 7143, 4.2.2.3.2 and 4.2.3.3): the
//! response to a request that aborts several tasks is sent when the initiator has received
//! everything sent to it before, including on other connections. The initiator acknowledges by
//! ExpStatSN, which does not cover R2Ts and data without a status, or by the response to a ping
//! that the target sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::event::ConnectionId;
use crate::session::{Session, before};

/// The output of a connection, and what its initiator has received of it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The number of PDUs sent.
    sent: AtomicU32,
    /// The number of them that were received for certain.
    got: AtomicU32,
    /// The connection has left its session.
    is_gone: AtomicBool,
    /// Another connection waits for acknowledgement by its initiator.
    is_asked: AtomicBool,
}

impl Progress {
    /// Counts a PDU to be sent. Returns the number of PDUs.
    pub(crate) fn send(&self) -> u32 {
        // Only the connection's own thread writes it.
        let sent = self.sent.load(Ordering::Relaxed).wrapping_add(1);
        self.sent.store(sent, Ordering::Release);
        sent
    }

    /// Returns the number of PDUs sent.
    pub(crate) fn sent(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Notes that at least this many were received.
    pub(crate) fn got(&self, count: u32) {
        if before(self.got.load(Ordering::Relaxed), count) {
            self.got.store(count, Ordering::Release);
        }
    }

    pub(crate) fn gone(&self) {
        self.is_gone.store(true, Ordering::Release);
    }

    /// Returns whether to ping its initiator. Each request is returned once.
    pub(crate) fn take_asked(&self) -> bool {
        self.is_asked.load(Ordering::Acquire) && self.is_asked.swap(false, Ordering::AcqRel)
    }
}

/// What a response waits for.
#[derive(Debug, Default)]
pub(crate) struct Fence(Vec<(Arc<Progress>, u32)>);

impl Fence {
    /// Adds everything sent on a connection. Returns whether its initiator must be pinged.
    pub(crate) fn add(&mut self, progress: &Arc<Progress>) -> bool {
        let sent = progress.sent.load(Ordering::Acquire);
        let waits = before(progress.got.load(Ordering::Acquire), sent);
        if waits {
            progress.is_asked.store(true, Ordering::Release);
            self.0.push((progress.clone(), sent));
        }
        waits
    }

    /// Returns whether nothing is left to wait for.
    pub(crate) fn is_open(&self) -> bool {
        self.0.iter().all(|(progress, sent)| {
            progress.is_gone.load(Ordering::Acquire)
                || !before(progress.got.load(Ordering::Acquire), *sent)
        })
    }
}

impl Session {
    /// Returns whether all requests before an immediate one with this number were received, on
    /// whichever connection; otherwise its connection is woken when they are.
    pub(crate) fn is_complete_before(&self, number: u32, connection: ConnectionId) -> bool {
        if !self.has_further.load(Ordering::Acquire) {
            return true; // they have arrived before it
        }
        let mut state = self.state.lock();
        let waits = before(self.expected(), number);
        if waits && !state.behind.contains(&(number, connection)) {
            state.behind.push((number, connection));
        }
        !waits
    }

    /// Returns the place of an immediate request with this number in the order of tasks: tasks with
    /// greater ones come after it ([`Turn::is_before`]).
    pub(crate) fn order_of(&self, number: u32) -> u64 {
        let state = self.state.lock();
        state.tasks.order_of(self.expected().wrapping_sub(number))
    }

    /// Makes a response wait until everything sent on other connections is acknowledged; `None` if
    /// it is. Adds to `wake` the connections that must ping their initiators.
    pub(crate) fn fence(&self, of: ConnectionId, wake: &mut Vec<ConnectionId>) -> Option<Fence> {
        if self.connections.load(Ordering::Acquire) < 2 {
            return None;
        }
        let mut fence = Fence::default();
        let mut state = self.state.lock();
        for member in state.members.iter().filter(|member| member.id != of) {
            if fence.add(&member.progress) {
                wake.push(member.id);
            }
        }
        let waits = !fence.is_open();
        if waits && !state.fenced.contains(&of) {
            state.fenced.push(of);
            self.note_connections(&state);
        }
        waits.then_some(fence)
    }

    /// Notes that a connection has no more responses that wait for others.
    pub(crate) fn unfence(&self, of: ConnectionId) {
        let mut state = self.state.lock();
        state.fenced.retain(|fenced| *fenced != of);
        self.note_connections(&state);
    }

    /// Adds to `wake` the connections whose responses may wait for what was just acknowledged.
    pub(crate) fn wake_fenced(&self, wake: &mut Vec<ConnectionId>) {
        if self.fences.load(Ordering::Acquire) > 0 {
            wake.extend(&self.state.lock().fenced);
        }
    }
}
