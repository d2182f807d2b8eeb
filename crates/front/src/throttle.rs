//! Limits of volumes and of volume groups: commands over the limit wait in order of arrival, across
//! threads and sessions.
//!
//! A volume with limits has a [`Bucket`] that all threads share, and so has a volume group, for all
//! of its volumes together. A volume without limits has none, and its commands take no lock here. A
//! command passes the bucket of its volume, then that of the group. A waiting command has not
//! begun: it holds no reservation, has no effect, and ends at once if it is aborted. The thread
//! whose command waits first watches the bucket until no command waits any longer: it releases its
//! own commands and, by messages, those of other threads.
//!
//! Reads, writes and offloads count as one operation each, and reads and writes with the bytes that
//! they transfer. VERIFY is a read that sends nothing, so its bytes count. Other commands always
//! pass. The bucket accumulates up to [`BURST`] of unused limit.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use block::{VolumeAttributes, VolumeId, VolumeLimits};
use parking_lot::Mutex;

use super::command_set::Asked;
use super::counters::Class;

/// How long a volume may exceed its limit after it was idle. Short enough that hosts never see an
/// average over the limit, and long enough that a late timer costs no throughput.
const BURST: Duration = Duration::from_millis(100);

/// The used part of a volume's limits: for each limit, the time at which everything taken is paid
/// for. While that is at most [`BURST`] ahead, the next command may pass, regardless of its cost.
#[derive(Debug, Default)]
struct Meter {
    limits: VolumeLimits,
    operations: Duration,
    bytes: Duration,
}

/// Returns the time that pays for `count` at `per_s` per second.
fn paid_in(count: u64, per_s: Option<u64>) -> Duration {
    let Some(per_s) = per_s.filter(|per_s| *per_s > 0) else { return Duration::ZERO };
    let ns = u128::from(count) * 1_000_000_000 / u128::from(per_s);
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

impl Meter {
    /// Changes the limits and forgets what was taken under the old ones.
    fn set(&mut self, limits: VolumeLimits) {
        if limits != self.limits {
            *self = Self { limits, ..Self::default() };
        }
    }

    /// Returns when the next command may pass.
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

/// A waiting command: its thread and task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) thread: usize,
    pub(super) task: u64,
    pub(super) bytes: u64,
}

/// What happens to an arriving command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// It passes.
    Goes,
    /// It is the first to wait: its thread watches the bucket.
    WaitsFirst,
    /// It waits after others.
    Waits,
}

/// What has limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limited {
    /// A volume.
    Volume(VolumeId),
    /// A volume group, by number: all of its volumes together.
    Group(u64),
}

/// The limits of a volume or a group, their used part, and the commands that wait.
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

    /// Changes the limits.
    pub(super) fn set(&self, limits: VolumeLimits) {
        self.state.lock().meter.set(limits);
    }

    /// Admits a command, or queues it after those that wait.
    pub(super) fn enter(&self, ticket: Ticket, now: Duration) -> Entered {
        let State { meter, waiting } = &mut *self.state.lock();
        if waiting.is_empty() && meter.free_at() <= now {
            meter.take(ticket.bytes, now);
            return Entered::Goes;
        }
        waiting.push_back(ticket);
        if waiting.len() == 1 { Entered::WaitsFirst } else { Entered::Waits }
    }

    /// Adds the commands that may now pass to `released`. Returns when more may pass, if more wait.
    pub(super) fn release(&self, now: Duration, released: &mut Vec<Ticket>) -> Option<Duration> {
        let State { meter, waiting } = &mut *self.state.lock();
        while meter.free_at() <= now {
            let ticket = waiting.pop_front()?;
            meter.take(ticket.bytes, now);
            released.push(ticket);
        }
        (!waiting.is_empty()).then(|| meter.free_at())
    }

    /// Removes a command from the queue.
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
    /// Takes the next bucket.
    pub(super) fn next(&mut self) -> Option<Arc<Bucket>> {
        self.volume.take().or_else(|| self.group.take())
    }
}

/// The buckets of all volumes and groups with limits.
#[derive(Debug, Default)]
pub(super) struct Throttles(Mutex<HashMap<Limited, Arc<Bucket>>>);

impl Throttles {
    /// Returns the buckets of a volume.
    pub(super) fn gates(&self, volume: &VolumeAttributes) -> Gates {
        let group = volume.group;
        Gates {
            volume: self.of(Limited::Volume(volume.id), volume.limits),
            group: group.and_then(|group| self.of(Limited::Group(group.number), group.limits)),
        }
    }

    /// Returns the bucket for these limits; `None` if there are no limits.
    fn of(&self, of: Limited, limits: VolumeLimits) -> Option<Arc<Bucket>> {
        if limits.is_none() {
            return None;
        }
        let mut buckets = self.0.lock();
        let bucket = buckets.entry(of).or_insert_with(|| Arc::new(Bucket::new(of))).clone();
        bucket.set(limits);
        // Remove unreferenced buckets. This scan happens once per session and change.
        buckets.retain(|_, bucket| Arc::strong_count(bucket) > 1);
        Some(bucket)
    }
}

/// Returns the bytes that a command counts with, as one operation; `None` for a command that always
/// passes.
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
    /// The bucket that it waits for.
    pub(super) bucket: Arc<Bucket>,
    /// The buckets that it passes next.
    pub(super) gates: Gates,
    /// The bytes that it counts with.
    pub(super) bytes: u64,
}

#[cfg(test)]
mod tests;
