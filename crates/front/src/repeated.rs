//! COMPARE AND WRITE commands that hosts send again because the response was lost. The store
//! recognises them (`store::comparisons`); this module identifies the sender of each, and tracks
//! which responses have reached their initiators.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use block::request::Sender;

use super::sessions::Session;

/// Assigns numbers and times to commands.
pub(super) struct Senders {
    /// The time of the front end's clock zero, in milliseconds since 1970. Read once, because the
    /// system clock may be set back.
    zero_ms: u64,
    commands: AtomicU64,
}

impl Senders {
    pub(super) fn new(zero_ms: u64) -> Self {
        Self { zero_ms, commands: AtomicU64::new(0) }
    }

    /// Returns the sender of a command that arrived at `time` in a session, with a unique number.
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
