//! COMPARE AND WRITE commands that hosts send again because they have lost the answer: the store
//! knows them again (`store::comparisons`), and this says who sends each of them, and which answers
//! have come to their initiators.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use block::VolumeRequest;
use block::request::Sender;

use super::counters::Class;
use super::front_end::FrontEnd;

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

    /// A number that no other command has.
    fn next_command(&self) -> u64 {
        self.commands.fetch_add(1, Ordering::Relaxed)
    }

    fn at_ms(&self, time: Duration) -> u64 {
        let since_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.zero_ms.saturating_add(since_ms)
    }
}

impl FrontEnd {
    /// Says who sends the request of a COMPARE AND WRITE. Other commands that compare (ORWRITE)
    /// repeat their requests by themselves.
    pub(super) fn name_sender(&mut self, index: usize, request: &mut VolumeRequest) {
        let VolumeRequest::CompareAndWrite { sender, .. } = request else { return };
        let Some(task) = self.tasks.get_mut(index) else { return };
        if task.class != Class::CompareAndWrite {
            return;
        }
        let peer = self.peers[task.connection].as_ref();
        let peer = peer.filter(|peer| peer.id == task.handle.connection);
        let Some(session) = peer.and_then(|peer| peer.session.as_ref()) else { return };
        let senders = &self.shared.senders;
        let command = senders.next_command();
        task.sent_as = Some(command);
        *sender = Some(Box::new(Sender {
            nexus: session.nexus_name.clone(),
            session: session.info.session.0,
            command,
            at_ms: senders.at_ms(task.started),
        }));
    }
}
