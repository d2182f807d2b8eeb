//! The response fence of a session with several connections (RFC 7143, 4.2.2.3.2 and 4.2.3.3): the
//! answer to a request that ends many tasks is sent when the initiator has got all that was sent to
//! it before, over the other connections as well. It says so by ExpStatSN, which tells nothing of
//! R2T and of data without a status, or by the answer to a ping, for which it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::session::before;

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

    /// Whether its initiator is to be asked now, which is told once.
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
