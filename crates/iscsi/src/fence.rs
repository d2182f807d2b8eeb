//! The response fence of a session with several connections (RFC 7143, 4.2.2.3.2 and 4.2.3.3): the
//! answer to a request that ends many tasks is sent when the initiator has got all that was sent to
//! it before, over the other connections as well. Each PDU of an initiator says what it has got over
//! its connection; where that is not all, it is asked for one by a ping.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::session::before;

/// What was sent over a connection, and what its initiator has got of it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The StatSN that comes next.
    next: AtomicU32,
    /// ExpStatSN, as it came last.
    expected: AtomicU32,
    /// The connection is none of its session any more.
    is_gone: AtomicBool,
    /// Somebody waits for its initiator to say what it has got.
    is_asked: AtomicBool,
}

impl Progress {
    pub(crate) fn sent(&self, next: u32) {
        self.next.store(next, Ordering::Release);
    }

    pub(crate) fn got(&self, expected: u32) {
        self.expected.store(expected, Ordering::Release);
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
        let next = progress.next.load(Ordering::Acquire);
        let waits = before(progress.expected.load(Ordering::Acquire), next);
        if waits {
            progress.is_asked.store(true, Ordering::Release);
            self.0.push((progress.clone(), next));
        }
        waits
    }

    /// Whether nothing has to be waited for any more.
    pub(crate) fn is_open(&self) -> bool {
        self.0.iter().all(|(progress, next)| {
            progress.is_gone.load(Ordering::Acquire)
                || !before(progress.expected.load(Ordering::Acquire), *next)
        })
    }
}
