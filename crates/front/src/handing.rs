//! Connections that go on in another process, which takes the pool over as planned: what goes there
//! with each socket.

use std::sync::Arc;

use target::Untold;

use super::command_set::CommandSet;
use super::sessions::Session;
use super::shared::Shared;
use super::transport;

/// A connection that a front end has let go of, and that goes on in another process.
pub struct Handed {
    /// What its protocol knows of it.
    pub connection: transport::Handed,
    session: Arc<Session>,
}

impl Handed {
    pub(super) fn new(connection: transport::Handed, session: Arc<Session>) -> Self {
        Self { connection, session }
    }

    /// What its host has still to be told, once all front ends have ended: till then commands may
    /// add to that.
    pub fn untold(&self, shared: &Shared) -> Untold {
        shared.scsi.hand_over(&self.session.nexus)
    }
}

impl Shared {
    /// From the next end of front ends on connections go on in another process, where they can
    /// ([`crate::Wires::hand_over`]).
    pub fn hand_over_at_the_end(&self) {
        self.hands_over.store(true, std::sync::atomic::Ordering::Release);
    }

    /// These connections of another process go on here, with what their hosts are to be told. To be
    /// told before anything is served. Returns those that can.
    pub fn expect(
        &self,
        handed: Vec<(transport::Handed, Untold)>,
    ) -> Vec<Option<transport::Handed>> {
        let connections: Vec<_> = handed.iter().map(|(connection, _)| connection).collect();
        self.transports.expect(&connections);
        let expected = handed.into_iter().map(|(connection, untold)| {
            CommandSet::expect(&self.scsi, &connection, &untold).then_some(connection)
        });
        expected.collect()
    }
}
