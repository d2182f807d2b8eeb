//! Ends connections, and the front end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::FrontEnd;
use crate::handing::Handed;
use crate::wires::Wires;

/// How long a stop waits for hosts to take their responses.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a handover waits for commands in progress; no command is served meanwhile.
const HAND_OVER_TIMEOUT: Duration = Duration::from_millis(500);

impl FrontEnd {
    /// Closes all connections, regardless of what is in progress.
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

    /// Accepts no new commands from now on.
    pub(super) fn stop(&mut self) {
        let hands_over = self.shared.hands_over.load(Ordering::Acquire);
        let most = if hands_over { HAND_OVER_TIMEOUT } else { STOP_TIMEOUT };
        self.stop_at.get_or_insert(self.shared.clock.now() + most);
        self.lift_limits();
        self.channel.end_retries();
        for slot in 0..self.peers.len() {
            if let Some(peer) = self.peers[slot].as_mut() {
                let may_go_on = hands_over && peer.session.is_some() && !peer.lost;
                match may_go_on && peer.connection.begin_to_hand_over() {
                    true => self.push_ready(slot),
                    false => peer.connection.request_logout(),
                }
                self.touch(slot);
            }
        }
    }

    /// Hands over the connections that continue in another process.
    pub fn hand_over(&mut self, wires: &mut dyn Wires) {
        for slot in 0..self.peers.len() {
            let Some(peer) = self.peers[slot].as_ref().filter(|peer| !peer.lost) else { continue };
            let connection = peer.connection.hand_over();
            let nexus = peer.session.as_ref().map(|session| session.nexus.clone());
            let Some((connection, nexus)) = connection.zip(nexus) else { continue };
            wires.hand_over(slot, Handed { connection, nexus });
            let Some(peer) = self.peers[slot].take() else { continue };
            self.places.remove(&peer.id);
            self.shared.places.lock().remove(&peer.id);
        }
    }

    /// Returns whether a stop was requested ([`super::Mailbox::stop`]). It then accepts no more
    /// connections.
    pub fn is_stopping(&self) -> bool {
        self.stop_at.is_some()
    }

    /// Returns whether a stop was requested and everything in progress has ended.
    pub fn is_finished(&self) -> bool {
        let Some(stop_at) = self.stop_at else { return false };
        let is_at_disk = self.channel.in_flight() > 0 || !self.completions.is_empty();
        if is_at_disk || self.commits.iter().any(Option::is_some) {
            return false;
        }
        let mut peers = self.peers.iter().flatten();
        let settled = self.tasks.len() == 0 && peers.all(|peer| peer.connection.is_settled());
        settled || self.shared.clock.now() >= stop_at
    }
}
