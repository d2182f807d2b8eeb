//! COMPARE AND WRITE commands that hosts send again because they have lost the answer: the store
//! knows them again (`store::comparisons`), and this says who sends each of them, and which answers
//! have come to their initiators.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use block::request::Sender;

use super::sessions::Session;

/// What tells commands apart, and their time.
pub(super) struct Senders {
    /// When the clock of the front end was at zero, in milliseconds since 1970. People set clocks,
    /// and back: so this is looked at once.
    zero_ms: u64,
    commands: AtomicU64,
}

impl Senders {
    pub(super) fn new(zero_ms: u64) -> Self {
        Self { zero_ms, commands: AtomicU64::new(0) }
    }

    /// Who sends a command that has come at `time` over a session. No other has its number.
    pub(super) fn next(&self, session: &Session, time: Duration) -> Sender {
        Sender {
            nexus: session.nexus_name.clone(),
            session: session.info.session.0,
            command: self.commands.fetch_add(1, Ordering::Relaxed),
            at_ms: self.at_ms(time),
        }
    }

    fn at_ms(&self, time: Duration) -> u64 {
        let since_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.zero_ms.saturating_add(since_ms)
    }
}
