//! Taking locks, giving them back, and breaking those of dead hosts.
//!
//! With ATS a lock costs a read and a COMPARE AND WRITE, and another one to give it back; without,
//! RESERVE, read, write and RELEASE each time (002). What is done under it is in between.
//!
//! The content of a lock (a bitmap, the directory, a description) is changed only under it, and
//! each change of the lock creates a sector that never existed before: its sequence increases, and
//! it has a random number. From this it follows what need not be read:
//!
//! 1. A host remembers the lock as it gave it back, and the content at that time. If the lock can
//!    be changed from that very image to being held, no host has held it in between, so the content
//!    is still the same. If not, both are forgotten.
//! 2. Lock and content are adjacent and read by one command. The sectors may be of different times,
//!    and the content may be older than the lock. But a free lock has the stamp of the content with
//!    which it was given back: content with that stamp is what was there when the lock became like
//!    this, and by (1) what is there when it is taken from this image.
//!
//! A lock that was not free, whose holder has died or has forgotten it, proves nothing: the content
//! is read once the lock is held. A host that does not know the result of its last write gives the
//! lock back without a stamp, and remembers nothing.

use std::time::Duration;

use super::error::DatastoreError;
use super::heart::Verdict;
use super::layout::Guard;
use super::lock_record::{Holder, HostId, LockRecord, Mode, stamp_of};
use super::mount::Core;
use super::pulse::Pulse;
use super::sector::Sector;
use super::views::View;

/// For how many liveness times to wait for a lock that hosts hold which are alive.
const PATIENCE: u32 = 8;
/// How often to try to give back a lock that others take and give back.
const GIVE_BACKS_MAX: u32 = 1000;

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Until it is free: it is held only for a few commands.
    UntilFree,
    /// Until it is known that its holder is alive: it is held for long.
    UnlessAlive,
    /// Not at all.
    Never,
}

/// A lock that is held.
#[derive(Debug)]
pub(super) struct Held {
    guard: Guard,
    /// As it was written.
    image: Box<Sector>,
    /// As it was before.
    pub(super) was: Box<Sector>,
    /// The content after it, if known.
    content: Option<Vec<u8>>,
    /// Whether no other host has had it since this one.
    is_alone: bool,
}

/// The result.
#[derive(Debug)]
pub(super) enum Taken {
    Held(Held),
    /// Another host has it.
    By(HostId),
}

/// What was seen of others while waiting for one lock.
#[derive(Default)]
struct Seen {
    lock: Option<(LockRecord, std::time::Instant)>,
    pulses: Vec<(u32, Pulse)>,
}

impl Seen {
    /// Returns for how long the lock has been unchanged.
    fn unchanged_for(&mut self, record: &LockRecord, now: std::time::Instant) -> Duration {
        match &self.lock {
            Some((known, since)) if known == record => now.duration_since(*since),
            _ => {
                self.lock = Some((record.clone(), now));
                Duration::ZERO
            }
        }
    }

    /// Returns whether a host has beaten since it was first seen.
    fn has_moved(&mut self, slot: u32, pulse: Pulse) -> bool {
        match self.pulses.iter().find(|(known, _)| *known == slot) {
            Some((_, first)) => *first != pulse,
            None => {
                self.pulses.push((slot, pulse));
                false
            }
        }
    }
}

impl Core {
    /// Takes a lock.
    pub(super) async fn acquire(
        &self,
        guard: Guard,
        mode: Mode,
        wait: Wait,
    ) -> Result<Taken, DatastoreError> {
        let started = self.disk.medium.now();
        let mut seen = Seen::default();
        let mut known = self.views.take(guard);
        let mut is_alone = known.as_ref().is_none_or(|known| known.is_alone);
        let mut tried = known.take_if(|known| known.is_worth_a_try()).map(|known| known.view);
        for attempt in 0.. {
            let is_guess = tried.is_some();
            let view = match tried.take() {
                Some(view) => view,
                None => {
                    let view = self.look(guard).await?;
                    if let Some(known) = known.take() {
                        is_alone = known.view.image == view.image;
                    }
                    view
                }
            };
            let record = LockRecord::decode(&*view.image, guard.lock)?;
            let (dead, alive) = self.examine(&record, mode, wait, &mut seen).await?;
            match record.without(|holder| dead.contains(holder)).with(self.me, mode) {
                Some(next) => match self.take_from(guard, view, next, is_alone).await? {
                    Ok(held) => {
                        self.disk.count(|counters| counters.broken += u64::from(!dead.is_empty()));
                        return Ok(Taken::Held(held));
                    }
                    Err(found) if is_guess && attempt == 0 => {
                        // Another host was there, but not just now: no reason to wait.
                        is_alone = false;
                        tried = Some(found);
                        self.disk.count(|counters| counters.retries += 1);
                        continue;
                    }
                    Err(_) => is_alone = false,
                },
                None => {
                    if let Some(host) = alive.or((wait == Wait::Never).then(|| other(&record))) {
                        return Ok(Taken::By(host));
                    }
                }
            }
            self.disk.count(|counters| counters.retries += 1);
            let waited = self.disk.medium.now().duration_since(started);
            if waited > self.options.liveness * PATIENCE {
                break;
            }
            match wait {
                Wait::UnlessAlive => {
                    self.disk.medium.sleep(self.options.heartbeat_interval / 8).await;
                }
                _ => self.disk.back_off(attempt).await,
            }
        }
        Err(DatastoreError::LockTimeout { offset_bytes: guard.lock })
    }

    /// Takes a lock again that no other host has had since this one; `None` if that is not so, or
    /// not known.
    pub(super) async fn acquire_again(
        &self,
        guard: Guard,
        mode: Mode,
    ) -> Result<Option<Held>, DatastoreError> {
        let Some(known) = self.views.take(guard) else { return Ok(None) };
        let record = LockRecord::decode(&*known.view.image, guard.lock)?;
        let Some(next) = record.with(self.me, mode).filter(|_| known.is_worth_a_try()) else {
            self.views.left(guard, known.view, known.is_alone);
            return Ok(None);
        };
        let view = known.view.clone();
        match self.take_from(guard, view, next, known.is_alone).await? {
            Ok(held) => Ok(Some(held)),
            Err(_) => {
                self.views.left(guard, known.view, false);
                self.disk.count(|counters| counters.retries += 1);
                Ok(None)
            }
        }
    }

    async fn look(&self, guard: Guard) -> Result<View, DatastoreError> {
        View::of(guard, &self.disk.read(guard.lock, guard.bytes()).await?)
    }

    /// Changes a lock from its known image to being held; or returns what is there instead.
    async fn take_from(
        &self,
        guard: Guard,
        view: View,
        next: LockRecord,
        is_alone: bool,
    ) -> Result<Result<Held, View>, DatastoreError> {
        let next = LockRecord { nonce: self.disk.nonce(), stamp: 0, ..next }.encode(guard.lock);
        let View { image: was, content } = view;
        let end = self.disk.exchange_or_read(guard.lock, guard.bytes(), &was, &next).await?;
        if let Some(found) = end {
            return Ok(Err(View::of(guard, &found)?));
        }
        self.disk.count(|counters| counters.acquired += 1);
        Ok(Ok(Held { guard, image: Box::new(next), was, content, is_alone }))
    }

    /// Returns the content of a lock that is held.
    pub(super) async fn content_of(&self, held: &mut Held) -> Result<Vec<u8>, DatastoreError> {
        match held.content.take() {
            Some(content) => Ok(content),
            None => self.disk.read(held.guard.content(), held.guard.content_bytes).await,
        }
    }

    /// Finds out which of the conflicting holders are dead, and one that is alive.
    async fn examine(
        &self,
        record: &LockRecord,
        mode: Mode,
        wait: Wait,
        seen: &mut Seen,
    ) -> Result<(Vec<Holder>, Option<HostId>), DatastoreError> {
        let (mut dead, mut alive) = (Vec::new(), None);
        if record.with(self.me, mode).is_some() {
            return Ok((dead, alive));
        }
        let unchanged_for = seen.unchanged_for(record, self.disk.medium.now());
        if wait == Wait::UntilFree && unchanged_for < self.options.heartbeat_interval {
            return Ok((dead, alive));
        }
        for holder in record.holders.iter().filter(|holder| **holder != self.me) {
            match self.judge(holder).await? {
                Verdict::Dead => dead.push(*holder),
                Verdict::Perhaps(pulse) => {
                    if seen.has_moved(holder.slot, pulse) && wait != Wait::UntilFree {
                        alive = Some(holder.host);
                    }
                }
            }
        }
        Ok((dead, alive))
    }

    /// Gives a lock back. `content`: the content after it, if known. Returns the lock if it was
    /// remembered, which means that no host has it now.
    pub(super) async fn give_up(
        &self,
        held: &Held,
        content: Option<&[u8]>,
    ) -> Result<Option<Box<Sector>>, DatastoreError> {
        let Guard { lock: offset, .. } = held.guard;
        let mut image = *held.image;
        for attempt in 0..GIVE_BACKS_MAX {
            let record = LockRecord::decode(&image, offset)?;
            if !record.holders.contains(&self.me) {
                // It was given back by a command whose completion was lost, or broken; a host whose
                // lock was broken finds out from its heartbeat.
                self.disk.count(|counters| counters.released += 1);
                return Ok(None);
            }
            let next = record.without(|holder| *holder == self.me);
            let content = content.filter(|_| next.mode.is_none());
            let stamp = content.map_or(0, stamp_of);
            let next = LockRecord { nonce: self.disk.nonce(), stamp, ..next }.encode(offset);
            if self.disk.exchange(offset, &image, &next).await? {
                self.disk.count(|counters| counters.released += 1);
                return Ok(content.map(|content| {
                    let (image, content) = (Box::new(next), Some(content.to_vec()));
                    let view = View { image: image.clone(), content };
                    self.views.left(held.guard, view, held.is_alone);
                    image
                }));
            }
            self.disk.back_off(attempt).await;
            image = self.disk.read_sector(offset).await?;
        }
        Err(DatastoreError::LockTimeout { offset_bytes: offset })
    }

    /// Does something under a lock that is held for only a few commands, with its content, and
    /// returns the content as it is on disk then. The tasks of this host must have taken turns
    /// before.
    pub(super) async fn under_lock<T>(
        &self,
        guard: Guard,
        work: impl AsyncFnOnce(Vec<u8>) -> Result<(T, Vec<u8>), DatastoreError>,
    ) -> Result<T, DatastoreError> {
        let mut held = match self.acquire(guard, Mode::Exclusive, Wait::UntilFree).await? {
            Taken::Held(held) => held,
            Taken::By(_) => return Err(DatastoreError::LockTimeout { offset_bytes: guard.lock }),
        };
        let end = match self.content_of(&mut held).await {
            Ok(content) => work(content).await,
            Err(error) => Err(error),
        };
        let known = end.as_ref().ok().map(|(_, content)| content.as_slice());
        let freed = self.give_up(&held, known).await;
        let (value, _) = end?;
        freed?;
        Ok(value)
    }
}

fn other(record: &LockRecord) -> HostId {
    record.holders.first().map_or(HostId([0; 16]), |holder| holder.host)
}
