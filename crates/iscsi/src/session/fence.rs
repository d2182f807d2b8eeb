//! The response fence of a session with several connections (RFC 7143, 4.2.2.3.2 and 4.2.3.3): the
//! answer to a request that ends many tasks is sent when the initiator has got all that was sent to
//! it before, over the other connections as well. It says so by ExpStatSN, which tells nothing of
//! R2T and of data without a status, or by the answer to a ping, for which it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::event::ConnectionId;
use crate::session::{Session, before};

/// What was sent over a connection, and what its initiator has got of it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// How many PDUs were sent.
    sent: AtomicU32,
    /// How many of them it has got for certain.
    got: AtomicU32,
    /// The connection is none of its session any more.
    is_gone: AtomicBool,
    /// Somebody waits for its initiator to say what it has got.
    is_asked: AtomicBool,
}

impl Progress {
    /// One more PDU is sent. Returns how many that are.
    pub(crate) fn send(&self) -> u32 {
        // Only the thread of the connection does.
        let sent = self.sent.load(Ordering::Relaxed).wrapping_add(1);
        self.sent.store(sent, Ordering::Release);
        sent
    }

    /// How many were sent.
    pub(crate) fn sent(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// It has got so many of them, if not more.
    pub(crate) fn got(&self, count: u32) {
        if before(self.got.load(Ordering::Relaxed), count) {
            self.got.store(count, Ordering::Release);
        }
    }

    pub(crate) fn gone(&self) {
        self.is_gone.store(true, Ordering::Release);
    }

    /// Whether its initiator has to be asked. Each request to do so is returned once.
    pub(crate) fn take_asked(&self) -> bool {
        self.is_asked.load(Ordering::Acquire) && self.is_asked.swap(false, Ordering::AcqRel)
    }
}

/// What an answer waits for.
#[derive(Debug, Default)]
pub(crate) struct Fence(Vec<(Arc<Progress>, u32)>);

impl Fence {
    /// Adds all that was sent over a connection. Returns whether its initiator has to be asked.
    pub(crate) fn add(&mut self, progress: &Arc<Progress>) -> bool {
        let sent = progress.sent.load(Ordering::Acquire);
        let waits = before(progress.got.load(Ordering::Acquire), sent);
        if waits {
            progress.is_asked.store(true, Ordering::Release);
            self.0.push((progress.clone(), sent));
        }
        waits
    }

    /// Whether nothing has to be waited for any more.
    pub(crate) fn is_open(&self) -> bool {
        self.0.iter().all(|(progress, sent)| {
            progress.is_gone.load(Ordering::Acquire)
                || !before(progress.got.load(Ordering::Acquire), *sent)
        })
    }
}

impl Session {
    /// Whether all requests before an immediate one with this number were received, over whichever
    /// connection; else its connection is woken when they are.
    pub(crate) fn is_complete_before(&self, number: u32, connection: ConnectionId) -> bool {
        if !self.has_further.load(Ordering::Acquire) {
            return true; // they have come before it
        }
        let mut state = self.state.lock();
        let waits = before(self.expected(), number);
        if waits && !state.behind.contains(&(number, connection)) {
            state.behind.push((number, connection));
        }
        !waits
    }

    /// The place in the order of tasks of an immediate request with this number: tasks with greater
    /// ones come after it ([`Turn::is_before`]).
    pub(crate) fn order_of(&self, number: u32) -> u64 {
        let state = self.state.lock();
        state.tasks.order_of(self.expected().wrapping_sub(number))
    }

    /// An answer waits until all is acknowledged that was sent over other connections than its own;
    /// `None` if it is. Adds those to `wake` that have to ask for that.
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

    /// A connection has no answers any more that wait for others.
    pub(crate) fn unfence(&self, of: ConnectionId) {
        let mut state = self.state.lock();
        state.fenced.retain(|fenced| *fenced != of);
        self.note_connections(&state);
    }

    /// Something was acknowledged: adds the connections to `wake` whose answers may wait for that.
    pub(crate) fn wake_fenced(&self, wake: &mut Vec<ConnectionId>) {
        if self.fences.load(Ordering::Acquire) > 0 {
            wake.extend(&self.state.lock().fenced);
        }
    }
}
