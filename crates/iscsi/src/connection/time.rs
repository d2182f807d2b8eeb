//! What time does: login timeout, pings (RFC 7143, 11.19), and the end of those that take nothing.

use std::time::Duration;

use super::{Connection, StatSn};
use crate::pdu::{NO_TAG, build};
use crate::transmit::OutData;

/// When what happened.
#[derive(Debug)]
pub(super) struct Clock {
    opened: Duration,
    heard: Duration,
    pinged: Option<Duration>,
    closed: Option<Duration>,
}

impl Clock {
    pub(super) fn new(now: Duration) -> Self {
        Self { opened: now, heard: now, pinged: None, closed: None }
    }

    /// The peer sent something: it lives.
    pub(super) fn heard(&mut self, now: Duration) {
        self.heard = now;
        self.pinged = None;
    }
}

impl Connection {
    /// Lets time pass: login timeout, pings.
    pub fn tick(&mut self, now: Duration) {
        self.look_around();
        if self.closed {
            let closed = *self.clock.closed.get_or_insert(now);
            let timeout = self.target.config().limits.ping_timeout;
            if now >= closed + timeout {
                self.transmit.clear();
            }
            return;
        }
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        if self.login.is_some() || self.clock.pinged.is_some() {
            self.closed = true;
            self.clock.closed = Some(now);
            return;
        }
        self.clock.pinged = Some(now);
        self.next_serial = self.next_serial.wrapping_add(1);
        let ttt = self.next_serial & 0x7fff_ffff;
        self.send(build::nop_in([0; 8], NO_TAG, ttt), OutData::None, StatSn::Current);
    }

    /// When [`Connection::tick`] has something to do.
    pub fn deadline(&self) -> Option<Duration> {
        let limits = &self.target.config().limits;
        if self.closed {
            let closed = self.clock.closed.unwrap_or(self.clock.heard);
            return self.has_output().then(|| closed + limits.ping_timeout);
        }
        if self.login.is_some() {
            return Some(self.clock.opened + limits.login_timeout);
        }
        Some(match self.clock.pinged {
            Some(pinged) => pinged + limits.ping_timeout,
            None => self.clock.heard + limits.ping_after,
        })
    }
}
