//! Tracks which statuses the initiator has received, by ExpStatSN in each of its PDUs (RFC 7143,
//! 4.2.2.2).

use std::collections::VecDeque;

use super::Connection;
use crate::event::Event;
use crate::session::before;

/// The most statuses whose acknowledgement is awaited. If an initiator acknowledges nothing, the
/// oldest are dropped as if it never had received them.
pub(super) const AWAITED_MAX: usize = 1024;

/// Statuses that were sent, in StatSN order, with their names in the layer above.
#[derive(Debug, Default)]
pub(super) struct Awaited(VecDeque<(u32, u64)>);

impl Awaited {
    fn push(&mut self, stat_sn: u32, name: u64) {
        if self.0.len() >= AWAITED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((stat_sn, name));
    }

    /// Removes the next one before `exp_stat_sn`.
    fn pop_before(&mut self, exp_stat_sn: u32) -> Option<u64> {
        let (stat_sn, name) = *self.0.front()?;
        if !before(stat_sn, exp_stat_sn) {
            return None;
        }
        self.0.pop_front();
        Some(name)
    }
}

impl Connection {
    /// Awaits the acknowledgement of the last status sent, if the layer above wants to know.
    pub(super) fn await_acknowledgement(&mut self, name: Option<u64>) {
        if let Some(name) = name {
            self.awaited.push(self.stat_sn.wrapping_sub(1), name);
        }
    }

    /// Processes ExpStatSN of a received PDU. Acknowledging more than was sent has no effect.
    pub(super) fn note_exp_stat_sn(&mut self, exp_stat_sn: u32) {
        if before(self.stat_sn, exp_stat_sn) {
            return;
        }
        if exp_stat_sn == self.stat_sn {
            self.note_got(self.sent_with_status);
        }
        while let Some(name) = self.awaited.pop_before(exp_stat_sn) {
            self.events.push_back(Event::Acknowledged { name });
        }
    }

    /// Processes the response to a ping: everything sent before the ping was received.
    pub(super) fn note_sign(&mut self, transfer_tag: u32) {
        if let Some((_, sent)) = self.ping.filter(|(tag, _)| *tag == transfer_tag) {
            self.note_got(sent);
        }
    }

    /// Notes that the initiator has received this many of the PDUs sent.
    fn note_got(&mut self, count: u32) {
        self.progress.got(count);
        if let Some(session) = &self.session {
            session.wake_fenced(&mut self.wake);
        }
        if !self.wake.is_empty() {
            self.tell_wakes();
        }
    }
}
