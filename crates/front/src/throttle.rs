//! Limits of volumes and of volume groups: commands that are over them wait, in the order in which
//! they came, whichever thread and session they came on.
//!
//! A volume with limits has a [`Bucket`] that all threads share, and so has a volume group, for all
//! of its volumes together; a volume without any has none, and its commands pass no lock here. A
//! command passes the bucket of its volume, then that of the group. A command that has to wait has
//! not begun: it holds no reservation, has no effect, and is ended at once when it is aborted. The
//! thread whose command waits first looks after the bucket until none waits any more: it lets go on
//! what may, its own commands and, by messages, those of other threads.
//!
//! Reads, writes and offloads count as one each, and reads and writes with the bytes that they
//! move; VERIFY is a read that sends nothing, so its bytes count; all else passes. The bucket holds
//! [`BURST`] of each limit: what was not used for a while.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use block::{VolumeAttributes, VolumeId, VolumeLimits};
use parking_lot::Mutex;

use super::command_set::Asked;
use super::counters::Class;

/// For how long a volume may be as fast as it can after it was idle, once. As short as hosts see no
/// average that is over the limit, and as long as a timer that comes late costs nothing.
const BURST: Duration = Duration::from_millis(100);

/// What has been taken of the limits of a volume: for each of them, when all of it is paid for.
/// While that is no more than [`BURST`] ahead, the next command may go, whatever it costs.
#[derive(Debug, Default)]
struct Meter {
    limits: VolumeLimits,
    operations: Duration,
    bytes: Duration,
}

/// How long so many of something take at so many a second.
fn paid_in(count: u64, per_s: Option<u64>) -> Duration {
    let Some(per_s) = per_s.filter(|per_s| *per_s > 0) else { return Duration::ZERO };
    let ns = u128::from(count) * 1_000_000_000 / u128::from(per_s);
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

impl Meter {
    /// Other limits: what was taken under the old ones is forgotten.
    fn set(&mut self, limits: VolumeLimits) {
        if limits != self.limits {
            *self = Self { limits, ..Self::default() };
        }
    }

    /// When the next command may go.
    fn free_at(&self) -> Duration {
        self.operations.max(self.bytes).saturating_sub(BURST)
    }

    fn take(&mut self, bytes: u64, now: Duration) {
        let paid =
            |until: Duration, count, per_s| until.max(now).saturating_add(paid_in(count, per_s));
        self.operations = paid(self.operations, 1, self.limits.iops);
        self.bytes = paid(self.bytes, bytes, self.limits.bandwidth_bytes_per_s);
    }
}

/// A command that waits: which task of which thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) thread: usize,
    pub(super) task: u64,
    pub(super) bytes: u64,
}

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// It may go on.
    Goes,
    /// It waits, as the first one: the thread looks after the bucket.
    WaitsFirst,
    /// It waits behind others.
    Waits,
}

/// What has limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limited {
    /// A volume.
    Volume(VolumeId),
    /// A volume group, by its number: all of its volumes together.
    Group(u64),
}

/// The limits of a volume or a group, what is left of them, and the commands that wait for that.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) of: Limited,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    meter: Meter,
    waiting: VecDeque<Ticket>,
}

impl Bucket {
    fn new(of: Limited) -> Self {
        Self { of, state: Mutex::default() }
    }

    /// Other limits.
    pub(super) fn set(&self, limits: VolumeLimits) {
        self.state.lock().meter.set(limits);
    }

    /// A command comes: it goes on, or waits behind those that wait.
    pub(super) fn enter(&self, ticket: Ticket, now: Duration) -> Entered {
        let State { meter, waiting } = &mut *self.state.lock();
        if waiting.is_empty() && meter.free_at() <= now {
            meter.take(ticket.bytes, now);
            return Entered::Goes;
        }
        waiting.push_back(ticket);
        if waiting.len() == 1 { Entered::WaitsFirst } else { Entered::Waits }
    }

    /// Adds those that may go on now to `released`, and tells when there will be more, if more
    /// wait.
    pub(super) fn release(&self, now: Duration, released: &mut Vec<Ticket>) -> Option<Duration> {
        let State { meter, waiting } = &mut *self.state.lock();
        while meter.free_at() <= now {
            let ticket = waiting.pop_front()?;
            meter.take(ticket.bytes, now);
            released.push(ticket);
        }
        (!waiting.is_empty()).then(|| meter.free_at())
    }

    /// A command waits no more.
    pub(super) fn leave(&self, thread: usize, task: u64) {
        let waiting = &mut self.state.lock().waiting;
        waiting.retain(|ticket| (ticket.thread, ticket.task) != (thread, task));
    }
}

/// The buckets that a command passes, one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Gates {
    pub(super) volume: Option<Arc<Bucket>>,
    pub(super) group: Option<Arc<Bucket>>,
}

impl Gates {
    /// Takes the next one.
    pub(super) fn next(&mut self) -> Option<Arc<Bucket>> {
        self.volume.take().or_else(|| self.group.take())
    }
}

/// The buckets of all volumes and groups with limits.
#[derive(Debug, Default)]
pub(super) struct Throttles(Mutex<HashMap<Limited, Arc<Bucket>>>);

impl Throttles {
    /// The buckets of a volume.
    pub(super) fn gates(&self, volume: &VolumeAttributes) -> Gates {
        let group = volume.group;
        Gates {
            volume: self.of(Limited::Volume(volume.id), volume.limits),
            group: group.and_then(|group| self.of(Limited::Group(group.number), group.limits)),
        }
    }

    /// The bucket of what has these limits; `None` where it has none.
    fn of(&self, of: Limited, limits: VolumeLimits) -> Option<Arc<Bucket>> {
        if limits.is_none() {
            return None;
        }
        let mut buckets = self.0.lock();
        let bucket = buckets.entry(of).or_insert_with(|| Arc::new(Bucket::new(of))).clone();
        bucket.set(limits);
        // Those that nobody knows any more; a look at all of them once a session and change.
        buckets.retain(|_, bucket| Arc::strong_count(bucket) > 1);
        Some(bucket)
    }
}

/// The bytes that a command counts with, as one command; `None` for one that passes.
pub(super) fn charged_bytes(class: Class, verifies: bool, moved: u64) -> Option<u64> {
    match class {
        Class::Read | Class::Write => Some(moved),
        Class::Other => verifies.then_some(moved),
        _ => Some(0),
    }
}

/// A command that waits before it begins.
pub(super) struct Held {
    pub(super) asked: Asked,
    /// The one that it waits for.
    pub(super) bucket: Arc<Bucket>,
    /// Those that it passes next.
    pub(super) gates: Gates,
    /// The bytes that it counts with.
    pub(super) bytes: u64,
}

#[cfg(test)]
mod tests;
