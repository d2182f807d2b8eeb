//! How a call that waits asks devices: on threads, so that one that hangs holds up nobody.
//!
//! All that waits goes through [`each`] or [`Asked`]. What is a file or a block device is called on
//! a thread, with others side by side, and waited for with a limit; any other disk, such as a
//! simulated one, on the spot and in order.
//!
//! Invariants:
//! 1. A call has a thread for itself: none is behind one that hangs.
//! 2. What a call may touch is its own, also if nobody waits for it any more.
//! 3. A call counts as under way until its thread has ended it, so its device is not taken back
//!    before that. Nobody waits for such a thread, not even who drops the pool.
//! 4. The disk is given up before the answer is known: whoever has that may open it again.

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

/// How long a call may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// A read that has taken so long is asked of others too, which costs little.
    pub(super) read_late: Duration,
    /// One that reads or writes, and has taken so long, or so much longer than elsewhere. A disk
    /// that reads a bad block again and again often takes less.
    pub(super) transfer: Duration,
    /// One that flushes or discards, and has taken so much longer than elsewhere: a checkpoint may
    /// leave much to flush.
    pub(super) flush: Duration,
    /// The flush that ends catching up, or making a device longer. There is nothing to compare it
    /// with, nobody waits for it, and who gives it up begins from the start.
    pub(super) alone: Duration,
    /// The first words of a device when a pool is opened. A disk that stands still has to spin up.
    pub(super) opening: Duration,
}

impl Limits {
    /// Those of files and block devices.
    pub(super) const OF_FILES: Self = Self {
        read_late: Duration::from_millis(500),
        transfer: Duration::from_secs(2),
        flush: Duration::from_secs(5),
        alone: Duration::from_secs(60),
        opening: Duration::from_secs(10),
    };
}

/// Which of them counts.
pub(super) type Limit = fn(&Limits) -> Duration;
pub(super) const TRANSFER: Limit = |limits| limits.transfer;
pub(super) const FLUSH: Limit = |limits| limits.flush;
pub(super) const ALONE: Limit = |limits| limits.alone;
pub(super) const OPENING: Limit = |limits| limits.opening;

/// Does something on a thread. What that returns tells of it.
type Job = Box<dyn FnOnce() -> Tell + Send>;
type Tell = Box<dyn FnOnce()>;

/// Threads that call one device: made when they are needed, ended with the device.
#[derive(Debug)]
pub(super) struct Workers {
    limits: Limits,
    /// Those that wait for a job.
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

/// A worker's life.
fn work(workers: &Weak<Workers>, mut job: Job) {
    loop {
        let tell = job();
        // It is idle before it tells: whoever hears of it finds it, and needs no other.
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

/// What a call has come to; that it has panicked.
type Outcome<R> = Result<io::Result<R>, Box<dyn Any + Send>>;

/// Calls that were begun and are waited for. `K` is what the caller knows them by.
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

    /// Begins a call. `guard` is dropped when it has ended.
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
            // Perhaps nobody waits any more.
            move || drop(sender.send((number, outcome)))
        };
        match &device.workers {
            Some(workers) => workers.run(Box::new(|| Box::new(run()) as Tell)),
            None => run()(),
        }
    }

    /// Waits for one that ends, for a moment. A moment in which this thread was paused itself is
    /// one as well, so that it takes nobody for late because of that.
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

    /// One that has ended already.
    pub(super) fn ended(&mut self) -> Option<(K, io::Result<R>)> {
        let ended = self.receiver.try_recv().ok()?;
        self.take(ended)
    }

    fn take(&mut self, (number, outcome): (usize, Outcome<R>)) -> Option<(K, io::Result<R>)> {
        // One that was given up is none that anybody asks for.
        let at = self.waiting.iter().position(|waiting| waiting.number == number)?;
        let key = self.waiting.remove(at).key;
        Some((key, outcome.unwrap_or_else(|panic| resume_unwind(panic))))
    }

    /// Those that are waited for.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &K> {
        self.waiting.iter().map(|waiting| &waiting.key)
    }

    /// Those that are not waited for so long that others should be asked.
    pub(super) fn in_time(&self) -> impl Iterator<Item = &K> {
        let in_time = self.waiting.iter().filter(|waiting| waiting.waited < waiting.read_late);
        in_time.map(|waiting| &waiting.key)
    }

    /// Waits no more for those that have had their time, if `late` says so, which is told their
    /// limit; for the others again as long.
    pub(super) fn give_up(&mut self, mut late: impl FnMut(&K, Duration) -> bool) {
        self.waiting.retain_mut(|waiting| {
            let is_over = waiting.waited >= waiting.limit;
            if is_over {
                waiting.waited = Duration::ZERO;
            }
            !is_over || !late(&waiting.key, waiting.limit)
        });
    }

    /// From here on they have all their time.
    fn begin_anew(&mut self) {
        self.waiting.iter_mut().for_each(|waiting| waiting.waited = Duration::ZERO);
    }
}

/// Who is asked, and how long.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// The device of a slot, if it is to be asked when it is its turn.
    pub(super) of: fn(&Slot) -> Option<&Device>,
    pub(super) limit: Limit,
    /// So many may be late: the limit counts from when no more are waited for.
    pub(super) spare: usize,
}

/// Asks several devices, side by side if they have threads, and waits until each of them has
/// `ended`, or is given up as `late`, which says whether it can be. Where `ended` fails, no further
/// one is asked.
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

/// Asks one device, for no longer than this.
///
/// # Errors
/// What it says; `TimedOut`.
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
    let text = format!("it has not answered for {} s", limit.as_secs_f32());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

impl Members {
    /// As [`each`]. One that is late is out; if it must stay, it is waited for.
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

    /// Asks one device that is written to. If it fails it is out, or takes too long; the caller has
    /// failed as well.
    ///
    /// # Errors
    /// What it says; `TimedOut`; `NotConnected` if it is out.
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

    /// A device has had its time: whether it is out.
    pub(super) fn goes_on_without(&self, slot: &Slot, limit: Duration) -> bool {
        let can = !slot.is_in() || self.can_do_without(&self.slots(), slot);
        can && self.fail(slot, timed_out(limit)).is_ok()
    }

    /// Whether all can be read if this one goes out too.
    pub(super) fn can_do_without(&self, slots: &[Arc<Slot>], slot: &Slot) -> bool {
        self.can_do_with(slots, |other| match other.number == slot.number {
            true => DeviceState::Out,
            false => other.state(),
        })
    }

    /// How many of those that are written to can be lost, and one at least, of which it is asked
    /// then.
    pub(super) fn spare(&self) -> usize {
        let slots = self.slots();
        let count = |state| slots.iter().filter(|slot| slot.state() == state).count();
        let of_those_in = count(DeviceState::In).saturating_sub(self.least_there());
        (of_those_in.min(PARITY_COLUMNS as usize) + count(DeviceState::CatchingUp)).max(1)
    }
}
