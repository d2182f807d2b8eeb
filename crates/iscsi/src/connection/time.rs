//! Timeouts: login, pings (RFC 7143, 11.19), and closing peers that withhold data or the rest of a
//! PDU, or accept no output.

use std::time::Duration;

use super::{Connection, StatSn};
use crate::pdu::{NO_TAG, build};
use crate::task::{DataFault, TaskState};
use crate::transmit::OutData;

/// The data that must arrive within [`crate::Limits::data_timeout`] while some is overdue: a slow
/// line achieves that, and a peer that only pretends to be slow is limited.
const PROGRESS_BYTES: u64 = 65_536;
/// The number of such timeouts after which the data of a command must be complete, however slow the
/// line.
const TIMEOUTS_MAX: u32 = 10;

/// A PDU that has begun and is not complete.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// Its number.
    number: u64,
    began: Duration,
    /// The start of the current measurement, and the bytes received since then.
    since: Duration,
    came: u64,
}

/// Times of events.
#[derive(Debug)]
pub(super) struct Clock {
    now: Duration,
    opened: Duration,
    heard: Duration,
    pinged: Option<Duration>,
    closed: Option<Duration>,
    /// The start of the measurement of data, and the bytes received; `None` if no data is awaited.
    data: Option<(Duration, u64)>,
    /// The time since when no output was accepted.
    stuck: Option<Duration>,
    /// The PDU that is arriving, as long as the peer withholds the rest.
    arrival: Option<Arrival>,
}

impl Clock {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            now,
            opened: now,
            heard: now,
            pinged: None,
            closed: None,
            data: None,
            stuck: None,
            arrival: None,
        }
    }

    /// Returns the time that was set last.
    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// Notes that the peer sent something and so is alive.
    pub(super) fn heard(&mut self, bytes: usize, now: Duration) {
        self.now = now;
        self.heard = now;
        self.pinged = None;
        if let Some(arrival) = &mut self.arrival {
            arrival.came += bytes as u64;
        }
    }

    /// Notes which PDU waits for its rest, if any.
    pub(super) fn awaits(&mut self, number: Option<u64>) {
        let now = self.now;
        self.arrival = number.map(|number| match self.arrival {
            Some(arrival) if arrival.number == number => arrival,
            _ => Arrival { number, began: now, since: now, came: 0 },
        });
    }

    /// Notes that data is expected.
    pub(super) fn expect_data(&mut self) {
        self.data.get_or_insert((self.now, 0));
    }

    /// Notes that data has arrived.
    pub(super) fn data_came(&mut self, bytes: usize) {
        if let Some((_, count)) = &mut self.data {
            *count += bytes as u64;
        }
    }

    /// Notes that output is queued.
    pub(super) fn has_output(&mut self) {
        self.stuck.get_or_insert(self.now);
    }

    /// Notes that the peer accepted some output; `left` is whether there is more.
    pub(super) fn taken(&mut self, left: bool) {
        self.stuck = left.then_some(self.now);
    }
}

impl Connection {
    /// Sets the time. Must be called before responses and events of a later time.
    pub fn set_time(&mut self, now: Duration) {
        self.clock.now = self.clock.now.max(now);
    }

    /// Advances the time: login timeout, pings, overdue data.
    pub fn tick(&mut self, now: Duration) {
        self.set_time(now);
        self.look_around();
        if self.closed {
            let closed = *self.clock.closed.get_or_insert(now);
            let timeout = self.target.config().limits.ping_timeout;
            if now >= closed + timeout {
                self.drop_output();
            }
            return;
        }
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        self.refuse_starved(now);
        if self.is_stuck(now) {
            self.complain("it does not receive the responses to its commands");
            self.drop_output();
            return self.end_at(now);
        }
        if self.is_data_late(now) {
            self.complain("it does not send the data of its commands");
            return self.end_at(now);
        }
        if self.is_pdu_late(now) {
            self.complain("it does not send the rest of a PDU");
            return self.end_at(now);
        }
        if self.login.is_some()
            || self.clock.pinged.is_some_and(|at| now >= at + self.ping_timeout())
        {
            return self.end_at(now);
        }
        if self.clock.pinged.is_none() && now >= self.clock.heard + self.ping_after() {
            self.ask_for_sign();
        }
    }

    /// Pings the initiator.
    pub(super) fn ask_for_sign(&mut self) {
        self.clock.pinged.get_or_insert(self.clock.now);
        self.next_serial = self.next_serial.wrapping_add(1);
        let ttt = self.next_serial & 0x7fff_ffff;
        self.send(build::nop_in([0; 8], NO_TAG, ttt), OutData::None, StatSn::Current);
        self.ping = Some((ttt, self.progress.sent()));
    }

    /// Responds TASK SET FULL to commands that have found no memory for long: what they wait for
    /// may itself wait for them, such as a later ORDERED command that holds it.
    fn refuse_starved(&mut self, now: Duration) {
        let timeout = self.target.config().limits.data_timeout;
        let late: Vec<(u32, u32)> = self.starved.iter().copied().collect();
        for (tag, serial) in late {
            let task = self.tasks.get(&tag).filter(|task| task.serial == serial);
            if task.is_some_and(|task| now >= task.incoming.asked_at + timeout) {
                self.starved.retain(|waiting| *waiting != (tag, serial));
                self.fail_task(tag, DataFault::NoMemory);
            }
        }
    }

    fn end_at(&mut self, now: Duration) {
        self.closed = true;
        self.clock.closed = Some(now);
    }

    fn drop_output(&mut self) {
        self.transmit.clear();
        self.clock.taken(false);
        self.share_output();
    }

    fn ping_after(&self) -> Duration {
        self.target.config().limits.ping_after
    }

    fn ping_timeout(&self) -> Duration {
        self.target.config().limits.ping_timeout
    }

    /// Returns when a peer that accepts no output is closed; it can't be pinged either.
    fn stuck_at(&self) -> Option<Duration> {
        self.clock.stuck.map(|since| since + self.ping_after() + self.ping_timeout())
    }

    fn is_stuck(&self, now: Duration) -> bool {
        self.stuck_at().is_some_and(|at| now >= at)
    }

    /// Returns whether data is overdue. Examines all tasks, once in each timeout.
    fn is_data_late(&mut self, now: Duration) -> bool {
        let timeout = self.target.config().limits.data_timeout;
        let Some((_, came)) = self.clock.data.filter(|(since, _)| now >= *since + timeout) else {
            return false;
        };
        let due = self.tasks.values().filter(|task| {
            let incoming = &task.incoming;
            let is_asked = incoming.unsolicited || incoming.asked > incoming.answered;
            task.state != TaskState::Delivered && !task.aborted && is_asked
        });
        let first = due.map(|task| task.incoming.asked_at).min();
        // The arriving part of a long PDU is progress, too.
        let came = came + self.receive.arrival().map_or(0, |(_, bytes)| bytes as u64);
        self.clock.data = first.map(|_| (now, 0));
        first.is_some_and(|first| {
            let late = now.saturating_sub(first);
            late >= timeout && came < PROGRESS_BYTES || late >= timeout * TIMEOUTS_MAX
        })
    }

    /// Returns whether any PDU fails to complete in time; the same timeouts apply to all kinds.
    fn is_pdu_late(&mut self, now: Duration) -> bool {
        let timeout = self.target.config().limits.data_timeout;
        let is_full = self.is_output_full();
        let Some(arrival) = &mut self.clock.arrival else { return false };
        if is_full {
            // Nothing is being received: the peer may have sent all of it.
            *arrival = Arrival { began: now, since: now, came: 0, ..*arrival };
        }
        if now < arrival.since + timeout {
            return false;
        }
        let came = std::mem::take(&mut arrival.came);
        arrival.since = now;
        came < PROGRESS_BYTES || now >= arrival.began + timeout * TIMEOUTS_MAX
    }

    /// Returns when [`Connection::tick`] has something to do.
    pub fn deadline(&self) -> Option<Duration> {
        let limits = &self.target.config().limits;
        if self.closed {
            let closed = self.clock.closed.unwrap_or(self.clock.heard);
            return self.has_output().then(|| closed + limits.ping_timeout);
        }
        if self.login.is_some() {
            return Some(self.clock.opened + limits.login_timeout);
        }
        // A fallback in case nothing reports that memory is available again.
        let starved = (!self.starved.is_empty()).then_some(self.clock.now);
        let data = self.clock.data.map(|(since, _)| since + limits.data_timeout);
        let ping = match self.clock.pinged {
            Some(pinged) => pinged + limits.ping_timeout,
            None => self.clock.heard + limits.ping_after,
        };
        let arrival = self.clock.arrival.map(|arrival| arrival.since + limits.data_timeout);
        [Some(ping), data, arrival, self.stuck_at(), starved].into_iter().flatten().min()
    }
}
