//! The part of a session that is handed over with its connection to another process.

use std::sync::atomic::Ordering;

use super::Session;
use crate::event::ConnectionId;

impl Session {
    /// Stops opening the window, so that the initiator soon stops sending. Returns false, without a
    /// change, if the session has had more than one connection.
    pub(crate) fn freeze(&self) -> bool {
        let is_single = !self.has_further.load(Ordering::Acquire);
        self.is_frozen.fetch_or(is_single, Ordering::AcqRel);
        is_single
    }

    /// Returns the window, in commands.
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// Returns the CID of one of its connections.
    pub(crate) fn cid_of(&self, connection: ConnectionId) -> Option<u16> {
        let state = self.state.lock();
        state.members.iter().find(|member| member.id == connection).map(|member| member.cid)
    }
}
