//! Blocking calls to devices: on threads, so that a device that hangs blocks no other.
//!
//! All blocking calls use [`each`] or [`Asked`]. Files and block devices are called on threads, in
//! parallel, and waited for with a limit; other disks, such as simulated ones, are called directly
//! and in order.
//!
//! Invariants:
//! 1. A call has a thread to itself: none waits for one that hangs.
//! 2. A call owns everything that it accesses, even if no caller waits for it any longer.
//! 3. A call counts as in flight until its thread has ended it, so its device is not taken back
//!    before that. Such a thread is never joined, not even when the pool is dropped.
//! 4. The disk is released before the result is known, so that whoever has the result can reopen
//!    it.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use format::geometry::PARITY_COLUMNS;
use sys::Disk;

use super::access::is_out;
use super::device::{Device, Slot};
use super::lanes::UnderWay;
use super::members::Members;
use crate::devices::DeviceState;

/// The time limits of calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// When a read is also sent to other devices, which costs little.
    pub(super) read_late: Duration,
    /// The limit for reads and writes, in total or beyond the time of the other devices. A disk
    /// that rereads a bad block often takes less.
    pub(super) transfer: Duration,
    /// The limit for flushes and discards beyond the time of other devices: a checkpoint may leave
    /// much to flush.
    pub(super) flush: Duration,
    /// The limit for the flush that ends catching up, and for growing a device. There is nothing to
    /// compare it with, no caller waits for it, and giving up means starting again.
    pub(super) alone: Duration,
    /// The limit for the first reads of a device when a pool is opened. A stopped disk has to spin
    /// up.
    pub(super) opening: Duration,
}

impl Limits {
    /// The limits of files and block devices.
    pub(super) const OF_FILES: Self = Self {
        read_late: Duration::from_millis(500),
        transfer: Duration::from_secs(2),
        flush: Duration::from_secs(5),
        alone: Duration::from_secs(60),
        opening: Duration::from_secs(10),
    };
}

/// Selects a limit.
pub(super) type Limit = fn(&Limits) -> Duration;
pub(super) const TRANSFER: Limit = |limits| limits.transfer;
pub(super) const FLUSH: Limit = |limits| limits.flush;
pub(super) const ALONE: Limit = |limits| limits.alone;
pub(super) const OPENING: Limit = |limits| limits.opening;

/// A call on a thread. It returns the closure that delivers its result.
type Job = Box<dyn FnOnce() -> Tell + Send>;
type Tell = Box<dyn FnOnce()>;

/// Threads that call one device: created on demand, ended with the device.
#[derive(Debug)]
pub(super) struct Workers {
    limits: Limits,
    /// Threads that wait for a job.
    idle: Mutex<Vec<Sender<Job>>>,
}

impl Workers {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, idle: Mutex::default() })
    }

    fn run(self: &Arc<Self>, mut job: Job) {
        while let Some(worker) = self.pop_idle() {
            match worker.send(job) {
                Ok(()) => return,
                Err(unsent) => job = unsent.0,
            }
        }
        let workers = Arc::downgrade(self);
        std::thread::spawn(move || work(&workers, job));
    }

    fn pop_idle(&self) -> Option<Sender<Job>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// The main loop of a worker.
fn work(workers: &Weak<Workers>, mut job: Job) {
    loop {
        let tell = job();
        // A worker is idle before it delivers its result, so that whoever receives it can use this
        // worker and needs no other.
        let next = workers.upgrade().map(|workers| {
            let (sender, receiver) = channel();
            workers.idle.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
            receiver
        });
        tell();
        let Some(Ok(next)) = next.map(|next| next.recv()) else { return };
        job = next;
    }
}

/// The result of a call, or its panic.
type Outcome<R> = Result<io::Result<R>, Box<dyn Any + Send>>;

/// Calls that were started and are waited for. `K` is the caller's key for them.
pub(super) struct Asked<K, R> {
    waiting: Vec<Waiting<K>>,
    begun: usize,
    sender: Sender<(usize, Outcome<R>)>,
    receiver: Receiver<(usize, Outcome<R>)>,
    tick: Duration,
}

struct Waiting<K> {
    number: usize,
    key: K,
    waited: Duration,
    read_late: Duration,
    limit: Duration,
}

impl<K, R: Send + 'static> Asked<K, R> {
    pub(super) fn new() -> Self {
        let (sender, receiver) = channel();
        let tick = Limits::OF_FILES.read_late / 4;
        Self { waiting: Vec::new(), begun: 0, sender, receiver, tick }
    }

    /// Starts a call. `guard` is dropped when it has ended.
    pub(super) fn begin(
        &mut self,
        key: K,
        device: &Device,
        guard: impl Send + 'static,
        limit: Limit,
        call: impl FnOnce(&dyn Disk) -> io::Result<R> + Send + 'static,
    ) {
        let (number, limits) = (self.begun, device.workers.as_ref().map(|workers| workers.limits));
        let limits = limits.unwrap_or(Limits::OF_FILES);
        self.begun += 1;
        self.tick = self.tick.min(limits.read_late / 4);
        let (waited, read_late, limit) = (Duration::ZERO, limits.read_late, limit(&limits));
        self.waiting.push(Waiting { number, key, waited, read_late, limit });
        let (sender, disk) = (self.sender.clone(), device.disk.clone());
        let run = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| call(&*disk)));
            drop((disk, guard));
            // Perhaps no caller waits any longer.
            move || drop(sender.send((number, outcome)))
        };
        match &device.workers {
            Some(workers) => workers.run(Box::new(|| Box::new(run()) as Tell)),
            None => run()(),
        }
    }

    /// Waits a short time for a call to end. A time in which this thread itself was paused counts
    /// only once, so that no call counts as late because of that.
    pub(super) fn next(&mut self) -> Option<(K, io::Result<R>)> {
        loop {
            let Ok(ended) = self.receiver.recv_timeout(self.tick) else {
                self.waiting.iter_mut().for_each(|waiting| waiting.waited += self.tick);
                return None;
            };
            if let Some(ended) = self.take(ended) {
                return Some(ended);
            }
        }
    }

    /// Returns a call that has ended already.
    pub(super) fn ended(&mut self) -> Option<(K, io::Result<R>)> {
        let ended = self.receiver.try_recv().ok()?;
        self.take(ended)
    }

    fn take(&mut self, (number, outcome): (usize, Outcome<R>)) -> Option<(K, io::Result<R>)> {
        // The result of an abandoned call is not needed.
        let at = self.waiting.iter().position(|waiting| waiting.number == number)?;
        let key = self.waiting.remove(at).key;
        Some((key, outcome.unwrap_or_else(|panic| resume_unwind(panic))))
    }

    /// Returns the keys of the calls that are waited for.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &K> {
        self.waiting.iter().map(|waiting| &waiting.key)
    }

    /// Returns those that have not yet waited so long that other devices should be tried.
    pub(super) fn in_time(&self) -> impl Iterator<Item = &K> {
        let in_time = self.waiting.iter().filter(|waiting| waiting.waited < waiting.read_late);
        in_time.map(|waiting| &waiting.key)
    }

    /// Stops waiting for calls over their limit if `late`, which gets the key and the limit,
    /// returns true; the others get the same time again.
    pub(super) fn give_up(&mut self, mut late: impl FnMut(&K, Duration) -> bool) {
        self.waiting.retain_mut(|waiting| {
            let is_over = waiting.waited >= waiting.limit;
            if is_over {
                waiting.waited = Duration::ZERO;
            }
            !is_over || !late(&waiting.key, waiting.limit)
        });
    }

    /// Restarts the time limits of all calls.
    fn begin_anew(&mut self) {
        self.waiting.iter_mut().for_each(|waiting| waiting.waited = Duration::ZERO);
    }
}

/// Which devices are called, and for how long.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// Returns the device of a slot, if it is to be called at that time.
    pub(super) of: fn(&Slot) -> Option<&Device>,
    pub(super) limit: Limit,
    /// How many may be late: the limit counts from when no more than these are left.
    pub(super) spare: usize,
}

/// Calls several devices, in parallel if they have threads, and waits until `ended` was called for
/// each of them, or `late` has given it up. If `ended` fails, no further device is called.
///
/// # Errors
/// The first of `ended`.
pub(super) fn each<R: Send + 'static, E, C>(
    calls: impl IntoIterator<Item = (Arc<Slot>, C)>,
    terms: Terms,
    mut late: impl FnMut(&Arc<Slot>, Duration) -> bool,
    mut ended: impl FnMut(&Arc<Slot>, io::Result<R>) -> Result<(), E>,
) -> Result<(), E>
where
    C: FnOnce(&dyn Disk) -> io::Result<R> + Send + 'static,
{
    let (mut asked, mut result) = (Asked::new(), Ok(()));
    for (slot, call) in calls {
        let Some(device) = (terms.of)(&slot) else { continue };
        asked.begin(slot.clone(), device, UnderWay::one(&slot), terms.limit, call);
        while let Some((slot, outcome)) = asked.ended() {
            result = result.and(ended(&slot, outcome));
        }
        if result.is_err() {
            break;
        }
    }
    while !asked.waiting.is_empty() {
        match asked.next() {
            Some((slot, outcome)) => result = result.and(ended(&slot, outcome)),
            None if asked.waiting.len() > terms.spare => asked.begin_anew(),
            None => asked.give_up(&mut late),
        }
    }
    result
}

/// Calls one device, with this limit.
///
/// # Errors
/// Those of the device; `TimedOut`.
pub(super) fn ask<R: Send + 'static>(
    device: &Device,
    guard: impl Send + 'static,
    limit: Limit,
    call: impl FnOnce(&dyn Disk) -> io::Result<R> + Send + 'static,
) -> io::Result<R> {
    let (mut asked, mut result) = (Asked::new(), Err(is_out()));
    asked.begin((), device, guard, limit, call);
    while !asked.waiting.is_empty() {
        match asked.next() {
            Some(((), outcome)) => result = outcome,
            None => asked.give_up(|(), limit| {
                result = Err(timed_out(limit));
                true
            }),
        }
    }
    result
}

pub(super) fn timed_out(limit: Duration) -> io::Error {
    let text = format!("it has not responded for {} s", limit.as_secs_f32());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

impl Members {
    /// Like the function [`each`]. A device that is late goes out; if it must stay in, it is waited
    /// for.
    ///
    /// # Errors
    /// The first of `ended`.
    pub(super) fn each<R: Send + 'static, E, C>(
        &self,
        calls: impl IntoIterator<Item = (Arc<Slot>, C)>,
        of: fn(&Slot) -> Option<&Device>,
        limit: Limit,
        ended: impl FnMut(&Arc<Slot>, io::Result<R>) -> Result<(), E>,
    ) -> Result<(), E>
    where
        C: FnOnce(&dyn Disk) -> io::Result<R> + Send + 'static,
    {
        let terms = Terms { of, limit, spare: self.spare() };
        each(calls, terms, |slot, limit| self.goes_on_without(slot, limit), ended)
    }

    /// Calls one device that is written to. If it fails or takes too long, it goes out; the caller
    /// gets the error as well.
    ///
    /// # Errors
    /// Those of the device; `TimedOut`; `NotConnected` if it is out.
    pub(super) fn one<R: Send + 'static>(
        &self,
        slot: &Arc<Slot>,
        limit: Limit,
        call: impl FnOnce(&dyn Disk) -> io::Result<R> + Send + 'static,
    ) -> io::Result<R> {
        let mut result = Err(is_out());
        let terms = Terms { of: Slot::written, limit, spare: 1 };
        let mut late = None;
        let gives_up = |slot: &Arc<Slot>, limit| {
            let is_out = self.goes_on_without(slot, limit);
            late = is_out.then(|| timed_out(limit));
            is_out
        };
        each([(slot.clone(), call)], terms, gives_up, |slot, outcome| {
            result = outcome.map_err(|error| self.fail_with(slot, error));
            Ok::<_, io::Error>(())
        })?;
        late.map_or(result, Err)
    }

    /// Handles a device over its limit: returns whether it is out.
    pub(super) fn goes_on_without(&self, slot: &Slot, limit: Duration) -> bool {
        let can = !slot.is_in() || self.can_do_without(&self.slots(), slot);
        can && self.fail(slot, timed_out(limit)).is_ok()
    }

    /// Returns whether everything can be read if this device goes out, too.
    pub(super) fn can_do_without(&self, slots: &[Arc<Slot>], slot: &Slot) -> bool {
        self.can_do_with(slots, |other| match other.number == slot.number {
            true => DeviceState::Out,
            false => other.state(),
        })
    }

    /// Returns how many devices that are written to can be lost, but at least one; whether that one
    /// can be lost is checked when it is late.
    pub(super) fn spare(&self) -> usize {
        let slots = self.slots();
        let count = |state| slots.iter().filter(|slot| slot.state() == state).count();
        let of_those_in = count(DeviceState::In).saturating_sub(self.least_there());
        (of_those_in.min(PARITY_COLUMNS as usize) + count(DeviceState::CatchingUp)).max(1)
    }
}
