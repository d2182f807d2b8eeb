//! Answers of callers that block.

use std::collections::HashMap;
use std::time::Duration;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};
use crate::{Outcome, Sink, SinkId, Token};

/// The thread that has the writer's role answers; this only bounds a race with it.
const PATIENCE: Duration = Duration::from_millis(5);

/// The sink of callers that block.
#[derive(Default)]
pub(crate) struct Waiters {
    outcomes: Mutex<HashMap<u64, Outcome>>,
    arrived: Condvar,
    next: AtomicU64,
}

pub(crate) const WAITERS: SinkId = SinkId(0);

impl Sink for Waiters {
    fn complete(&self, id: u64, outcome: Outcome) {
        self.outcomes.lock().insert(id, outcome);
        self.arrived.notify_all();
    }

    fn commit_wanted(&self) {
        self.arrived.notify_all();
    }
}

impl Waiters {
    /// Returns a token for another request.
    pub(crate) fn token(&self) -> Token {
        Token { sink: WAITERS, id: self.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// Returns the outcome of a request, if it has ended.
    pub(crate) fn take(&self, token: Token) -> Option<Outcome> {
        self.outcomes.lock().remove(&token.id)
    }

    /// Waits briefly for the end of a request, unless it has ended, or no other thread works on it.
    pub(crate) fn wait_for(&self, token: Token, others_work: impl FnOnce() -> bool) {
        let mut outcomes = self.outcomes.lock();
        if !outcomes.contains_key(&token.id) && others_work() {
            self.arrived.wait_for(&mut outcomes, PATIENCE);
        }
    }
}
