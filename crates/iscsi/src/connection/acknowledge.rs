//! Which statuses the initiator has got: each of its PDUs says so (ExpStatSN; RFC 7143, 4.2.2.2).

use std::collections::VecDeque;

use super::Connection;
use crate::event::Event;
use crate::session::before;

/// Statuses that are waited for at most. Of an initiator that acknowledges nothing, the oldest are
/// forgotten, as if it never had got them.
pub(super) const AWAITED_MAX: usize = 1024;

/// Statuses that were sent, in the order of their StatSNs, with what they are called above.
#[derive(Debug, Default)]
pub(super) struct Awaited(VecDeque<(u32, u64)>);

impl Awaited {
    fn push(&mut self, stat_sn: u32, name: u64) {
        if self.0.len() >= AWAITED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((stat_sn, name));
    }

    /// The next one before `exp_stat_sn`.
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
    /// The status that was sent last is waited for, if somebody above wants to know.
    pub(super) fn await_acknowledgement(&mut self, name: Option<u64>) {
        if let Some(name) = name {
            self.awaited.push(self.stat_sn.wrapping_sub(1), name);
        }
    }

    /// A PDU has come that says which status its initiator waits for. Who claims to have more than
    /// was sent has nothing by that.
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

    /// The answer to a ping has come: all has that was sent before it.
    pub(super) fn note_sign(&mut self, transfer_tag: u32) {
        if let Some((_, sent)) = self.ping.filter(|(tag, _)| *tag == transfer_tag) {
            self.note_got(sent);
        }
    }

    /// So many of the PDUs that were sent have come.
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
