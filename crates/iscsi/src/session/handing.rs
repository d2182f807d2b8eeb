//! What of a session goes on with its connection in another process.

use std::sync::atomic::Ordering;

use super::Session;
use crate::event::ConnectionId;

impl Session {
    /// The window does not open any more, so that its initiator comes to an end with what it sends.
    /// False if the session has had more than one connection: that stays as it is.
    pub(crate) fn freeze(&self) -> bool {
        let is_single = !self.has_further.load(Ordering::Acquire);
        self.is_frozen.fetch_or(is_single, Ordering::AcqRel);
        is_single
    }

    /// The window, in commands.
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// The name within the session of one of its connections.
    pub(crate) fn cid_of(&self, connection: ConnectionId) -> Option<u16> {
        let state = self.state.lock();
        state.members.iter().find(|member| member.id == connection).map(|member| member.cid)
    }
}
