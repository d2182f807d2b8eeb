//! The end of connections, and of a front end.

use std::time::Duration;

use super::FrontEnd;
use crate::wires::Wires;

/// How long the end waits for hosts to take their answers.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

impl FrontEnd {
    /// Ends with all connections, whatever is under way.
    pub fn close_all(&mut self, wires: &mut dyn Wires) {
        (0..self.peers.len()).for_each(|slot| self.close(slot, wires));
    }

    /// Closes a connection and aborts its tasks; its session ends if it was the last one.
    pub(super) fn close(&mut self, slot: usize, wires: &mut dyn Wires) {
        let Some(mut peer) = self.peers[slot].take() else { return };
        if let Some(why) = peer.connection.take_complaint() {
            let address = peer.connection.peer();
            let name = peer.connection.host_name().unwrap_or_default();
            tracing::warn!("the connection of {name} at {address} was closed: {why}");
        }
        wires.close(slot);
        self.places.remove(&peer.id);
        self.shared.places.lock().remove(&peer.id);
        self.connection_ended(peer.connection.end());
    }

    /// No new commands from here on.
    pub(super) fn stop(&mut self) {
        self.stop_at.get_or_insert(self.shared.clock.now() + STOP_TIMEOUT);
        self.lift_limits();
        self.channel.end_retries();
        for slot in 0..self.peers.len() {
            if let Some(peer) = self.peers[slot].as_mut() {
                peer.connection.request_logout();
                self.touch(slot);
            }
        }
    }

    /// Whether its end was asked for ([`super::Mailbox::stop`]): it takes no more connections.
    pub fn is_stopping(&self) -> bool {
        self.stop_at.is_some()
    }

    /// Whether its end was asked for, and all that was under way has ended.
    pub fn is_finished(&self) -> bool {
        let Some(stop_at) = self.stop_at else { return false };
        let is_at_disk = self.channel.in_flight() > 0 || !self.completions.is_empty();
        if is_at_disk || self.commits.iter().any(Option::is_some) {
            return false;
        }
        let mut peers = self.peers.iter().flatten();
        let settled = self.tasks.len() == 0 && !peers.any(|peer| peer.connection.has_output());
        settled || self.shared.clock.now() >= stop_at
    }
}
